#include "select/farthest_first.h"

#include <algorithm>
#include <limits>
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

void copy_picks(ConstMatrix v, std::span<const std::int32_t> patches, Matrix& picks) {
    for (std::size_t c = 0; c < patches.size(); ++c)
        std::copy_n(v.row(static_cast<std::size_t>(patches[c])), v.cols, picks.row(c));
}

// Similarities to the nearest pick only grow, so a stale value is a lower bound: only the patch on
// top of the heap ever needs the picks it has not seen, and most patches are never looked at.
// closeness(patch, pick, inner product) is how similar the two are; w.picks has the rows of `order`, w.similarity what
// is known of every patch.
template <class Closeness>
void pick_farthest(ConstMatrix v, std::size_t count, const Closeness& closeness, FarthestWorkspace& w,
                   std::vector<std::int32_t>& order) {
    const std::size_t n = v.rows, d = v.cols;
    w.picked.assign(n, 0);
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
            float product[step];
            const std::size_t more = std::min(step, order.size() - top.known);
            dot_rows(row, w.picks.row(top.known), more, d, product);
            for (std::size_t c = 0; c < more; ++c)
                top.similarity = std::max(top.similarity, closeness(top.patch, order[top.known + c], product[c]));
            top.known += static_cast<std::uint32_t>(more);
        } while (top.known < order.size() && (w.heap.size() == 1 || later(w.heap.front(), top)));
        std::push_heap(w.heap.begin(), w.heap.end(), later);
    }
}

}  // namespace

void extend_farthest(ConstMatrix v, std::size_t count, FarthestWorkspace& w, std::vector<std::int32_t>& order) {
    const std::size_t n = v.rows;
    if (order.size() >= count) return;
    w.picks.reshape(count, v.cols);
    w.given.assign(order.begin(), order.end());
    std::sort(w.given.begin(), w.given.end());
    copy_picks(v, w.given, w.picks);
    w.nearest_given.resize(n);
    w.similarity.resize(n);
    nearest(v, w.picks.view().middle_rows(0, order.size()), w.nearest_given, w.similarity);
    for (auto& pick : w.nearest_given) pick = w.given[static_cast<std::size_t>(pick)];
    copy_picks(v, order, w.picks);
    pick_farthest(
        v, count, [](std::int32_t, std::int32_t, float product) { return product; }, w, order);
}

void extend_farthest(ConstMatrix v, const FarthestWeights& weights, std::size_t count, FarthestWorkspace& w,
                     std::vector<std::int32_t>& order) {
    if (order.empty() || order.size() >= count) return;
    const auto closeness = [&](std::int32_t patch, std::int32_t pick, float product) {
        const auto i = static_cast<std::size_t>(patch), p = static_cast<std::size_t>(pick);
        return -weights.weight[i] * std::max(0.0F, weights.square[i] - 2 * product + weights.square[p]);
    };
    w.picks.reshape(count, v.cols);
    copy_picks(v, order, w.picks);
    w.similarity.assign(v.rows, -std::numeric_limits<float>::infinity());
    std::vector<float> product(v.rows);
    for (const auto pick : order) {
        dot_rows(v.row(static_cast<std::size_t>(pick)), v.data, v.rows, v.cols, product.data());
        for (std::size_t i = 0; i < v.rows; ++i)
            w.similarity[i] = std::max(w.similarity[i], closeness(static_cast<std::int32_t>(i), pick, product[i]));
    }
    pick_farthest(v, count, closeness, w, order);
}

}  // namespace marginmerge
