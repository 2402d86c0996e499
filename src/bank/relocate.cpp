#include "bank/relocate.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "bank/seeding.h"
#include "core/random.h"
#include "kernels/products.h"

namespace marginmerge {

namespace {

struct Merge {
    std::size_t kept, freed;
    double cost;  ///< by which the inertia grows
};

// For each centre the partner with which it merges most cheaply: Ward's W_a W_b / (W_a + W_b) |a - b|^2.
std::vector<Merge> cheapest_partners(ConstMatrix centres, std::span<const double> weight) {
    const std::size_t k = centres.rows;
    const PackedRows packed(centres);
    std::vector<float> square(k);
    for (std::size_t c = 0; c < k; ++c) square[c] = dot(centres.row(c), centres.row(c), centres.cols);
    Matrix products(1, k);
    std::vector<Merge> merges;
    for (std::size_t c = 0; c < k; ++c) {
        product(centres.middle_rows(c, 1), packed, products);
        Merge best{c, c, std::numeric_limits<double>::infinity()};
        for (std::size_t other = 0; other < k; ++other) {
            const double sum = weight[c] + weight[other];
            if (other == c || !(sum > 0)) continue;
            const double gap = std::max(0.0f, square[c] + square[other] - 2.0f * products(0, other));
            const double cost = weight[c] * weight[other] / sum * gap;
            if (cost < best.cost) best = {std::min(c, other), std::max(c, other), cost};
        }
        if (best.kept != best.freed) merges.push_back(best);
    }
    return merges;
}

// At most `count` of them, cheapest first, no centre in two.
std::vector<Merge> choose_merges(ConstMatrix centres, std::span<const double> weight, std::size_t count) {
    std::vector<Merge> all = cheapest_partners(centres, weight);
    std::stable_sort(all.begin(), all.end(), [](const Merge& a, const Merge& b) { return a.cost < b.cost; });
    std::vector<char> used(centres.rows, 0);
    std::vector<Merge> chosen;
    for (const Merge& m : all) {
        if (chosen.size() == count) break;
        if (used[m.kept] || used[m.freed]) continue;
        used[m.kept] = used[m.freed] = 1;
        chosen.push_back(m);
    }
    return chosen;
}

// Both centres of each pair to the mean of all their points.
void merge_pairs(const Assignment& a, std::span<const Merge> merges, Matrix& centres) {
    const std::size_t d = centres.cols();
    for (const Merge& m : merges) {
        const double sum = a.weight[m.kept] + a.weight[m.freed];
        for (std::size_t j = 0; j < d; ++j)
            centres(m.kept, j) = static_cast<float>((a.sums[m.kept * d + j] + a.sums[m.freed * d + j]) / sum);
        std::copy_n(centres.row(m.kept), d, centres.row(m.freed));
    }
}

// False when there were not enough distinct points to seed from.
bool try_round(const WeightedPoints& p, const RelocateOptions& o, std::size_t pairs, std::uint64_t seed,
               Matrix& centres, Assignment& a) {
    const auto merges = choose_merges(centres, a.weight, pairs);
    merge_pairs(a, merges, centres);
    assign_points(p, centres, o.threads, a, o.cluster);
    std::vector<float> distance(p.x.rows);
    for (std::size_t i = 0; i < distance.size(); ++i) distance[i] = a.distance(p, i);
    const Matrix seeds = seed_centres(p, {merges.size(), o.trials, seed, o.threads}, distance);
    if (seeds.rows() < merges.size()) return false;
    for (std::size_t m = 0; m < merges.size(); ++m)
        std::copy_n(seeds.row(m), seeds.cols(), centres.row(merges[m].freed));
    lloyd(p, {o.iterations, o.threads, o.cluster, {}}, centres, a);
    return true;
}

}  // namespace

void relocate_centres(const WeightedPoints& points, const RelocateOptions& o, Matrix& centres, Assignment& a) {
    std::size_t pairs = std::max<std::size_t>(centres.rows() / 8, 1);
    for (std::size_t round = 0; round < o.rounds; ++round) {
        Matrix trial = centres;
        Assignment assignment = a;
        if (!try_round(points, o, pairs, mix_seed(o.seed, round), trial, assignment)) return;
        if (assignment.inertia < a.inertia) {
            centres = std::move(trial);
            a = std::move(assignment);
        } else {
            pairs = std::max<std::size_t>(pairs / 2, 1);
        }
        if (o.step) o.step();
    }
}

}  // namespace marginmerge
