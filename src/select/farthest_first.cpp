#include "select/farthest_first.h"

#include <algorithm>
#include <span>

#include "kernels/products.h"

namespace marginmerge {

namespace {

using HeapEntry = FarthestWorkspace::Entry;

constexpr std::size_t step = 4;

// Heap order: the least similar patch on top, the lower index on a tie.
bool later(const HeapEntry& a, const HeapEntry& b) {
    return a.similarity != b.similarity ? a.similarity > b.similarity : a.patch > b.patch;
}

}  // namespace

// Similarities to the nearest pick only grow, so a stale value is a lower bound: only the patch on
// top of the heap ever needs the picks it has not seen, and most patches are never looked at.
void extend_farthest(ConstMatrix v, std::size_t count, FarthestWorkspace& w, std::vector<std::int32_t>& order) {
    const std::size_t n = v.rows;
    const std::size_t d = v.cols;
    if (order.size() >= count) return;
    w.picks.reshape(count, d);
    w.picked.assign(n, 0);
    w.given.assign(order.begin(), order.end());
    std::sort(w.given.begin(), w.given.end());
    const auto copy_picks = [&](std::span<const std::int32_t> patches) {
        for (std::size_t c = 0; c < patches.size(); ++c)
            std::copy_n(v.row(static_cast<std::size_t>(patches[c])), d, w.picks.row(c));
    };
    copy_picks(w.given);
    w.nearest_given.resize(n);
    w.similarity.resize(n);
    nearest(v, w.picks.view().middle_rows(0, order.size()), w.nearest_given, w.similarity);
    for (auto& pick : w.nearest_given) pick = w.given[static_cast<std::size_t>(pick)];
    copy_picks(order);
    for (const auto patch : order) w.picked[static_cast<std::size_t>(patch)] = 1;
    const auto start = static_cast<std::uint32_t>(order.size());
    w.heap.clear();
    for (std::size_t i = 0; i < n; ++i)
        if (!w.picked[i]) w.heap.push_back({w.similarity[i], static_cast<std::int32_t>(i), start});
    std::make_heap(w.heap.begin(), w.heap.end(), later);

    while (order.size() < count && !w.heap.empty()) {
        std::pop_heap(w.heap.begin(), w.heap.end(), later);
        HeapEntry& top = w.heap.back();
        if (top.known == order.size()) {
            std::copy_n(v.row(static_cast<std::size_t>(top.patch)), d, w.picks.row(order.size()));
            order.push_back(top.patch);
            w.heap.pop_back();
            continue;
        }
        // A few picks at a time, until the patch is no longer the least similar.
        const float* row = v.row(static_cast<std::size_t>(top.patch));
        do {
            float similarity[step];
            const std::size_t more = std::min(step, order.size() - top.known);
            dot_rows(row, w.picks.row(top.known), more, d, similarity);
            for (std::size_t c = 0; c < more; ++c) top.similarity = std::max(top.similarity, similarity[c]);
            top.known += static_cast<std::uint32_t>(more);
        } while (top.known < order.size() && (w.heap.size() == 1 || later(w.heap.front(), top)));
        std::push_heap(w.heap.begin(), w.heap.end(), later);
    }
}

}  // namespace marginmerge
