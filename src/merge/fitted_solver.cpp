#include "merge/fitted_solver.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/products.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "merge/fitted_solver.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace marginmerge {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::CappedTag<float, 16>;
using Vec = hn::Vec<Tag>;

constexpr std::size_t probe_block = 64;  // probes whose maxima are found together; a multiple of 16

// Responses of k vectors to the probes, row by row. A whole vector may be loaded at the end of a row: there is room
// behind the last one.
struct Responses {
    const float* rows = nullptr;
    std::size_t k = 0;
    std::size_t probes = 0;
    const float* row(std::size_t c) const { return rows + c * probes; }
};

// For probes [at, at+probe_block): best over c of G[c] + eta * D[c] (without D: of G), and the winner.
HWY_INLINE void block_max(const Responses& g, const Responses* change, float eta, std::size_t at, std::size_t count,
                          float* HWY_RESTRICT best, std::int32_t* HWY_RESTRICT winner) {
    const Tag d;
    const hn::RebindToSigned<Tag> di;
    const std::size_t lanes = hn::Lanes(d);
    const Vec e = hn::Set(d, eta);
    for (std::size_t i = 0; i + lanes <= probe_block && i < count; i += lanes) {
        Vec high = hn::LoadU(d, g.row(0) + at + i);
        if (change != nullptr) high = hn::MulAdd(e, hn::LoadU(d, change->row(0) + at + i), high);
        auto who = hn::Zero(di);
        for (std::size_t c = 1; c < g.k; ++c) {
            Vec value = hn::LoadU(d, g.row(c) + at + i);
            if (change != nullptr) value = hn::MulAdd(e, hn::LoadU(d, change->row(c) + at + i), value);
            const auto larger = hn::Gt(value, high);
            high = hn::IfThenElse(larger, value, high);
            if (winner != nullptr) {
                who = hn::IfThenElse(hn::RebindMask(di, larger), hn::Set(di, static_cast<std::int32_t>(c)), who);
            }
        }
        hn::StoreU(high, d, best + i);
        if (winner != nullptr) hn::StoreU(who, di, winner + i);
    }
}

// sum_t w_t (max_c (G + eta D)[c,t] - b_t)^2; fills winners and residuals when asked to.
double fit_term(const Matrix& responses, const Matrix* changes, std::size_t k, float eta, const float* targets,
                const float* weights, std::size_t probes, std::int32_t* winners, float* residuals) {
    const Responses g{responses.data(), k, probes};
    const Responses change{changes != nullptr ? changes->data() : nullptr, k, probes};
    HWY_ALIGN float best[probe_block];
    HWY_ALIGN std::int32_t winner[probe_block];
    double sum = 0;
    for (std::size_t at = 0; at < probes; at += probe_block) {
        const std::size_t count = std::min(probe_block, probes - at);
        block_max(g, changes != nullptr ? &change : nullptr, eta, at, count, best,
                  winners != nullptr ? winner : nullptr);
        float part = 0;
        for (std::size_t i = 0; i < count; ++i) {
            const float r = best[i] - targets[at + i];
            part += weights[at + i] * r * r;
            if (winners != nullptr) {
                winners[at + i] = winner[i];
                residuals[at + i] = r;
            }
        }
        sum += part;
    }
    return sum;
}

HWY_INLINE float inner_product(Tag d, const float* HWY_RESTRICT a, const float* HWY_RESTRICT b, std::size_t n) {
    Vec s0 = hn::Zero(d), s1 = hn::Zero(d);
    const std::size_t lanes = hn::Lanes(d);
    std::size_t i = 0;
    for (; i + 2 * lanes <= n; i += 2 * lanes) {
        s0 = hn::MulAdd(hn::Load(d, a + i), hn::Load(d, b + i), s0);
        s1 = hn::MulAdd(hn::Load(d, a + i + lanes), hn::Load(d, b + i + lanes), s1);
    }
    for (; i < n; i += lanes) s0 = hn::MulAdd(hn::Load(d, a + i), hn::Load(d, b + i), s0);
    return hn::GetLane(hn::SumOfLanes(d, hn::Add(s0, s1)));
}

HWY_INLINE void add_scaled(Tag d, float scale, const float* HWY_RESTRICT a, float* HWY_RESTRICT out, std::size_t n) {
    const Vec s = hn::Set(d, scale);
    for (std::size_t i = 0; i < n; i += hn::Lanes(d))
        hn::Store(hn::MulAdd(s, hn::Load(d, a + i), hn::Load(d, out + i)), d, out + i);
}

// Probes are taken four at a time: the vectors they are multiplied with and added to are loaded once for all four. Each
// sum still takes them in order.
constexpr std::size_t probes_together = 4;

// out += sum over N probes u of weight (u . p) u.
template <std::size_t N>
HWY_INLINE void add_curvature(const float* const (&u)[N], const float* HWY_RESTRICT weights,
                              const float* HWY_RESTRICT p, float* HWY_RESTRICT out, std::size_t n) {
    const Tag d;
    const std::size_t lanes = hn::Lanes(d);
    Vec s0[N], s1[N];
    HWY_UNROLL(4)
    for (std::size_t k = 0; k < N; ++k) s0[k] = s1[k] = hn::Zero(d);
    std::size_t i = 0;
    for (; i + 2 * lanes <= n; i += 2 * lanes) {
        const Vec p0 = hn::Load(d, p + i), p1 = hn::Load(d, p + i + lanes);
        HWY_UNROLL(4)
        for (std::size_t k = 0; k < N; ++k) {
            s0[k] = hn::MulAdd(hn::Load(d, u[k] + i), p0, s0[k]);
            s1[k] = hn::MulAdd(hn::Load(d, u[k] + i + lanes), p1, s1[k]);
        }
    }
    for (; i < n; i += lanes) {
        const Vec p0 = hn::Load(d, p + i);
        for (std::size_t k = 0; k < N; ++k) s0[k] = hn::MulAdd(hn::Load(d, u[k] + i), p0, s0[k]);
    }
    Vec scale[N];
    HWY_UNROLL(4)
    for (std::size_t k = 0; k < N; ++k)
        scale[k] = hn::Set(d, weights[k] * hn::GetLane(hn::SumOfLanes(d, hn::Add(s0[k], s1[k]))));
    for (i = 0; i < n; i += lanes) {
        Vec sum = hn::Load(d, out + i);
        HWY_UNROLL(4)
        for (std::size_t k = 0; k < N; ++k) sum = hn::MulAdd(scale[k], hn::Load(d, u[k] + i), sum);
        hn::Store(sum, d, out + i);
    }
}

// right -= sum over N probes of weight residual u, diagonal += sum of weight u^2.
template <std::size_t N>
HWY_INLINE void add_probes(const float* const (&u)[N], const float* HWY_RESTRICT weights,
                           const float* HWY_RESTRICT residuals, float* HWY_RESTRICT right, float* HWY_RESTRICT diagonal,
                           std::size_t n) {
    const Tag d;
    Vec wr[N], wt[N];
    HWY_UNROLL(4)
    for (std::size_t k = 0; k < N; ++k) {
        wr[k] = hn::Set(d, -weights[k] * residuals[k]);
        wt[k] = hn::Set(d, weights[k]);
    }
    for (std::size_t i = 0; i < n; i += hn::Lanes(d)) {
        Vec r = hn::Load(d, right + i), g = hn::Load(d, diagonal + i);
        HWY_UNROLL(4)
        for (std::size_t k = 0; k < N; ++k) {
            const Vec x = hn::Load(d, u[k] + i);
            r = hn::MulAdd(wr[k], x, r);
            g = hn::MulAdd(hn::Mul(wt[k], x), x, g);
        }
        hn::Store(r, d, right + i);
        hn::Store(g, d, diagonal + i);
    }
}

// Calls f(addresses of N probes, first) for the `count` probes at `rows` of `tokens`, N at most probes_together.
template <class F>
HWY_INLINE void for_probes(const float* tokens, std::size_t stride, const std::int32_t* rows, std::size_t count,
                           const F& f) {
    const auto address = [&](std::size_t t) { return tokens + static_cast<std::size_t>(rows[t]) * stride; };
    std::size_t t = 0;
    for (; t + probes_together <= count; t += probes_together) {
        const float* const u[probes_together] = {address(t), address(t + 1), address(t + 2), address(t + 3)};
        f(u, t);
    }
    for (; t < count; ++t) {
        const float* const u[1] = {address(t)};
        f(u, t);
    }
}

// One vector's ridge regression: (sum w u u' + lambda I) step = -(sum w r u + lambda offset), by conjugate
// gradients with the diagonal as preconditioner. Its probes are the `count` rows of `tokens`, each `stride` long and
// zero beyond d, whose numbers stand in `rows`; weights and residuals are in that order. `scratch` has five rows of
// that length; offset = x - x0; step receives the solution.
void solve_one(const float* tokens, const std::int32_t* rows, const float* weights, const float* residuals,
               std::size_t count, std::size_t stride, float lambda, const float* offset, int steps, float* scratch,
               float* step) {
    const Tag d;
    float* r = scratch;
    float* diagonal = scratch + stride;
    float* z = scratch + 2 * stride;
    float* p = scratch + 3 * stride;
    float* ap = scratch + 4 * stride;
    for (std::size_t i = 0; i < stride; ++i) {
        r[i] = -lambda * offset[i];
        diagonal[i] = lambda;
        step[i] = 0;
    }
    for_probes(tokens, stride, rows, count, [&](const auto& u, std::size_t t) HWY_ATTR {
        add_probes(u, weights + t, residuals + t, r, diagonal, stride);
    });
    for (std::size_t i = 0; i < stride; ++i) p[i] = z[i] = r[i] / diagonal[i];
    double rz = inner_product(d, r, z, stride);
    const double first = rz;
    for (int s = 0; s < steps && rz > 1e-6 * first && rz > 1e-20; ++s) {
        for (std::size_t i = 0; i < stride; ++i) ap[i] = lambda * p[i];
        for_probes(tokens, stride, rows, count,
                   [&](const auto& u, std::size_t t) HWY_ATTR { add_curvature(u, weights + t, p, ap, stride); });
        const double curvature = inner_product(d, p, ap, stride);
        if (!(curvature > 0)) break;
        const auto a = static_cast<float>(rz / curvature);
        add_scaled(d, a, p, step, stride);
        add_scaled(d, -a, ap, r, stride);
        for (std::size_t i = 0; i < stride; ++i) z[i] = r[i] / diagonal[i];
        const double next = inner_product(d, r, z, stride);
        const auto keep = static_cast<float>(next / rz);
        for (std::size_t i = 0; i < stride; ++i) p[i] = z[i] + keep * p[i];
        rz = next;
    }
}

}  // namespace HWY_NAMESPACE
}  // namespace marginmerge
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace marginmerge {

HWY_EXPORT(fit_term);
HWY_EXPORT(solve_one);

namespace {

constexpr std::size_t row_multiple = 16;
constexpr int halvings = 4;

std::size_t round_up(std::size_t n, std::size_t multiple) { return (n + multiple - 1) / multiple * multiple; }

// out [k, P] = x u', with room behind it for whole vectors.
void responses_of(ConstMatrix x, ConstMatrix probes, Matrix& out) {
    constexpr std::size_t room = 64;
    out.reshape(x.rows + (room + probes.rows - 1) / probes.rows, probes.rows);
    product(x, probes, {out.data(), x.rows, probes.rows});
    std::fill_n(out.row(x.rows), room, 0.0F);
}

}  // namespace

double fit_vectors(const FitProblem& problem, FitWorkspace& w, MutMatrix x) {
    const std::size_t probes = problem.probes.rows, k = problem.start.rows, d = problem.start.cols;
    const std::size_t stride = round_up(d, row_multiple);
    std::memcpy(x.data, problem.start.data, k * d * sizeof(float));
    if (probes == 0) return 0;
    const auto lambda = static_cast<float>(problem.ridge / static_cast<double>(k));
    const float* targets = problem.targets.data();
    const float* weights = problem.weights.data();
    // The first term of E after a step eta along `change`; `keep` remembers winners and residuals.
    const auto term = [&](const Matrix* change, double eta, bool keep) {
        return HWY_DYNAMIC_DISPATCH(fit_term)(w.responses, change, k, static_cast<float>(eta), targets, weights, probes,
                                              keep ? w.winner.data() : nullptr, keep ? w.residual.data() : nullptr);
    };

    w.winner.resize(probes);
    w.residual.resize(probes);
    w.order.resize(probes);
    w.packed_weight.resize(probes);
    w.packed_residual.resize(probes);
    w.step.reshape(k, d);
    w.vectors.reshape(7, stride);
    // The solver wants rows of whole aligned vectors: usually the probes have them.
    const float* tokens = problem.probes.data;
    if (d != stride || reinterpret_cast<std::uintptr_t>(tokens) % (row_multiple * sizeof(float)) != 0) {
        w.packed.reshape(probes, stride);
        for (std::size_t t = 0; t < probes; ++t) {
            std::memcpy(w.packed.row(t), problem.probes.row(t), d * sizeof(float));
            std::fill(w.packed.row(t) + d, w.packed.row(t) + stride, 0.0F);
        }
        tokens = w.packed.data();
    }
    responses_of(x, problem.probes, w.responses);
    double energy = term(nullptr, 0, true);
    std::vector<std::size_t> first(k + 1);
    for (int round = 0; round < problem.rounds; ++round) {
        // Probes grouped by winner.
        std::fill(first.begin(), first.end(), std::size_t{0});
        for (const auto c : w.winner) ++first[static_cast<std::size_t>(c) + 1];
        for (std::size_t c = 0; c < k; ++c) first[c + 1] += first[c];
        std::vector<std::size_t> next(first.begin(), first.end() - 1);
        for (std::size_t t = 0; t < probes; ++t) {
            const std::size_t at = next[static_cast<std::size_t>(w.winner[t])]++;
            w.order[at] = static_cast<std::int32_t>(t);
            w.packed_weight[at] = weights[t];
            w.packed_residual[at] = w.residual[t];
        }
        float* offset = w.vectors.row(5);
        float* step = w.vectors.row(6);
        double square = 0, cross = 0, length = 0;  // |x-x0|^2, (x-x0).step, |step|^2
        for (std::size_t c = 0; c < k; ++c) {
            std::fill(offset, offset + stride, 0.0F);
            for (std::size_t j = 0; j < d; ++j) offset[j] = x(c, j) - problem.start(c, j);
            HWY_DYNAMIC_DISPATCH(solve_one)
            (tokens, w.order.data() + first[c], w.packed_weight.data() + first[c], w.packed_residual.data() + first[c],
             first[c + 1] - first[c], stride, lambda, offset, problem.inner, w.vectors.row(0), step);
            for (std::size_t j = 0; j < d; ++j) {
                square += static_cast<double>(offset[j]) * offset[j];
                cross += static_cast<double>(offset[j]) * step[j];
                length += static_cast<double>(step[j]) * step[j];
            }
            std::memcpy(w.step.row(c), step, d * sizeof(float));
        }
        responses_of(w.step, problem.probes, w.change);
        double best = energy, taken = 0, eta = 1;
        for (int i = 0; i < halvings; ++i, eta *= 0.5) {
            const double value = term(&w.change, eta, false) + lambda * (square + 2 * eta * cross + eta * eta * length);
            if (value < best) {
                best = value;
                taken = eta;
            } else if (taken > 0) {
                break;
            }
        }
        if (taken == 0) break;
        const auto scale = static_cast<float>(taken);
        for (std::size_t i = 0; i < k * d; ++i) x.data[i] += scale * w.step.data()[i];
        for (std::size_t i = 0; i < k * probes; ++i) w.responses.data()[i] += scale * w.change.data()[i];
        const double gained = energy - best;
        energy = best;
        if (gained < 1e-4 * energy || round + 1 == problem.rounds) break;
        term(nullptr, 0, true);
    }
    return energy;
}

}  // namespace marginmerge
#endif
