#include "select/page_responses.h"

#include <cstring>
#include <string>

#include "kernels/maxsim.h"
#include "kernels/page_rows.h"
#include "kernels/products.h"

namespace marginmerge {

namespace {

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
    out.best.resize(m);
    clamp_responses(out.responses, out.best.data());
    coverage_of_responses(out.responses, out.best.data(), static_cast<float>(1.0 / tau_c), out.coverage);
    for (std::size_t i = 0; i < n; ++i) out.relevance[i] = dot(out.coverage.row(i), out.omega.data(), m);
}

}  // namespace marginmerge
