// Coverage anchors: greedy maximisation of F(A) = sum_t omega_t max_{a in A} C_ta, exactly, with
// lazy evaluation.
#include <algorithm>

#include "core/fail.h"
#include "kernels/page_rows.h"
#include "select/registry.h"

namespace marginmerge {

namespace {

using Candidate = AnchorWorkspace::Candidate;

// What is picked first: the larger gain, the lower patch number on a tie.
bool before(const Candidate& a, const Candidate& b) { return a.gain != b.gain ? a.gain > b.gain : a.patch < b.patch; }

// Puts the changed top of the heap where it belongs.
void sift_down(std::vector<Candidate>& heap) {
    const Candidate moving = heap.front();
    std::size_t hole = 0;
    for (std::size_t child = 1; child < heap.size(); child = 2 * hole + 1) {
        if (child + 1 < heap.size() && before(heap[child + 1], heap[child])) ++child;
        if (before(moving, heap[child])) break;
        heap[hole] = heap[child];
        hole = child;
    }
    heap[hole] = moving;
}

void remove_top(std::vector<Candidate>& heap) {
    heap.front() = heap.back();
    heap.pop_back();
    if (!heap.empty()) sift_down(heap);
}

}  // namespace

void select_coverage(const AnchorRequest& request, AnchorWorkspace& w, AnchorSelection& out) {
    if (request.responses == nullptr)
        fail(ErrorCode::invalid_argument, "anchors coverage: expected a model with prototypes");
    const PageResponses& page = *request.responses;
    const std::size_t n = request.vectors.rows;
    const std::size_t m = page.omega.size();
    w.omega.assign(page.omega.begin(), page.omega.end());
    w.covered.assign(m, 0.0f);
    out.order.clear();
    out.gains.clear();

    // A gain never rises from one pick to the next, not even in the last bit (coverage_gain), so a stale
    // gain is an upper bound and a fresh one on top is the largest: exactly what an exhaustive search
    // would pick.
    w.heap.resize(n);
    for (std::size_t i = 0; i < n; ++i)
        w.heap[i] = {coverage_gain(page.coverage.row(i), w.covered.data(), w.omega.data(), m),
                     static_cast<std::int32_t>(i), 0};
    std::make_heap(w.heap.begin(), w.heap.end(), [](const Candidate& a, const Candidate& b) { return before(b, a); });
    while (out.order.size() < request.count && !w.heap.empty()) {
        const auto picks = static_cast<std::int32_t>(out.order.size());
        Candidate& top = w.heap.front();
        const float* coverage = page.coverage.row(static_cast<std::size_t>(top.patch));
        if (top.fresh != picks) {
            top.gain = coverage_gain(coverage, w.covered.data(), w.omega.data(), m);
            top.fresh = picks;
            sift_down(w.heap);
            continue;
        }
        if (!(top.gain > 0)) break;
        out.order.push_back(top.patch);
        out.gains.push_back(top.gain);
        for (std::size_t t = 0; t < m; ++t) w.covered[t] = std::max(w.covered[t], coverage[t]);
        remove_top(w.heap);
    }
    out.reasoned = out.order.size();
    if (out.order.size() < request.count) request.fill->extend(request, w, out);
    out.gains.resize(out.order.size(), 0.0);
}

}  // namespace marginmerge
