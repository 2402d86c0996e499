#include "select/page_responses.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "kernels/elementwise.h"
#include "kernels/maxsim.h"
#include "kernels/products.h"

namespace marginmerge {

namespace {

// Clamps every response and keeps the column maxima.
void clamp_and_best(Matrix& responses, std::vector<float>& best) {
    const std::size_t m = responses.cols();
    best.assign(m, -1.0f);
    for (std::size_t i = 0; i < responses.rows(); ++i) {
        float* row = responses.row(i);
        for (std::size_t t = 0; t < m; ++t) {
            row[t] = std::min(std::max(row[t], -1.0f), 1.0f);
            best[t] = std::max(best[t], row[t]);
        }
    }
}

// Prototypes are the same for page after page: a thread packs them again only when they, or the kernel, have changed.
const PackedRows& packed_prototypes(ConstMatrix z) {
    thread_local Matrix from;
    thread_local std::string kernel;
    thread_local PackedRows packed{ConstMatrix()};
    const bool same = from.rows() == z.rows && from.cols() == z.cols && kernel == kernel_name() &&
                      std::memcmp(from.data(), z.data, from.size() * sizeof(float)) == 0;
    if (!same) {
        from = Matrix(z);
        kernel = kernel_name();
        packed = PackedRows(z);
    }
    return packed;
}

}  // namespace

void compute_responses(ConstMatrix v, ConstMatrix z, double tau_c, PageResponses& out) {
    const std::size_t n = v.rows;
    const std::size_t m = z.rows;
    out.responses.reshape(n, m);
    out.coverage.reshape(n, m);
    out.relevance.resize(n);
    product(v, packed_prototypes(z), out.responses);
    clamp_and_best(out.responses, out.best);
    const auto scale = static_cast<float>(1.0 / tau_c);
    const float* best = out.best.data();
    for (std::size_t i = 0; i < n; ++i) {
        const float* response = out.responses.row(i);
        float* coverage = out.coverage.row(i);
        for (std::size_t t = 0; t < m; ++t) coverage[t] = std::max((response[t] - best[t]) * scale, -50.0f);
        exp_of({coverage, m}, {coverage, m});
        out.relevance[i] = dot(coverage, out.omega.data(), m);
    }
}

}  // namespace marginmerge
