// Nearest-neighbour chains find the same tree as joining the globally closest pair. Ward's distance has a closed form
// in centroids and sizes,
//     D(A,B) = |A| |B| / (|A|+|B|) * || c_A - c_B ||^2,
// and another in the distances before a merge (Lance and Williams),
//     D(AB,C) = ((|A|+|C|) D(A,C) + (|B|+|C|) D(B,C) - |C| D(A,B)) / (|A|+|B|+|C|).
// The second makes a step cost n instead of n d, but needs n^2 distances; pages too large for that use the first.
//
// A cluster is called by its lowest patch, so that patch 0 always is one.
#include "merge/ward_tree.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include "kernels/products.h"

namespace marginmerge {

namespace {

constexpr float infinite = std::numeric_limits<float>::infinity();
constexpr std::size_t none = std::numeric_limits<std::size_t>::max();

struct Nearest {
    std::size_t cluster;
    double distance;
};

/// All distances between clusters, row by row. What has been joined away keeps stale columns: `gone_` hides them.
class DistanceClusters {
public:
    DistanceClusters(ConstMatrix v, PageWorkspace& w)
        : n_(v.rows), distance_(w.centres), size_(w.sizes), gone_(w.values) {
        distance_.reshape(n_, n_);
        product(v, v, distance_);
        size_.assign(n_, 1.0f);
        gone_.resize(n_);
        for (std::size_t i = 0; i < n_; ++i) gone_[i] = distance_(i, i);  // squared norms, for a moment
        for (std::size_t i = 0; i < n_; ++i) {
            float* row = distance_.row(i);
            for (std::size_t j = 0; j < n_; ++j) row[j] = std::max(0.0f, 0.5f * (gone_[i] + gone_[j]) - row[j]);
            row[i] = infinite;
        }
        gone_.assign(n_, 0.0f);
    }

    double distance(std::size_t a, std::size_t b) const { return distance_(a, b); }

    // The closest other cluster; on a tie the previous element of the chain, then the lowest patch.
    Nearest nearest(std::size_t cluster, std::size_t previous) const {
        const float* row = distance_.row(cluster);
        const float least = least_of(row);
        if (previous != none && row[previous] == least) return {previous, least};
        std::size_t found = 0;
        while (row[found] + gone_[found] != least) ++found;
        return {found, least};
    }

    void join(std::size_t a, std::size_t b) {
        float* to = distance_.row(a);
        const float* from = distance_.row(b);
        const float size_a = size_[a], size_b = size_[b], between = to[b];
        for (std::size_t c = 0; c < n_; ++c) {
            const float size = size_[c];
            to[c] = std::max(0.0f, ((size_a + size) * to[c] + (size_b + size) * from[c] - size * between) /
                                       (size_a + size_b + size));
        }
        to[a] = infinite;
        size_[a] = size_a + size_b;
        gone_[b] = infinite;
        for (std::size_t c = 0; c < n_; ++c) {
            if (gone_[c] == 0.0f) distance_(c, a) = to[c];
        }
    }

private:
    // Lanes of their own, or each comparison would wait for the last.
    float least_of(const float* row) const {
        constexpr std::size_t lanes = 16;
        std::array<float, lanes> least;
        least.fill(infinite);
        std::size_t c = 0;
        for (; c + lanes <= n_; c += lanes) {
            for (std::size_t j = 0; j < lanes; ++j) {
                const float x = row[c + j] + gone_[c + j];
                least[j] = x < least[j] ? x : least[j];
            }
        }
        for (; c < n_; ++c) least[0] = std::min(least[0], row[c] + gone_[c]);
        return *std::min_element(least.begin(), least.end());
    }

    std::size_t n_;
    Matrix& distance_;
    std::vector<float>& size_;
    std::vector<float>& gone_;  ///< 0 for a cluster, infinite for what has been joined to another
};

/// Centroids only. Clusters are kept in the first `active_` rows, so that one scan is one contiguous product.
class CentroidClusters {
public:
    CentroidClusters(ConstMatrix v, PageWorkspace& w)
        : active_(v.rows), centroids_(w.centres), similarity_(w.row), size_(w.sizes), norm_(w.values) {
        centroids_.reshape(active_, v.cols);
        std::copy_n(v.data, v.size(), centroids_.data());
        similarity_.reshape(1, active_);
        size_.assign(active_, 1.0f);
        norm_.resize(active_);
        for (std::size_t i = 0; i < active_; ++i) norm_[i] = dot(v.row(i), v.row(i), v.cols);
        patch_.resize(active_);
        std::iota(patch_.begin(), patch_.end(), std::size_t{0});
        row_ = patch_;
    }

    double distance(std::size_t a, std::size_t b) const {
        const std::size_t x = row_[a], y = row_[b];
        return ward(x, y, dot(centroids_.row(x), centroids_.row(y), centroids_.cols()));
    }

    // The closest other cluster; on a tie the previous element of the chain, then the lowest patch.
    Nearest nearest(std::size_t cluster, std::size_t previous) {
        const std::size_t row = row_[cluster];
        product(centroids_.view().middle_rows(row, 1), centroids_.view().middle_rows(0, active_),
                {similarity_.data(), 1, active_});
        Nearest best{none, std::numeric_limits<double>::infinity()};
        for (std::size_t other = 0; other < active_; ++other) {
            if (other == row) continue;
            const double distance = ward(row, other, similarity_.data()[other]);
            if (distance > best.distance) continue;
            const std::size_t patch = patch_[other];
            if (distance == best.distance && (best.cluster == previous || (patch != previous && patch > best.cluster)))
                continue;
            best = {patch, distance};
        }
        return best;
    }

    void join(std::size_t a, std::size_t b) {
        const std::size_t to = row_[a], from = row_[b], d = centroids_.cols();
        const float total = size_[to] + size_[from];
        for (std::size_t j = 0; j < d; ++j)
            centroids_(to, j) = (size_[to] * centroids_(to, j) + size_[from] * centroids_(from, j)) / total;
        size_[to] = total;
        norm_[to] = dot(centroids_.row(to), centroids_.row(to), d);
        const std::size_t last = --active_;
        if (last == from) return;
        std::copy_n(centroids_.row(last), d, centroids_.row(from));
        size_[from] = size_[last];
        norm_[from] = norm_[last];
        patch_[from] = patch_[last];
        row_[patch_[from]] = from;
    }

private:
    double ward(std::size_t x, std::size_t y, float product) const {
        const double gap = std::max(0.0, static_cast<double>(norm_[x]) + norm_[y] - 2.0 * product);
        return static_cast<double>(size_[x]) * size_[y] / (static_cast<double>(size_[x]) + size_[y]) * gap;
    }

    std::size_t active_;
    Matrix& centroids_;
    Matrix& similarity_;
    std::vector<float>& size_;
    std::vector<float>& norm_;
    std::vector<std::size_t> patch_;  ///< the cluster in each row
    std::vector<std::size_t> row_;    ///< the row of each cluster
};

template <class Clusters>
std::vector<WardMerge> build(Clusters clusters, std::size_t n) {
    std::vector<WardMerge> merges;
    merges.reserve(n - 1);
    std::vector<std::size_t> chain;  // distances along it fall strictly
    std::vector<char> in_chain(n, 0);
    double reached = 0;
    const auto before_last = [&] { return chain.size() > 1 ? chain[chain.size() - 2] : none; };
    const auto push = [&](std::size_t cluster) {
        chain.push_back(cluster);
        in_chain[cluster] = 1;
    };
    while (merges.size() + 1 < n) {
        if (chain.empty()) push(0);
        if (chain.size() == 1) reached = std::numeric_limits<double>::infinity();
        const auto [next, distance] = clusters.nearest(chain.back(), before_last());
        // Rounding could close a longer loop than two; the pair on top is then as good as any.
        if (distance < reached && !in_chain[next]) {
            push(next);
            reached = distance;
            continue;
        }
        const auto [a, b] = std::minmax({chain.back(), before_last()});
        merges.push_back({std::min(distance, reached), static_cast<std::int32_t>(a), static_cast<std::int32_t>(b)});
        in_chain[a] = in_chain[b] = 0;
        chain.resize(chain.size() - 2);
        clusters.join(a, b);
        if (chain.size() > 1) reached = clusters.distance(chain.back(), before_last());
    }
    return merges;
}

}  // namespace

std::vector<WardMerge> ward_tree(ConstMatrix v, PageWorkspace& w, std::size_t distance_rows) {
    if (v.rows == 0) return {};
    return v.rows <= distance_rows ? build(DistanceClusters(v, w), v.rows) : build(CentroidClusters(v, w), v.rows);
}

}  // namespace marginmerge
