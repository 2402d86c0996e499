#include "bank/lloyd.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/parallel.h"
#include "core/share.h"
#include "kernels/products.h"

namespace marginmerge {

namespace {

constexpr std::size_t block_points = 8192;  // a unit of reduction; changing it changes rounding
constexpr std::size_t tile_points = 128;    // scores of a tile stay in cache

struct Partial {
    std::vector<double> weight;
    std::vector<double> sums;
    double inertia = 0;
};

struct Scratch {
    Matrix scores;
    Matrix sums;
    std::vector<float> weight;
};

// The nearest centre of each point of a tile: argmax x.c - |c|^2/2.
void assign_tile(const WeightedPoints& p, const PackedRows& centres, std::span<const float> half, std::size_t begin,
                 std::size_t count, Scratch& scratch, Assignment& out) {
    const std::size_t k = centres.rows;
    scratch.scores.reshape(count, k);
    product(p.x.middle_rows(begin, count), centres, scratch.scores);
    for (std::size_t r = 0; r < count; ++r) {
        float* score = scratch.scores.row(r);
        for (std::size_t c = 0; c < k; ++c) score[c] -= half[c];
        float top = score[0];
        for (std::size_t c = 1; c < k; ++c) top = std::max(top, score[c]);
        out.label[begin + r] = static_cast<std::int32_t>(std::find(score, score + k, top) - score);
        out.distance[begin + r] = std::max(0.0f, p.square[begin + r] - 2.0f * top);
    }
}

void sum_block(const WeightedPoints& p, std::size_t begin, std::size_t count, std::size_t k, Scratch& scratch,
               const Assignment& out, Partial& partial) {
    scratch.sums.reshape(k, p.x.cols);
    std::fill_n(scratch.sums.data(), scratch.sums.size(), 0.0f);
    add_to_clusters(p.x.middle_rows(begin, count), std::span(out.label).subspan(begin, count),
                    p.w.subspan(begin, count), scratch.sums);
    partial.sums.assign(scratch.sums.flat().begin(), scratch.sums.flat().end());
    partial.weight.assign(k, 0.0);
    partial.inertia = 0;
    for (std::size_t i = begin; i < begin + count; ++i) {
        partial.weight[static_cast<std::size_t>(out.label[i])] += p.w[i];
        partial.inertia += static_cast<double>(p.w[i]) * out.distance[i];
    }
}

}  // namespace

WeightedPoints::WeightedPoints(ConstMatrix points, std::span<const float> weights)
    : x(points), w(weights), square(points.rows) {
    for (std::size_t i = 0; i < x.rows; ++i) square[i] = dot(x.row(i), x.row(i), x.cols);
}

void assign_points(const WeightedPoints& points, ConstMatrix centres, std::size_t threads, Assignment& out,
                   Cluster* cluster) {
    const std::size_t n = points.x.rows;
    const std::size_t k = centres.rows;
    std::vector<float> half(k);
    for (std::size_t c = 0; c < k; ++c) half[c] = 0.5f * dot(centres.row(c), centres.row(c), centres.cols);
    out.label.resize(n);
    out.distance.resize(n);
    const PackedRows packed(centres);
    const std::size_t blocks = (n + block_points - 1) / block_points;
    std::vector<Partial> partials(blocks);
    std::vector<Scratch> scratch(resolve_threads(threads));
    const auto body = [&](std::size_t b, std::size_t worker) {
        const std::size_t begin = b * block_points;
        const std::size_t end = std::min(begin + block_points, n);
        for (std::size_t t = begin; t < end; t += tile_points)
            assign_tile(points, packed, half, t, std::min(tile_points, end - t), scratch[worker], out);
        sum_block(points, begin, end - begin, k, scratch[worker], out, partials[b]);
    };
    const auto part = [&](auto& values, std::size_t b) {
        return std::span(values).subspan(b * block_points, std::min(block_points, n - b * block_points));
    };
    const auto put = [&](std::size_t b, ByteWriter& to) {
        to.put(std::span<const std::int32_t>(part(out.label, b)));
        to.put(std::span<const float>(part(out.distance, b)));
        to.put(std::span<const double>(partials[b].weight));
        to.put(std::span<const double>(partials[b].sums));
        to.put(partials[b].inertia);
    };
    const auto take = [&](std::size_t b, ByteReader& from) {
        from.take(std::span<std::int32_t>(part(out.label, b)));
        from.take(std::span<float>(part(out.distance, b)));
        partials[b].weight.resize(k);
        partials[b].sums.resize(k * points.x.cols);
        from.take(std::span<double>(partials[b].weight));
        from.take(std::span<double>(partials[b].sums));
        partials[b].inertia = from.take<double>();
    };
    share_for(cluster, blocks, threads, body, put, take);
    out.weight.assign(k, 0.0);
    out.sums.assign(k * points.x.cols, 0.0);
    out.inertia = 0;
    for (const Partial& partial : partials) {
        for (std::size_t c = 0; c < k; ++c) out.weight[c] += partial.weight[c];
        for (std::size_t j = 0; j < out.sums.size(); ++j) out.sums[j] += partial.sums[j];
        out.inertia += partial.inertia;
    }
}

double move_centres(const WeightedPoints& points, const Assignment& a, Matrix& centres) {
    const std::size_t d = centres.cols();
    std::vector<std::size_t> empty;
    double moved = 0;
    for (std::size_t c = 0; c < centres.rows(); ++c) {
        if (!(a.weight[c] > 0)) {
            empty.push_back(c);
            continue;
        }
        for (std::size_t j = 0; j < d; ++j) {
            const auto mean = static_cast<float>(a.sums[c * d + j] / a.weight[c]);
            const double step = static_cast<double>(mean) - centres(c, j);
            moved += step * step;
            centres(c, j) = mean;
        }
    }
    if (empty.empty()) return moved;
    const auto cost = [&](std::size_t i) { return static_cast<double>(points.w[i]) * a.distance[i]; };
    std::vector<std::size_t> worst(points.x.rows);
    std::iota(worst.begin(), worst.end(), std::size_t{0});
    const std::size_t count = std::min(empty.size(), worst.size());
    std::partial_sort(worst.begin(), worst.begin() + static_cast<std::ptrdiff_t>(count), worst.end(),
                      [&](std::size_t x, std::size_t y) { return cost(x) != cost(y) ? cost(x) > cost(y) : x < y; });
    for (std::size_t e = 0; e < count; ++e) {
        if (!(cost(worst[e]) > 0)) break;  // every point already is a centre
        std::copy_n(points.x.row(worst[e]), d, centres.row(empty[e]));
        moved += a.distance[worst[e]];
    }
    return moved;
}

}  // namespace marginmerge
