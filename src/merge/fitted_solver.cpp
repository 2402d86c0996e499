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

// right -= sum over N probes of weight residual u, diagonal += sum of weight u^2, mean += sum of weight u.
template <std::size_t N>
HWY_INLINE void add_probes(const float* const (&u)[N], const float* HWY_RESTRICT weights,
                           const float* HWY_RESTRICT residuals, float* HWY_RESTRICT right, float* HWY_RESTRICT diagonal,
                           float* HWY_RESTRICT mean, std::size_t n) {
    const Tag d;
    Vec wr[N], wt[N];
    HWY_UNROLL(4)
    for (std::size_t k = 0; k < N; ++k) {
        wr[k] = hn::Set(d, -weights[k] * residuals[k]);
        wt[k] = hn::Set(d, weights[k]);
    }
    for (std::size_t i = 0; i < n; i += hn::Lanes(d)) {
        Vec r = hn::Load(d, right + i), g = hn::Load(d, diagonal + i), m = hn::Load(d, mean + i);
        HWY_UNROLL(4)
        for (std::size_t k = 0; k < N; ++k) {
            const Vec x = hn::Load(d, u[k] + i);
            r = hn::MulAdd(wr[k], x, r);
            const Vec weighted = hn::Mul(wt[k], x);
            m = hn::Add(m, weighted);
            g = hn::MulAdd(weighted, x, g);
        }
        hn::Store(r, d, right + i);
        hn::Store(g, d, diagonal + i);
        hn::Store(m, d, mean + i);
    }
}

// Calls f(addresses of N probes, first) for the `count` rows of `tokens`, N at most probes_together.
template <class F>
HWY_INLINE void for_probes(const float* tokens, std::size_t stride, std::size_t count, const F& f) {
    const auto address = [&](std::size_t t) { return tokens + t * stride; };
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

// An approximate inverse of sum w u u' + lambda I: the probes that a vector wins lie around their mean, so their second
// moment is nearly a diagonal beside the mean's own direction.
class Preconditioner {
public:
    // `diagonal` of the matrix becomes that beside the mean; `sum` is sum w u and becomes its image. All [n].
    Preconditioner(float* diagonal, float* sum, double mass, std::size_t n) : diagonal_(diagonal), image_(sum), n_(n) {
        constexpr float least = 1e-6F;
        if (!(mass > 0)) return;
        const auto share = static_cast<float>(1 / mass);
        double along = mass;
        for (std::size_t i = 0; i < n; ++i) {
            const float whole = diagonal[i];
            diagonal[i] = std::max(whole - share * sum[i] * sum[i], least * whole);
            const float image = sum[i] / diagonal[i];
            along += static_cast<double>(sum[i]) * image;
            sum[i] = image;
        }
        scale_ = static_cast<float>(1 / along);
    }
    HWY_INLINE void operator()(const float* HWY_RESTRICT r, float* HWY_RESTRICT z) const {
        const float along = scale_ * inner_product(Tag(), r, image_, n_);
        for (std::size_t i = 0; i < n_; ++i) z[i] = r[i] / diagonal_[i] - along * image_[i];
    }

private:
    const float* diagonal_;
    const float* image_;
    float scale_ = 0;
    std::size_t n_;
};

// One vector's ridge regression: (sum w u u' + lambda I) step = -(sum w r u + lambda offset), by preconditioned
// conjugate gradients. Its probes are the `count` rows of `tokens`, each `stride` long and zero beyond d. `scratch` has
// rows of that length; offset = x - x0; step receives the solution.
void solve_one(const float* tokens, const float* weights, const float* residuals, std::size_t count, std::size_t stride,
               float lambda, const float* offset, int steps, float* scratch, float* step) {
    const Tag d;
    float* r = scratch;
    float* diagonal = scratch + stride;
    float* mean = scratch + 2 * stride;
    float* z = scratch + 3 * stride;
    float* p = scratch + 4 * stride;
    float* ap = scratch + 5 * stride;
    double mass = 0;
    for (std::size_t t = 0; t < count; ++t) mass += weights[t];
    for (std::size_t i = 0; i < stride; ++i) {
        r[i] = -lambda * offset[i];
        diagonal[i] = lambda;
        mean[i] = 0;
        step[i] = 0;
    }
    for_probes(tokens, stride, count, [&](const auto& u, std::size_t t) HWY_ATTR {
        add_probes(u, weights + t, residuals + t, r, diagonal, mean, stride);
    });
    const Preconditioner precondition(diagonal, mean, mass, stride);
    precondition(r, z);
    std::memcpy(p, z, stride * sizeof(float));
    double rz = inner_product(d, r, z, stride);
    const double first = rz;
    for (int s = 0; s < steps && rz > 1e-6 * first && rz > 1e-20; ++s) {
        for (std::size_t i = 0; i < stride; ++i) ap[i] = lambda * p[i];
        for_probes(tokens, stride, count,
                   [&](const auto& u, std::size_t t) HWY_ATTR { add_curvature(u, weights + t, p, ap, stride); });
        const double curvature = inner_product(d, p, ap, stride);
        if (!(curvature > 0)) break;
        const auto a = static_cast<float>(rz / curvature);
        add_scaled(d, a, p, step, stride);
        add_scaled(d, -a, ap, r, stride);
        precondition(r, z);
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
constexpr std::size_t scratch_rows = 6;  // of solve_one
constexpr int halvings = 4;

std::size_t round_up(std::size_t n, std::size_t multiple) { return (n + multiple - 1) / multiple * multiple; }

// out [k, P] = x u', with room behind it for whole vectors.
void responses_of(ConstMatrix x, const FitProblem& problem, Matrix& out) {
    constexpr std::size_t room = 64;
    const std::size_t probes = problem.probes.rows;
    out.reshape(x.rows + (room + probes - 1) / probes, probes);
    const MutMatrix inside{out.data(), x.rows, probes};
    if (problem.lanes != nullptr) {
        product(x, *problem.lanes, inside);
    } else {
        product(x, problem.probes, inside);
    }
    std::fill_n(out.row(x.rows), room, 0.0F);
}

double square_distance(const float* a, const float* b, std::size_t n) {
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) sum += static_cast<double>(a[i] - b[i]) * (a[i] - b[i]);
    return sum;
}

}  // namespace

double fit_vectors(const FitProblem& problem, FitWorkspace& w, MutMatrix x) {
    const std::size_t probes = problem.probes.rows, k = problem.start.rows, d = problem.start.cols;
    const std::size_t stride = round_up(d, row_multiple);
    const ConstMatrix begin = problem.begin.rows == k ? problem.begin : problem.start;
    std::memcpy(x.data, begin.data, k * d * sizeof(float));
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
    w.packed_weight.resize(probes);
    w.packed_residual.resize(probes);
    w.step.reshape(k, d);
    w.order.resize(probes);
    w.vectors.reshape(scratch_rows + 2, stride);
    responses_of(x, problem, w.responses);
    double energy = term(nullptr, 0, true) + lambda * square_distance(x.data, problem.start.data, k * d);
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
        float* offset = w.vectors.row(scratch_rows);
        float* step = w.vectors.row(scratch_rows + 1);
        double square = 0, cross = 0, length = 0;  // |x-x0|^2, (x-x0).step, |step|^2
        for (std::size_t c = 0; c < k; ++c) {
            std::fill(offset, offset + stride, 0.0F);
            for (std::size_t j = 0; j < d; ++j) offset[j] = x(c, j) - problem.start(c, j);
            // One vector's probes are gone through several times: side by side they stay in the cache.
            const std::size_t won = first[c + 1] - first[c];
            w.packed.reshape(won, stride);
            for (std::size_t t = 0; t < won; ++t) {
                const float* u = problem.probes.row(static_cast<std::size_t>(w.order[first[c] + t]));
                std::memcpy(w.packed.row(t), u, d * sizeof(float));
                std::fill(w.packed.row(t) + d, w.packed.row(t) + stride, 0.0F);
            }
            HWY_DYNAMIC_DISPATCH(solve_one)
            (w.packed.data(), w.packed_weight.data() + first[c], w.packed_residual.data() + first[c], won, stride,
             lambda, offset, problem.inner, w.vectors.row(0), step);
            for (std::size_t j = 0; j < d; ++j) {
                square += static_cast<double>(offset[j]) * offset[j];
                cross += static_cast<double>(offset[j]) * step[j];
                length += static_cast<double>(step[j]) * step[j];
            }
            std::memcpy(w.step.row(c), step, d * sizeof(float));
        }
        responses_of(w.step, problem, w.change);
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
