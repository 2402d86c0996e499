#include "kernels/products.h"

#include <algorithm>
#include <cmath>

namespace marginmerge {

float dot(const float* a, const float* b, std::size_t d) {
    float lanes[8] = {};
    std::size_t j = 0;
    for (; j + 8 <= d; j += 8)
        for (std::size_t l = 0; l < 8; ++l) lanes[l] += a[j + l] * b[j + l];
    float sum = ((lanes[0] + lanes[4]) + (lanes[1] + lanes[5])) + ((lanes[2] + lanes[6]) + (lanes[3] + lanes[7]));
    for (; j < d; ++j) sum += a[j] * b[j];
    return sum;
}

void product(ConstMatrix a, ConstMatrix b, MutMatrix out) {
    for (std::size_t i = 0; i < a.rows; ++i)
        for (std::size_t j = 0; j < b.rows; ++j) out(i, j) = dot(a.row(i), b.row(j), a.cols);
}

void responses(ConstMatrix z, ConstMatrix v, MutMatrix out, std::span<float> best) {
    product(z, v, out);
    for (std::size_t t = 0; t < z.rows; ++t) {
        float* row = out.row(t);
        float top = -1.0f;
        for (std::size_t i = 0; i < v.rows; ++i) {
            row[i] = std::clamp(row[i], -1.0f, 1.0f);
            top = std::max(top, row[i]);
        }
        best[t] = top;
    }
}

void nearest(ConstMatrix v, ConstMatrix centres, std::span<std::int32_t> index, std::span<float> similarity) {
    for (std::size_t i = 0; i < v.rows; ++i) {
        std::int32_t winner = 0;
        float top = dot(v.row(i), centres.row(0), v.cols);
        for (std::size_t c = 1; c < centres.rows; ++c) {
            const float s = dot(v.row(i), centres.row(c), v.cols);
            if (s > top) {
                top = s;
                winner = static_cast<std::int32_t>(c);
            }
        }
        index[i] = winner;
        similarity[i] = top;
    }
}

void add_to_clusters(ConstMatrix v, std::span<const std::int32_t> cluster, std::span<const float> weight,
                     MutMatrix sums) {
    for (std::size_t i = 0; i < v.rows; ++i) {
        if (cluster[i] < 0) continue;
        float* sum = sums.row(static_cast<std::size_t>(cluster[i]));
        const float* row = v.row(i);
        for (std::size_t j = 0; j < v.cols; ++j) sum[j] += weight[i] * row[j];
    }
}

void normalise_rows(MutMatrix m) {
    for (std::size_t i = 0; i < m.rows; ++i) {
        const float norm = std::sqrt(dot(m.row(i), m.row(i), m.cols));
        if (norm < 1e-12f) continue;
        for (float& x : m.row_span(i)) x /= norm;
    }
}

}  // namespace marginmerge
