// Coverage anchors: greedy maximisation of F(A) = sum_t omega_t max_{a in A} C_ta, exactly, with
// lazy evaluation.
#include <algorithm>

#include "core/fail.h"
#include "select/registry.h"

namespace marginmerge {

namespace {

using Candidate = AnchorWorkspace::Candidate;

// Heap order: largest gain on top, lower patch number on a tie.
bool later(const Candidate& a, const Candidate& b) { return a.gain != b.gain ? a.gain < b.gain : a.patch > b.patch; }

// sum_t omega_t max(0, C_t - covered_t), in float64. The order of additions is fixed and every
// operation is monotone under rounding, so a gain never rises from one pick to the next even in
// the last bit: that makes lazy evaluation pick exactly what an exhaustive search would.
double gain_of(const float* coverage, const double* covered, const double* omega, std::size_t m) {
    double lanes[4] = {};
    std::size_t t = 0;
    for (; t + 4 <= m; t += 4)
        for (std::size_t l = 0; l < 4; ++l)
            lanes[l] += omega[t + l] * std::max(0.0, static_cast<double>(coverage[t + l]) - covered[t + l]);
    for (; t < m; ++t) lanes[0] += omega[t] * std::max(0.0, static_cast<double>(coverage[t]) - covered[t]);
    return (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]);
}

}  // namespace

void select_coverage(const AnchorRequest& request, AnchorWorkspace& w, AnchorSelection& out) {
    if (request.responses == nullptr)
        fail(ErrorCode::invalid_argument, "anchors coverage: expected a model with prototypes");
    const PageResponses& page = *request.responses;
    const std::size_t n = request.vectors.rows;
    const std::size_t m = page.omega.size();
    w.omega.assign(page.omega.begin(), page.omega.end());
    w.covered.assign(m, 0.0);
    out.order.clear();
    out.gains.clear();

    w.heap.resize(n);
    for (std::size_t i = 0; i < n; ++i)
        w.heap[i] = {gain_of(page.coverage.row(i), w.covered.data(), w.omega.data(), m), static_cast<std::int32_t>(i),
                     0};
    std::make_heap(w.heap.begin(), w.heap.end(), later);
    while (out.order.size() < request.count && !w.heap.empty()) {
        const auto picks = static_cast<std::int32_t>(out.order.size());
        std::pop_heap(w.heap.begin(), w.heap.end(), later);
        Candidate& top = w.heap.back();
        const float* coverage = page.coverage.row(static_cast<std::size_t>(top.patch));
        if (top.fresh != picks) {
            top.gain = gain_of(coverage, w.covered.data(), w.omega.data(), m);
            top.fresh = picks;
            std::push_heap(w.heap.begin(), w.heap.end(), later);
            continue;
        }
        if (!(top.gain > 0)) break;
        out.order.push_back(top.patch);
        out.gains.push_back(top.gain);
        for (std::size_t t = 0; t < m; ++t) w.covered[t] = std::max(w.covered[t], static_cast<double>(coverage[t]));
        w.heap.pop_back();
    }
    out.reasoned = out.order.size();
    if (out.order.size() < request.count) request.fill->extend(request, w, out);
    out.gains.resize(out.order.size(), 0.0);
}

}  // namespace marginmerge
