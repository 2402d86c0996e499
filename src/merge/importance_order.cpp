#include "merge/importance_order.h"

#include <algorithm>
#include <numeric>

namespace marginmerge {

void importance_order(PageWorkspace& w, CompressedPage& page) {
    const std::size_t k = page.representatives.rows();
    const std::size_t d = page.representatives.cols();
    const auto n = static_cast<std::int32_t>(page.owner.size());
    w.labels.assign(k, 0);  // sizes
    w.links.assign(k, n);   // first patches
    for (std::int32_t i = n; i-- > 0;) {
        const auto c = page.owner[static_cast<std::size_t>(i)];
        if (c < 0) continue;
        ++w.labels[static_cast<std::size_t>(c)];
        w.links[static_cast<std::size_t>(c)] = i;
    }
    w.order.resize(k);
    std::iota(w.order.begin(), w.order.end(), 0);
    std::stable_sort(w.order.begin(), w.order.end(), [&](std::int32_t a, std::int32_t b) {
        const auto x = static_cast<std::size_t>(a);
        const auto y = static_cast<std::size_t>(b);
        return w.labels[x] != w.labels[y] ? w.labels[x] > w.labels[y] : w.links[x] < w.links[y];
    });
    w.row.reshape(k, d);
    std::copy_n(page.representatives.data(), k * d, w.row.data());
    for (std::size_t r = 0; r < k; ++r) {
        const auto from = static_cast<std::size_t>(w.order[r]);
        std::copy_n(w.row.row(from), d, page.representatives.row(r));
        w.links[from] = static_cast<std::int32_t>(r);
    }
    for (auto& owner : page.owner)
        if (owner >= 0) owner = w.links[static_cast<std::size_t>(owner)];
}

}  // namespace marginmerge
