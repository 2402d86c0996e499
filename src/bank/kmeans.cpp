#include "bank/kmeans.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "bank/lloyd.h"
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

// Greedy k-means++: several candidates are drawn for each centre by weight times squared distance, and
// the one that leaves the least cost is taken. Stops early when every point is a centre.
Matrix plusplus(const WeightedPoints& p, std::size_t clusters, std::uint64_t seed, std::size_t threads) {
    const std::size_t n = p.x.rows;
    const std::size_t d = p.x.cols;
    const std::size_t trials = 2 + static_cast<std::size_t>(std::log(static_cast<double>(clusters)));
    constexpr std::size_t block = 2048;
    const std::size_t blocks = (n + block - 1) / block;
    Random random(seed);
    std::vector<double> cumulative(n);
    std::vector<float> distance(n, std::numeric_limits<float>::max());
    Matrix offered(trials, n);
    Matrix candidates(trials, d);
    Matrix centres(clusters, d);
    std::vector<std::vector<double>> cost(trials, std::vector<double>(blocks));
    std::size_t found = 0;
    for (; found < clusters; ++found) {
        double total = 0;
        for (std::size_t i = 0; i < n; ++i)
            cumulative[i] = total += found == 0 ? p.w[i] : static_cast<double>(p.w[i]) * distance[i];
        if (!(total > 0)) break;
        const std::size_t tries = found == 0 ? 1 : trials;
        for (std::size_t t = 0; t < tries; ++t)
            std::copy_n(p.x.row(draw(cumulative, random.uniform() * total)), d, candidates.row(t));
        parallel_for(blocks, threads, [&](std::size_t b) {
            const std::size_t begin = b * block;
            const std::size_t count = std::min(block, n - begin);
            Matrix products(count, tries);
            product(p.x.middle_rows(begin, count), candidates.view().middle_rows(0, tries), products);
            for (std::size_t t = 0; t < tries; ++t) {
                const float square = dot(candidates.row(t), candidates.row(t), d);
                double sum = 0;
                for (std::size_t r = 0; r < count; ++r) {
                    const std::size_t i = begin + r;
                    // Rounding must not leave a centre at a distance from itself.
                    const float gap = p.square[i] + square - 2.0f * products(r, t);
                    const float reached = std::min(distance[i], gap > 1e-6f ? gap : 0.0f);
                    offered(t, i) = reached;
                    sum += static_cast<double>(p.w[i]) * reached;
                }
                cost[t][b] = sum;
            }
        });
        std::size_t best = 0;
        double least = std::numeric_limits<double>::infinity();
        for (std::size_t t = 0; t < tries; ++t) {
            const double sum = std::accumulate(cost[t].begin(), cost[t].end(), 0.0);
            if (sum < least) least = sum, best = t;
        }
        std::copy_n(offered.row(best), n, distance.begin());
        std::copy_n(candidates.row(best), d, centres.row(found));
    }
    return Matrix(centres.view().middle_rows(0, found));
}

// Lloyd's iterations until nothing moves noticeably. Returns how many.
std::size_t lloyd(const WeightedPoints& p, std::size_t iterations, const KMeansOptions& o, Matrix& centres,
                  Assignment& a, const std::function<void()>& step) {
    std::size_t done = 0;
    for (; done < iterations; ++done) {
        assign_points(p, centres, o.threads, a, o.cluster);
        const double moved = move_centres(p, a, centres);
        if (step) step();
        if (moved < 1e-10 * static_cast<double>(centres.rows())) break;
    }
    return done;
}

struct Sample {
    Matrix points;
    std::vector<float> weights;
};

Sample draw_sample(ConstMatrix points, std::span<const float> weights, std::size_t count, Random& random) {
    Sample s{Matrix(count, points.cols), std::vector<float>(count)};
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t from = random.below(points.rows);
        std::copy_n(points.row(from), points.cols, s.points.row(i));
        s.weights[i] = weights[from];
    }
    return s;
}

// Mini-batch steps: each centre is the running weighted mean of every point it was ever given.
void mini_batches(ConstMatrix points, std::span<const float> weights, const KMeansOptions& o, Matrix& centres,
                  const std::function<void()>& step) {
    const std::size_t d = centres.cols();
    Random random(mix_seed(o.seed, 1'000'003));
    std::vector<double> seen(centres.rows(), 0.0);
    Assignment a;
    for (std::size_t iteration = 0; iteration < o.iterations; ++iteration) {
        const Sample batch = draw_sample(points, weights, o.mini_batch, random);
        assign_points(WeightedPoints(batch.points, batch.weights), centres, o.threads, a, o.cluster);
        for (std::size_t c = 0; c < centres.rows(); ++c) {
            if (!(a.weight[c] > 0)) continue;
            seen[c] += a.weight[c];
            const double rate = a.weight[c] / seen[c];
            for (std::size_t j = 0; j < d; ++j)
                centres(c, j) += static_cast<float>(rate * (a.sums[c * d + j] / a.weight[c] - centres(c, j)));
        }
        if (step) step();
    }
}

// The best of several starts after Lloyd's iterations on these points. Where the points are too few to occupy several
// threads, starts run side by side; progress is then told afterwards, by the thread that called.
std::size_t best_start(const WeightedPoints& p, const KMeansOptions& o, std::size_t iterations, Matrix& centres,
                       const std::function<void()>& step) {
    constexpr std::size_t few_points = 16384;
    struct Start {
        Matrix centres;
        double inertia = 0;
        std::size_t iterations = 0;
        std::size_t steps = 0;
    };
    std::vector<Start> starts(std::max<std::size_t>(o.initialisations, 1));
    const bool side_by_side = p.x.rows <= few_points && o.cluster == nullptr;
    const auto run = [&](std::size_t s, const KMeansOptions& own, const std::function<void()>& tell) {
        Start& start = starts[s];
        start.centres = plusplus(p, o.clusters, mix_seed(o.seed, s), own.threads);
        Assignment a;
        start.iterations = lloyd(p, iterations, own, start.centres, a, tell);
        assign_points(p, start.centres, own.threads, a, own.cluster);
        start.inertia = a.inertia;
    };
    if (side_by_side) {
        KMeansOptions own = o;
        own.threads = 1;
        parallel_for(starts.size(), o.threads, [&](std::size_t s) { run(s, own, [&, s] { ++starts[s].steps; }); });
    }
    double least = std::numeric_limits<double>::infinity();
    std::size_t used = 0;
    for (std::size_t s = 0; s < starts.size(); ++s) {
        if (!side_by_side) run(s, o, step);
        if (step) {
            for (std::size_t i = 0; i < starts[s].steps; ++i) step();
        }
        if (starts[s].inertia >= least) continue;
        least = starts[s].inertia;
        centres = std::move(starts[s].centres);
        used = starts[s].iterations;
    }
    return used;
}

// Drops centres that no point belongs to (possible only when points coincide).
void drop_empty(const Assignment& a, KMeansResult& r) {
    std::vector<std::int32_t> number(a.weight.size(), -1);
    std::size_t kept = 0;
    for (std::size_t c = 0; c < number.size(); ++c) {
        if (!(a.weight[c] > 0)) continue;
        if (kept != c) std::copy_n(r.means.row(c), r.means.cols(), r.means.row(kept));
        number[c] = static_cast<std::int32_t>(kept++);
    }
    if (kept != number.size()) r.means = Matrix(ConstMatrix(r.means).middle_rows(0, kept));
    r.labels = a.label;
    for (auto& label : r.labels) label = number[static_cast<std::size_t>(label)];
}

}  // namespace

KMeansResult weighted_kmeans(ConstMatrix points, std::span<const float> weights, const KMeansOptions& o) {
    constexpr std::size_t sample_iterations = 10;
    const WeightedPoints all(points, weights);
    KMeansResult r;
    r.mini_batch = points.rows > o.mini_batch_above;
    const std::size_t starts = std::max<std::size_t>(o.initialisations, 1);
    std::size_t done = 0;
    const std::size_t total =
        r.mini_batch ? starts * sample_iterations + o.iterations + o.polish : starts * o.iterations;
    const auto step = [&] {
        if (o.progress) o.progress(std::min(++done, total), total);
    };
    Assignment a;
    if (r.mini_batch) {
        Random random(mix_seed(o.seed, 1'000'002));
        const Sample sample = draw_sample(points, weights, std::min(points.rows, 3 * o.mini_batch), random);
        best_start(WeightedPoints(sample.points, sample.weights), o, sample_iterations, r.means, step);
        mini_batches(points, weights, o, r.means, step);
        r.iterations = o.iterations + lloyd(all, o.polish, o, r.means, a, step);
    } else {
        r.iterations = best_start(all, o, o.iterations, r.means, step);
    }
    assign_points(all, r.means, o.threads, a, o.cluster);
    r.inertia = a.inertia;
    drop_empty(a, r);
    if (o.progress) o.progress(total, total);
    return r;
}

}  // namespace marginmerge
