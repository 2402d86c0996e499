// Ward hierarchical pooling: agglomerative clustering that at each step joins the two clusters whose
// union grows the squared error least, cut at k clusters; each is represented by its unit mean.
//
// Nearest-neighbour chains find the same tree as joining the globally closest pair, and Ward's
// distance has a closed form in centroids and sizes,
//     D(A,B) = |A| |B| / (|A|+|B|) * || c_A - c_B ||^2,
// so a page needs n centroids and never n^2 distances.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/products.h"
#include "merge/clusters.h"
#include "merge/importance_order.h"
#include "merge/registry.h"

namespace marginmerge {

namespace {

struct Merge {
    double height;
    std::int32_t a, b;  ///< any patch of either cluster
};

// The active clusters are kept in the first `active` rows of `centroids`, so that one scan is one
// contiguous product.
class WardTree {
public:
    WardTree(ConstMatrix v, PageWorkspace& w)
        : centroids_(w.centres), similarity_(w.row), size_(w.sizes), norm_(w.values) {
        const std::size_t n = v.rows;
        centroids_.reshape(n, v.cols);
        std::copy_n(v.data, v.size(), centroids_.data());
        similarity_.reshape(1, n);
        size_.assign(n, 1.0f);
        norm_.resize(n);
        patch_.resize(n);
        in_chain_.assign(n, 0);
        std::iota(patch_.begin(), patch_.end(), 0);
        for (std::size_t i = 0; i < n; ++i) norm_[i] = dot(v.row(i), v.row(i), v.cols);
        active_ = n;
    }

    std::vector<Merge> build() {
        std::vector<Merge> merges;
        merges.reserve(active_ > 0 ? active_ - 1 : 0);
        std::vector<std::size_t> chain;  // rows; distances along it fall strictly
        double reached = std::numeric_limits<double>::infinity();
        while (active_ > 1) {
            if (chain.empty()) {
                push(chain, 0);
                reached = std::numeric_limits<double>::infinity();
            }
            const auto [next, distance] =
                nearest_of(chain.back(), chain.size() > 1 ? chain[chain.size() - 2] : active_);
            // Rounding could close a longer loop than two; the pair on top is then as good as any.
            if (distance < reached && !in_chain_[next]) {
                push(chain, next);
                reached = distance;
                continue;
            }
            const std::size_t a = chain[chain.size() - 2];
            const std::size_t b = chain.back();
            merges.push_back({std::min(distance, reached), patch_[a], patch_[b]});
            chain.pop_back();
            chain.pop_back();
            in_chain_[a] = in_chain_[b] = 0;
            const std::size_t moved = join(std::min(a, b), std::max(a, b));
            std::replace(chain.begin(), chain.end(), moved, std::max(a, b));
            reached = std::numeric_limits<double>::infinity();
            if (chain.size() > 1) reached = distance_of(chain.back(), chain[chain.size() - 2]);
        }
        return merges;
    }

private:
    void push(std::vector<std::size_t>& chain, std::size_t row) {
        chain.push_back(row);
        in_chain_[row] = 1;
    }

    double ward(std::size_t a, std::size_t b, float product) const {
        const double gap = std::max(0.0, static_cast<double>(norm_[a]) + norm_[b] - 2.0 * product);
        return static_cast<double>(size_[a]) * size_[b] / (static_cast<double>(size_[a]) + size_[b]) * gap;
    }

    double distance_of(std::size_t a, std::size_t b) const {
        return ward(a, b, dot(centroids_.row(a), centroids_.row(b), centroids_.cols()));
    }

    // The closest other cluster; on a tie the previous element of the chain, then the lowest patch.
    std::pair<std::size_t, double> nearest_of(std::size_t row, std::size_t previous) {
        product(centroids_.view().middle_rows(row, 1), centroids_.view().middle_rows(0, active_),
                {similarity_.data(), 1, active_});
        std::size_t best = active_;
        double least = std::numeric_limits<double>::infinity();
        const float* similarity = similarity_.data();
        for (std::size_t other = 0; other < active_; ++other) {
            if (other == row) continue;
            const double distance = ward(row, other, similarity[other]);
            if (distance > least) continue;
            if (distance == least && (best == previous || (other != previous && patch_[other] > patch_[best])))
                continue;
            best = other;
            least = distance;
        }
        return {best, least};
    }

    // Joins row b into row a (a < b) and moves the last active row to b. Returns where that row was.
    std::size_t join(std::size_t a, std::size_t b) {
        const std::size_t d = centroids_.cols();
        const float total = size_[a] + size_[b];
        for (std::size_t j = 0; j < d; ++j)
            centroids_(a, j) = (size_[a] * centroids_(a, j) + size_[b] * centroids_(b, j)) / total;
        size_[a] = total;
        norm_[a] = dot(centroids_.row(a), centroids_.row(a), d);
        patch_[a] = std::min(patch_[a], patch_[b]);
        const std::size_t last = --active_;
        if (last != b) {
            std::copy_n(centroids_.row(last), d, centroids_.row(b));
            size_[b] = size_[last];
            norm_[b] = norm_[last];
            patch_[b] = patch_[last];
            in_chain_[b] = in_chain_[last];
        }
        in_chain_[last] = 0;
        return last;
    }

    Matrix& centroids_;
    Matrix& similarity_;
    std::vector<float>& size_;
    std::vector<float>& norm_;
    std::vector<std::int32_t> patch_;  ///< lowest patch of each row's cluster
    std::vector<char> in_chain_;
    std::size_t active_ = 0;
};

std::int32_t root_of(std::vector<std::int32_t>& parent, std::int32_t i) {
    while (parent[static_cast<std::size_t>(i)] != i) {
        auto& up = parent[static_cast<std::size_t>(i)];
        up = parent[static_cast<std::size_t>(up)];
        i = up;
    }
    return i;
}

}  // namespace

void represent_ward(const RepresentativeRequest& request, PageWorkspace& w, CompressedPage& out) {
    const ConstMatrix v = request.page.vectors;
    const std::size_t n = v.rows;
    std::vector<Merge> merges = WardTree(v, w).build();
    // A chain's merges come in no particular order; the tree is cut by height.
    std::stable_sort(merges.begin(), merges.end(), [](const Merge& x, const Merge& y) { return x.height < y.height; });
    w.links.resize(n);
    std::iota(w.links.begin(), w.links.end(), 0);
    for (std::size_t m = 0; m + request.k < n; ++m) {
        const auto a = root_of(w.links, merges[m].a);
        const auto b = root_of(w.links, merges[m].b);
        w.links[static_cast<std::size_t>(std::max(a, b))] = std::min(a, b);
    }
    w.labels.assign(n, -1);
    std::int32_t found = 0;
    for (std::size_t i = 0; i < n; ++i) {
        auto& label = w.labels[static_cast<std::size_t>(root_of(w.links, static_cast<std::int32_t>(i)))];
        if (label < 0) label = found++;
        out.owner[i] = label;
    }
    group_clusters(v, out.owner, request.k, w.lists);
    cluster_centroids(w.lists, {}, out.representatives);
    importance_order(w, out);
}

}  // namespace marginmerge
