#include "kernels/maxsim_int8.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/convert.h"

namespace marginmerge {

void encode_int8(VectorsView rows, std::int8_t* codes, float* scales) {
    Matrix row;
    for (std::size_t i = 0; i < rows.rows; ++i) {
        row.reshape(1, rows.dim);
        to_float(rows.middle_rows(i, 1), row.data());
        float top = 0.0f;
        for (const float x : row.flat()) top = std::max(top, std::abs(x));
        scales[i] = top / 127.0f;
        const float inverse = top > 0.0f ? 127.0f / top : 0.0f;
        for (std::size_t j = 0; j < rows.dim; ++j)
            codes[i * rows.dim + j] =
                static_cast<std::int8_t>(std::clamp(std::nearbyint(row.data()[j] * inverse), -127.0f, 127.0f));
    }
}

void decode_int8(Int8View rows, float* out) {
    for (std::size_t i = 0; i < rows.rows; ++i)
        for (std::size_t j = 0; j < rows.dim; ++j)
            out[i * rows.dim + j] = rows.scales[i] * static_cast<float>(rows.codes[i * rows.dim + j]);
}

PreparedInt8Query::PreparedInt8Query(VectorsView query)
    : tokens_(query.rows), dim_(query.dim), codes_(query.rows * query.dim), scales_(query.rows) {
    encode_int8(query, codes_.data(), scales_.data());
}

float maxsim(const PreparedInt8Query& query, Int8View document) {
    if (document.rows == 0) return -std::numeric_limits<float>::infinity();
    const Int8View u = query.rows();
    float sum = 0.0f;
    for (std::size_t i = 0; i < u.rows; ++i) {
        float best = -std::numeric_limits<float>::infinity();
        for (std::size_t j = 0; j < document.rows; ++j) {
            std::int32_t total = 0;
            for (std::size_t t = 0; t < u.dim; ++t) total += u.codes[i * u.dim + t] * document.codes[j * u.dim + t];
            best = std::max(best, static_cast<float>(total) * document.scales[j]);
        }
        sum += best * u.scales[i];
    }
    return sum;
}

void maxsim_many(const PreparedInt8Query& query, Int8View vectors, std::span<const std::int64_t> offsets,
                 std::span<float> out) {
    for (std::size_t i = 0; i < out.size(); ++i) {
        const auto first = static_cast<std::size_t>(offsets[i]);
        out[i] = maxsim(query, vectors.middle_rows(first, static_cast<std::size_t>(offsets[i + 1]) - first));
    }
}

}  // namespace marginmerge
