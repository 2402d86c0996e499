// Bipartite token merging, the paper's geometric baseline. Rounds of: split the tokens into even
// and odd positions, find for each even token its most similar odd one, merge the most similar
// pairs (at most half of the tokens a round) into plain means, scale to unit norm. Tokens that
// were not merged come first in the next round, by falling similarity.
#include <algorithm>
#include <numeric>

#include "kernels/products.h"
#include "merge/importance_order.h"
#include "merge/registry.h"

namespace marginmerge {

namespace {

// Copies every second row, from row `start` on.
void every_second(ConstMatrix from, std::size_t start, Matrix& to) {
    to.reshape((from.rows + 1 - start) / 2, from.cols);
    for (std::size_t r = 0; r < to.rows(); ++r) std::copy_n(from.row(2 * r + start), from.cols, to.row(r));
}

}  // namespace

void represent_tome(const RepresentativeRequest& request, PageWorkspace& w, CompressedPage& out) {
    const ConstMatrix v = request.page.vectors;
    const std::size_t d = v.cols;
    w.centres.reshape(v.rows, d);
    std::copy_n(v.data, v.size(), w.centres.data());
    std::iota(out.owner.begin(), out.owner.end(), 0);
    Matrix& even = w.even;
    Matrix& odd = w.other;
    while (w.centres.rows() > request.k) {
        const std::size_t tokens = w.centres.rows();
        every_second(w.centres, 0, even);
        every_second(w.centres, 1, odd);
        const std::size_t merges = std::min(tokens - request.k, odd.rows());
        w.links.resize(even.rows());
        w.values.resize(even.rows());
        nearest(even, odd, w.links, w.values);
        w.order.resize(even.rows());
        std::iota(w.order.begin(), w.order.end(), 0);
        std::stable_sort(w.order.begin(), w.order.end(), [&](std::int32_t a, std::int32_t b) {
            return w.values[static_cast<std::size_t>(a)] > w.values[static_cast<std::size_t>(b)];
        });

        // New token numbers: unmerged even tokens in order, then the odd ones.
        const std::size_t unmerged = even.rows() - merges;
        w.labels.resize(tokens);
        w.centres.reshape(unmerged + odd.rows(), d);
        for (std::size_t r = 0; r < even.rows(); ++r) {
            const auto token = static_cast<std::size_t>(w.order[r]);
            const std::size_t target = r < merges ? unmerged + static_cast<std::size_t>(w.links[token]) : r - merges;
            w.labels[2 * token] = static_cast<std::int32_t>(target);
            if (r >= merges) std::copy_n(even.row(token), d, w.centres.row(target));
        }
        for (std::size_t r = 0; r < odd.rows(); ++r) {
            w.labels[2 * r + 1] = static_cast<std::int32_t>(unmerged + r);
            std::copy_n(odd.row(r), d, w.centres.row(unmerged + r));
        }
        for (std::size_t r = 0; r < merges; ++r) {
            const auto token = static_cast<std::size_t>(w.order[r]);
            float* sum = w.centres.row(unmerged + static_cast<std::size_t>(w.links[token]));
            const float* row = even.row(token);
            for (std::size_t j = 0; j < d; ++j) sum[j] += row[j];
        }
        normalise_rows(w.centres);  // the direction of a mean is that of its sum
        for (auto& owner : out.owner) owner = w.labels[static_cast<std::size_t>(owner)];
    }
    std::copy_n(w.centres.data(), request.k * d, out.representatives.data());
    importance_order(w, out);
}

}  // namespace marginmerge
