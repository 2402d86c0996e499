#include "kernels/maxsim.h"

#include <limits>
#include <vector>

#include "kernels/convert.h"
#include "kernels/products.h"

namespace marginmerge {

PreparedQuery::PreparedQuery(VectorsView query) : tokens_(query.rows), dim_(query.dim), rows_(to_float(query)) {}

void maxsim_winners(const PreparedQuery& query, VectorsView document, std::span<float> best,
                    std::span<std::int32_t> winner) {
    const Matrix v = to_float(document);
    for (std::size_t i = 0; i < query.tokens(); ++i) {
        best[i] = -std::numeric_limits<float>::infinity();
        winner[i] = -1;
        for (std::size_t j = 0; j < v.rows(); ++j) {
            const float s = dot(query.rows().row(i), v.row(j), query.dim());
            if (s > best[i]) {
                best[i] = s;
                winner[i] = static_cast<std::int32_t>(j);
            }
        }
    }
}

float maxsim(const PreparedQuery& query, VectorsView document) {
    if (document.rows == 0) return -std::numeric_limits<float>::infinity();
    std::vector<float> best(query.tokens());
    std::vector<std::int32_t> winner(query.tokens());
    maxsim_winners(query, document, best, winner);
    float sum = 0;
    for (const float b : best) sum += b;
    return sum;
}

void maxsim_many(const PreparedQuery& query, VectorsView vectors, std::span<const std::int64_t> offsets,
                 std::span<float> out) {
    for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
        const auto first = static_cast<std::size_t>(offsets[i]);
        out[i] = maxsim(query, vectors.middle_rows(first, static_cast<std::size_t>(offsets[i + 1]) - first));
    }
}

const char* kernel_name() { return "SCALAR"; }

}  // namespace marginmerge
