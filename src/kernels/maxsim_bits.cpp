#include "kernels/maxsim_bits.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/convert.h"

namespace marginmerge {

void encode_bits(VectorsView rows, std::uint8_t* codes, float* scales) {
    const std::size_t stride = bit_row_bytes(rows.dim);
    Matrix row;
    for (std::size_t i = 0; i < rows.rows; ++i) {
        row.reshape(1, rows.dim);
        to_float(rows.middle_rows(i, 1), row.data());
        std::fill_n(codes + i * stride, stride, std::uint8_t{0});
        double absolute = 0.0;
        double square = 0.0;
        for (std::size_t j = 0; j < rows.dim; ++j) {
            const float x = row.data()[j];
            absolute += std::abs(static_cast<double>(x));
            square += static_cast<double>(x) * x;
            if (x >= 0.0f)
                codes[i * stride + j / 8] = static_cast<std::uint8_t>(codes[i * stride + j / 8] | (1U << (j % 8)));
        }
        scales[i] = absolute > 0.0 ? static_cast<float>(square / absolute) : 0.0f;
    }
}

void decode_bits(BitsView rows, float* out) {
    const std::size_t stride = bit_row_bytes(rows.dim);
    for (std::size_t i = 0; i < rows.rows; ++i)
        for (std::size_t j = 0; j < rows.dim; ++j)
            out[i * rows.dim + j] = (rows.codes[i * stride + j / 8] >> (j % 8)) & 1U ? rows.scales[i] : -rows.scales[i];
}

PreparedBitsQuery::PreparedBitsQuery(VectorsView query)
    : tokens_(query.rows), dim_(query.dim), values_(query.rows * query.dim), scales_(query.rows) {
    const Matrix rows = to_float(query);
    for (std::size_t i = 0; i < tokens_; ++i) {
        float top = 0.0f;
        for (std::size_t j = 0; j < dim_; ++j) top = std::max(top, std::abs(rows(i, j)));
        scales_[i] = top / 255.0f;
        const float inverse = top > 0.0f ? 255.0f / top : 0.0f;
        for (std::size_t j = 0; j < dim_; ++j)
            values_[i * dim_ + j] =
                static_cast<std::int16_t>(std::clamp(std::nearbyint(rows(i, j) * inverse), -255.0f, 255.0f));
    }
}

float maxsim(const PreparedBitsQuery& query, BitsView document) {
    if (document.rows == 0) return -std::numeric_limits<float>::infinity();
    const std::size_t stride = bit_row_bytes(query.dim());
    float sum = 0.0f;
    for (std::size_t i = 0; i < query.tokens(); ++i) {
        const std::int16_t* u = query.values().data() + i * query.dim();
        float best = -std::numeric_limits<float>::infinity();
        for (std::size_t j = 0; j < document.rows; ++j) {
            const std::uint8_t* bits = document.codes + j * stride;
            std::int32_t total = 0;
            for (std::size_t t = 0; t < query.dim(); ++t) total += (bits[t / 8] >> (t % 8)) & 1U ? u[t] : -u[t];
            best = std::max(best, static_cast<float>(total) * document.scales[j]);
        }
        sum += best * query.scales()[i];
    }
    return sum;
}

void maxsim_many(const PreparedBitsQuery& query, BitsView vectors, std::span<const std::int64_t> offsets,
                 std::span<float> out) {
    for (std::size_t i = 0; i < out.size(); ++i) {
        const auto first = static_cast<std::size_t>(offsets[i]);
        out[i] = maxsim(query, vectors.middle_rows(first, static_cast<std::size_t>(offsets[i + 1]) - first));
    }
}

}  // namespace marginmerge
