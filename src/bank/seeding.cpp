#include "bank/seeding.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/parallel.h"
#include "core/random.h"
#include "kernels/products.h"

namespace marginmerge {

namespace {

// The point at which the running sum of costs passes `target`.
std::size_t draw(std::span<const double> cumulative, double target) {
    const auto at = std::upper_bound(cumulative.begin(), cumulative.end(), target) - cumulative.begin();
    return std::min(static_cast<std::size_t>(at), cumulative.size() - 1);
}

// What the points would cost with each of a few of them as one more centre.
class Offers {
public:
    Offers(const WeightedPoints& points, std::size_t most, std::size_t threads)
        : p_(points),
          threads_(threads),
          points_(most),
          candidates_(most, points.x.cols),
          reached_(most, points.x.rows),
          cost_(most, std::vector<double>((points.x.rows + block - 1) / block)) {}

    void set(std::size_t candidate, std::size_t point) {
        points_[candidate] = point;
        std::copy_n(p_.x.row(point), p_.x.cols, candidates_.row(candidate));
    }

    // The cheapest of the first `count`, the lower on a tie.
    std::size_t best(std::size_t count, std::span<const float> distance) {
        parallel_for(cost_[0].size(), threads_, [&](std::size_t b) { measure(b, count, distance); });
        std::size_t best = 0;
        double least = std::numeric_limits<double>::infinity();
        for (std::size_t t = 0; t < count; ++t) {
            const double sum = std::accumulate(cost_[t].begin(), cost_[t].end(), 0.0);
            if (sum < least) least = sum, best = t;
        }
        return best;
    }

    const float* centre(std::size_t candidate) const { return candidates_.row(candidate); }
    const float* reached(std::size_t candidate) const { return reached_.row(candidate); }

private:
    static constexpr std::size_t block = 2048;
    static constexpr std::size_t together = 4;

    void measure(std::size_t b, std::size_t count, std::span<const float> distance) {
        const std::size_t begin = b * block;
        const std::size_t rows = std::min(block, p_.x.rows - begin);
        const bool kept = p_.products.size() > 0;
        Matrix products;  // [rows, count]
        if (!kept) {
            products.reshape(rows, count);
            product(p_.x.middle_rows(begin, rows), candidates_.view().middle_rows(0, count), products);
        }
        for (std::size_t t = 0; t < count; ++t) {
            const float* with = kept ? p_.products.row(points_[t]) + begin : products.data() + t;
            const std::size_t step = kept ? 1 : count;
            const float square = p_.square[points_[t]];
            const float* own = p_.square.data() + begin;
            const float* before = distance.data() + begin;
            float* reached = reached_.row(t) + begin;
            for (std::size_t r = 0; r < rows; ++r) {
                // Rounding must not leave a centre at a distance from itself.
                const float gap = own[r] + square - 2.0f * with[r * step];
                reached[r] = std::min(before[r], gap > 1e-6f ? gap : 0.0f);
            }
        }
        for (std::size_t t = 0; t < count; t += together) add_costs(b, t, std::min(together, count - t));
    }

    // Several sums side by side: one alone waits for each of its additions.
    void add_costs(std::size_t b, std::size_t first, std::size_t count) {
        const std::size_t begin = b * block;
        std::array<const float*, together> reached;
        for (std::size_t k = 0; k < together; ++k) reached[k] = reached_.row(first + std::min(k, count - 1));
        std::array<double, together> sum{};
        for (std::size_t i = begin; i < std::min(begin + block, p_.x.rows); ++i) {
            for (std::size_t k = 0; k < together; ++k) sum[k] += static_cast<double>(p_.w[i]) * reached[k][i];
        }
        for (std::size_t k = 0; k < count; ++k) cost_[first + k][b] = sum[k];
    }

    const WeightedPoints& p_;
    std::size_t threads_;
    std::vector<std::size_t> points_;        // which point a candidate is
    Matrix candidates_;                      // [most,d]
    Matrix reached_;                         // distances with each candidate [most,n]
    std::vector<std::vector<double>> cost_;  // [most][blocks]
};

}  // namespace

Matrix seed_centres(const WeightedPoints& points, const SeedingOptions& o, std::span<float> distance) {
    const std::size_t n = points.x.rows;
    const bool from_nothing = std::isinf(distance.front());
    Random random(o.seed);
    std::vector<double> cumulative(n);
    Offers offers(points, o.trials, o.threads);
    Matrix centres(o.count, points.x.cols);
    std::size_t found = 0;
    for (; found < o.count; ++found) {
        const bool first = found == 0 && from_nothing;
        double total = 0;
        for (std::size_t i = 0; i < n; ++i)
            cumulative[i] = total += first ? points.w[i] : static_cast<double>(points.w[i]) * distance[i];
        if (!(total > 0)) break;
        const std::size_t tries = first ? 1 : o.trials;
        for (std::size_t t = 0; t < tries; ++t) offers.set(t, draw(cumulative, random.uniform() * total));
        const std::size_t best = offers.best(tries, distance);
        std::copy_n(offers.reached(best), n, distance.begin());
        std::copy_n(offers.centre(best), points.x.cols, centres.row(found));
    }
    return Matrix(centres.view().middle_rows(0, found));
}

}  // namespace marginmerge
