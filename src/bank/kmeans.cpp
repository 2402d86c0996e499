#include "bank/kmeans.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "bank/lloyd.h"
#include "bank/relocate.h"
#include "bank/seeding.h"
#include "core/parallel.h"
#include "core/random.h"

namespace marginmerge {

namespace {

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
    for (std::size_t iteration = 0; iteration < o.iterations; ++iteration) {
        const Sample batch = draw_sample(points, weights, o.mini_batch, random);
        Assignment a;
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

// Points tried for each centre of a start.
std::size_t trials_for(const KMeansOptions& o) {
    return 2 + static_cast<std::size_t>(std::log(static_cast<double>(o.clusters)));
}

// The best of several starts after Lloyd's iterations on these points, relocated. Where the points are too few to
// occupy several threads, starts run side by side; progress is then told afterwards, by the thread that called.
std::size_t best_start(const WeightedPoints& p, const KMeansOptions& o, std::size_t iterations, Matrix& centres,
                       Assignment& assignment, const std::function<void()>& step) {
    constexpr std::size_t few_points = 16384;
    const std::size_t trials = trials_for(o);
    struct Start {
        Matrix centres;
        Assignment assignment;
        std::size_t iterations = 0;
        std::size_t steps = 0;
    };
    std::vector<Start> starts(std::max<std::size_t>(o.initialisations, 1));
    const bool side_by_side = p.x.rows <= few_points && o.cluster == nullptr;
    const auto run = [&](std::size_t s, std::size_t threads, const std::function<void()>& tell) {
        Start& start = starts[s];
        std::vector<float> distance(p.x.rows, std::numeric_limits<float>::infinity());
        start.centres = seed_centres(p, {o.clusters, trials, mix_seed(o.seed, s), threads}, distance);
        start.iterations = lloyd(p, {iterations, threads, o.cluster, tell}, start.centres, start.assignment);
    };
    if (side_by_side)
        parallel_for(starts.size(), o.threads, [&](std::size_t s) { run(s, 1, [&, s] { ++starts[s].steps; }); });
    std::size_t best = 0;
    for (std::size_t s = 0; s < starts.size(); ++s) {
        if (!side_by_side) run(s, o.threads, step);
        for (std::size_t i = 0; i < starts[s].steps; ++i) step();
        if (starts[s].assignment.inertia < starts[best].assignment.inertia) best = s;
    }
    centres = std::move(starts[best].centres);
    assignment = std::move(starts[best].assignment);
    RelocateOptions relocate;
    relocate.rounds = o.rounds;
    relocate.seed = mix_seed(o.seed, 1'000'004);
    relocate.threads = o.threads;
    relocate.cluster = o.cluster;
    relocate.step = step;
    relocate_centres(p, relocate, centres, assignment);
    const std::size_t left = iterations - starts[best].iterations;
    return starts[best].iterations + lloyd(p, {left, o.threads, o.cluster, {}}, centres, assignment);
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
    WeightedPoints all(points, weights);
    KMeansResult r;
    r.mini_batch = points.rows > o.mini_batch_above;
    const std::size_t starts = std::max<std::size_t>(o.initialisations, 1);
    std::size_t done = 0;
    const std::size_t total =
        o.rounds + (r.mini_batch ? starts * sample_iterations + o.iterations + o.polish : starts * o.iterations);
    const auto step = [&] {
        if (o.progress) o.progress(std::min(++done, total), total);
    };
    Assignment a;
    if (r.mini_batch) {
        Random random(mix_seed(o.seed, 1'000'002));
        const Sample sample = draw_sample(points, weights, std::min(points.rows, 3 * o.mini_batch), random);
        Assignment of_sample;
        best_start(WeightedPoints(sample.points, sample.weights), o, sample_iterations, r.means, of_sample, step);
        mini_batches(points, weights, o, r.means, step);
        r.iterations = o.iterations + lloyd(all, {o.polish, o.threads, o.cluster, step}, r.means, a);
    } else {
        all.keep_products(starts * o.clusters * trials_for(o), o.threads);
        r.iterations = best_start(all, o, o.iterations, r.means, a, step);
    }
    r.inertia = a.inertia;
    drop_empty(a, r);
    if (o.progress) o.progress(total, total);
    return r;
}

}  // namespace marginmerge
