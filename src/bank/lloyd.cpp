#include "bank/lloyd.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "core/parallel.h"
#include "core/share.h"
#include "kernels/products.h"

namespace marginmerge {

namespace {

// A unit of work and of reduction: small enough that a few thousand points occupy every thread, and large where there
// are many. Changing it changes rounding.
std::size_t block_points(std::size_t points) { return points <= 65'536 ? 1024 : 8192; }

constexpr std::size_t tile_points = 128;  // rows copied side by side stay in cache

struct Partial {
    std::vector<double> weight;
    std::vector<float> sums;
    double inertia = 0;
};

struct Scratch {
    std::vector<std::size_t> fresh, settled;
    Matrix rows;
    std::vector<std::int32_t> index;
    std::vector<float> score;
};

// Some of the centres, each with -|c|^2/2 behind its last column: the inner product with (x, 1) is then largest for
// the centre nearest to x.
struct Candidates {
    Candidates(ConstMatrix centres, std::vector<std::int32_t> which)
        : number(std::move(which)), packed(rows(centres)) {}

    std::vector<std::int32_t> number;  ///< ascending
    PackedRows packed;

private:
    Matrix rows(ConstMatrix centres) const {
        Matrix m(number.size(), centres.cols + 1);
        for (std::size_t i = 0; i < number.size(); ++i) {
            const float* c = centres.row(static_cast<std::size_t>(number[i]));
            std::copy_n(c, centres.cols, m.row(i));
            m(i, centres.cols) = -0.5f * dot(c, c, centres.cols);
        }
        return m;
    }
};

// Moves each of the points `which` to the best of the candidates if that is better than what it has.
void compare(const WeightedPoints& p, std::span<const std::size_t> which, const Candidates& candidates, Scratch& s,
             Assignment& out) {
    const std::size_t d = p.x.cols;
    if (candidates.number.empty()) return;
    for (std::size_t begin = 0; begin < which.size(); begin += tile_points) {
        const auto tile = which.subspan(begin, std::min(tile_points, which.size() - begin));
        s.rows.reshape(tile.size(), d + 1);
        for (std::size_t r = 0; r < tile.size(); ++r) {
            std::copy_n(p.x.row(tile[r]), d, s.rows.row(r));
            s.rows(r, d) = 1.0f;
        }
        s.index.resize(tile.size());
        s.score.resize(tile.size());
        nearest(s.rows, candidates.packed, s.index, s.score);
        for (std::size_t r = 0; r < tile.size(); ++r) {
            const std::int32_t c = candidates.number[static_cast<std::size_t>(s.index[r])];
            const std::size_t i = tile[r];
            if (s.score[r] < out.score[i] || (s.score[r] == out.score[i] && c > out.label[i])) continue;
            out.label[i] = c;
            out.score[i] = s.score[r];
        }
    }
}

// The points of a block to their centres. A point whose centre has moved is compared with all, another one only with
// those that moved.
void assign_block(const WeightedPoints& p, std::size_t begin, std::size_t end, const Candidates& all,
                  const Candidates& moved, std::span<const char> has_moved, Scratch& s, Assignment& out) {
    s.fresh.clear();
    s.settled.clear();
    for (std::size_t i = begin; i < end; ++i) {
        if (out.label[i] >= 0 && !has_moved[static_cast<std::size_t>(out.label[i])]) {
            s.settled.push_back(i);
            continue;
        }
        s.fresh.push_back(i);
        out.label[i] = std::numeric_limits<std::int32_t>::max();
        out.score[i] = -std::numeric_limits<float>::infinity();
    }
    compare(p, s.fresh, all, s, out);
    compare(p, s.settled, moved, s, out);
}

void sum_block(const WeightedPoints& p, std::size_t begin, std::size_t count, std::size_t k, const Assignment& out,
               Partial& partial) {
    partial.sums.assign(k * p.x.cols, 0.0f);
    add_to_clusters(p.x.middle_rows(begin, count), std::span(out.label).subspan(begin, count),
                    p.w.subspan(begin, count), {partial.sums.data(), k, p.x.cols});
    partial.weight.assign(k, 0.0);
    partial.inertia = 0;
    for (std::size_t i = begin; i < begin + count; ++i) {
        partial.weight[static_cast<std::size_t>(out.label[i])] += p.w[i];
        partial.inertia += static_cast<double>(p.w[i]) * out.distance(p, i);
    }
}

// 1 for each centre that is not where it was.
std::vector<char> find_moved(ConstMatrix before, ConstMatrix now) {
    std::vector<char> moved(now.rows, 1);
    if (before.rows != now.rows || before.cols != now.cols) return moved;
    for (std::size_t c = 0; c < now.rows; ++c)
        moved[c] = std::memcmp(before.row(c), now.row(c), now.cols * sizeof(float)) != 0;
    return moved;
}

}  // namespace

WeightedPoints::WeightedPoints(ConstMatrix points, std::span<const float> weights)
    : x(points), w(weights), square(points.rows) {
    for (std::size_t i = 0; i < x.rows; ++i) square[i] = dot(x.row(i), x.row(i), x.cols);
}

void WeightedPoints::keep_products(std::size_t draws, std::size_t threads) {
    constexpr std::size_t most_points = 4096;  // 64 MB
    constexpr std::size_t block = 48;          // three of the widest vectors
    if (x.rows > most_points || draws < x.rows) return;
    products.reshape(x.rows, x.rows);
    parallel_for((x.rows + block - 1) / block, threads, [&](std::size_t b) {
        const std::size_t begin = b * block, rows = std::min(block, x.rows - begin);
        product(x.middle_rows(begin, rows), x, {products.row(begin), rows, x.rows});
    });
}

void assign_points(const WeightedPoints& points, ConstMatrix centres, std::size_t threads, Assignment& out,
                   Cluster* cluster) {
    const std::size_t n = points.x.rows;
    const std::size_t k = centres.rows;
    const std::vector<char> has_moved = find_moved(out.centres, centres);
    std::vector<std::int32_t> every(k), some;
    std::iota(every.begin(), every.end(), 0);
    std::copy_if(every.begin(), every.end(), std::back_inserter(some),
                 [&](std::int32_t c) { return has_moved[static_cast<std::size_t>(c)] != 0; });
    if (some.empty()) return;
    if (some.size() == k) {
        out.label.assign(n, -1);
        out.score.resize(n);
    }
    out.centres = Matrix(centres);
    const Candidates all(centres, std::move(every)), moved(centres, std::move(some));
    const std::size_t block = block_points(n);
    const std::size_t blocks = (n + block - 1) / block;
    std::vector<Partial> partials(blocks);
    std::vector<Scratch> scratch(resolve_threads(threads));
    const auto body = [&](std::size_t b, std::size_t worker) {
        const std::size_t begin = b * block;
        const std::size_t end = std::min(begin + block, n);
        assign_block(points, begin, end, all, moved, has_moved, scratch[worker], out);
        sum_block(points, begin, end - begin, k, out, partials[b]);
    };
    const auto part = [&](auto& values, std::size_t b) {
        return std::span(values).subspan(b * block, std::min(block, n - b * block));
    };
    const auto put = [&](std::size_t b, ByteWriter& to) {
        to.put(std::span<const std::int32_t>(part(out.label, b)));
        to.put(std::span<const float>(part(out.score, b)));
        to.put(std::span<const double>(partials[b].weight));
        to.put(std::span<const float>(partials[b].sums));
        to.put(partials[b].inertia);
    };
    const auto take = [&](std::size_t b, ByteReader& from) {
        from.take(std::span<std::int32_t>(part(out.label, b)));
        from.take(std::span<float>(part(out.score, b)));
        partials[b].weight.resize(k);
        partials[b].sums.resize(k * points.x.cols);
        from.take(std::span<double>(partials[b].weight));
        from.take(std::span<float>(partials[b].sums));
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
    const auto cost = [&](std::size_t i) { return static_cast<double>(points.w[i]) * a.distance(points, i); };
    std::vector<std::size_t> worst(points.x.rows);
    std::iota(worst.begin(), worst.end(), std::size_t{0});
    const std::size_t count = std::min(empty.size(), worst.size());
    std::partial_sort(worst.begin(), worst.begin() + static_cast<std::ptrdiff_t>(count), worst.end(),
                      [&](std::size_t x, std::size_t y) { return cost(x) != cost(y) ? cost(x) > cost(y) : x < y; });
    for (std::size_t e = 0; e < count; ++e) {
        if (!(cost(worst[e]) > 0)) break;  // every point already is a centre
        std::copy_n(points.x.row(worst[e]), d, centres.row(empty[e]));
        moved += a.distance(points, worst[e]);
    }
    return moved;
}

std::size_t lloyd(const WeightedPoints& points, const LloydOptions& o, Matrix& centres, Assignment& a) {
    std::size_t done = 0;
    assign_points(points, centres, o.threads, a, o.cluster);
    for (; done < o.iterations; ++done) {
        const double moved = move_centres(points, a, centres);
        assign_points(points, centres, o.threads, a, o.cluster);
        if (o.step) o.step();
        if (moved < 1e-10 * static_cast<double>(centres.rows())) break;
    }
    return done;
}

}  // namespace marginmerge
