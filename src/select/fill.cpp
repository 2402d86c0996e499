// What to do with the anchors that are left when coverage is exhausted. With M prototypes every
// gain is zero after about M picks, which dense pages reach long before k.
#include <algorithm>
#include <numeric>

#include "core/fail.h"
#include "select/registry.h"

namespace marginmerge {

namespace {

void mark_picked(const AnchorRequest& request, AnchorWorkspace& w, const AnchorSelection& out) {
    w.picked.assign(request.vectors.rows, 0);
    for (const auto patch : out.order) w.picked[static_cast<std::size_t>(patch)] = 1;
}

}  // namespace

void fill_farthest(const AnchorRequest& request, AnchorWorkspace& w, AnchorSelection& out) {
    if (out.order.empty()) out.order.push_back(0);
    if (out.order.size() >= request.count) return;
    const std::size_t given = out.order.size();
    extend_farthest(request.vectors, request.count, w.farthest, out.order);
    out.compared = given;
    out.nearest.swap(w.farthest.nearest_given);
    out.similarity.swap(w.farthest.similarity);
}

void fill_relevance(const AnchorRequest& request, AnchorWorkspace& w, AnchorSelection& out) {
    if (request.responses == nullptr)
        fail(ErrorCode::invalid_argument, "fill relevance: expected a model with prototypes");
    mark_picked(request, w, out);
    const auto& relevance = request.responses->relevance;
    w.pool.clear();
    for (std::size_t i = 0; i < relevance.size(); ++i)
        if (!w.picked[i]) w.pool.push_back(static_cast<std::int32_t>(i));
    const auto left = static_cast<std::ptrdiff_t>(request.count - out.order.size());
    std::partial_sort(w.pool.begin(), w.pool.begin() + left, w.pool.end(), [&](std::int32_t a, std::int32_t b) {
        const float x = relevance[static_cast<std::size_t>(a)];
        const float y = relevance[static_cast<std::size_t>(b)];
        return x != y ? x > y : a < b;
    });
    out.order.insert(out.order.end(), w.pool.begin(), w.pool.begin() + left);
}

void fill_index(const AnchorRequest& request, AnchorWorkspace& w, AnchorSelection& out) {
    mark_picked(request, w, out);
    for (std::size_t i = 0; i < w.picked.size() && out.order.size() < request.count; ++i)
        if (!w.picked[i]) out.order.push_back(static_cast<std::int32_t>(i));
}

}  // namespace marginmerge
