#include "kernels/page_rows.h"

#include <algorithm>
#include <cmath>

#include "kernels/elementwise.h"
#include "levels.h"

namespace marginmerge {
namespace {

class PageRows : public testing::EveryLevel {};
MARGINMERGE_EVERY_LEVEL(PageRows);

// The documented order of additions, plainly.
double plain_gain(const float* coverage, const float* covered, const double* omega, std::size_t m) {
    double part[8] = {};
    for (std::size_t t = 0; t < m; ++t)
        part[t % 8] += omega[t] * std::max(0.0, static_cast<double>(coverage[t]) - static_cast<double>(covered[t]));
    for (std::size_t half = 4; half > 0; half /= 2)
        for (std::size_t i = 0; i < half; ++i) part[i] += part[i + half];
    return part[0];
}

TEST_P(PageRows, CoverageGainIsTheSameBitsAtEveryLevel) {
    for (const std::size_t m : testing::odd_dimensions) {
        const Matrix x = testing::random_matrix(2, m, m);
        std::vector<double> omega(m);
        for (std::size_t t = 0; t < m; ++t) omega[t] = 1.0 / static_cast<double>(t + 3);
        EXPECT_EQ(coverage_gain(x.row(0), x.row(1), omega.data(), m), plain_gain(x.row(0), x.row(1), omega.data(), m))
            << m;
        EXPECT_EQ(coverage_gain(x.row(0), x.row(0), omega.data(), m), 0.0);
    }
}

TEST_P(PageRows, CoverageGainNeverRisesWithWhatIsCovered) {
    Matrix x = testing::random_matrix(2, 37, 5);
    std::vector<double> omega(37, 1.0 / 37);
    double last = coverage_gain(x.row(0), x.row(1), omega.data(), 37);
    Random random(1);
    for (int step = 0; step < 2000; ++step) {
        float& covered = x(1, random.below(37));
        covered = std::nextafter(covered, 10.0f);
        const double now = coverage_gain(x.row(0), x.row(1), omega.data(), 37);
        ASSERT_LE(now, last);
        last = now;
    }
}

TEST_P(PageRows, ResponsesAreClampedAndCovered) {
    for (const std::size_t m : testing::odd_dimensions) {
        const Matrix raw = testing::random_matrix(9, m, m);
        Matrix responses = raw, coverage(9, m);
        std::vector<float> best(m), gaps(m), expected(m);
        clamp_responses(responses, best.data());
        coverage_of_responses(responses, best.data(), 12.5f, coverage);
        std::vector<float> highest(m, -1.0f);
        for (std::size_t i = 0; i < 9; ++i) {
            for (std::size_t t = 0; t < m; ++t) {
                ASSERT_EQ(responses(i, t), std::clamp(raw(i, t), -1.0f, 1.0f)) << "m " << m;
                highest[t] = std::max(highest[t], responses(i, t));
            }
        }
        EXPECT_EQ(best, highest) << "m " << m;
        for (std::size_t i = 0; i < 9; ++i) {
            for (std::size_t t = 0; t < m; ++t) gaps[t] = std::max((responses(i, t) - best[t]) * 12.5f, -50.0f);
            exp_of(gaps, expected);
            for (std::size_t t = 0; t < m; ++t) ASSERT_EQ(coverage(i, t), expected[t]) << "m " << m;
        }
    }
}

TEST_P(PageRows, Statistics) {
    for (const std::size_t m : testing::odd_dimensions) {
        Matrix r = testing::random_matrix(1, m, m);
        for (float& x : r.flat()) x = std::tanh(x);
        std::vector<float> omega(m, 1.0f / static_cast<float>(m));
        double mean = 0, square = 0;
        for (std::size_t t = 0; t < m; ++t) mean += static_cast<double>(omega[t]) * r(0, t);
        for (std::size_t t = 0; t < m; ++t)
            square += static_cast<double>(omega[t]) * (r(0, t) - mean) * (r(0, t) - mean);
        const auto s = response_statistics(r.row(0), omega.data(), m);
        EXPECT_NEAR(s.mean, mean, 1e-6) << m;
        EXPECT_EQ(s.high, *std::max_element(r.row(0), r.row(0) + m)) << m;
        EXPECT_NEAR(s.deviation, std::sqrt(square), 2e-6) << m;
    }
}

TEST_P(PageRows, NeighbourMeansLeaveOutTheirOwnRowAndNotANumber) {
    for (const std::size_t members : {1u, 2u, 4u, 5u, 6u, 7u, 9u, 40u})
        for (const std::size_t columns : {1u, 3u, 8u, 9u, 17u})
            for (const std::size_t first : {0u, 2u}) {
                if (first + columns > members) continue;
                Matrix s = testing::random_matrix(members, columns, members);
                if (members > 6) s(members - 1, 0) = std::nanf("");
                std::vector<float> out(columns + 1, 7.0f);
                neighbour_means(s.data(), members, columns, first, out.data());
                for (std::size_t c = 0; c < columns; ++c) {
                    std::vector<float> values;
                    for (std::size_t j = 0; j < members; ++j)
                        if (j != first + c && !std::isnan(s(j, c))) values.push_back(s(j, c));
                    std::sort(values.rbegin(), values.rend());
                    values.resize(std::min<std::size_t>(values.size(), 5));
                    float sum = 0.0f;
                    for (const float x : values) sum += x;
                    ASSERT_EQ(out[c], values.empty() ? 0.0f : sum / static_cast<float>(values.size()))
                        << members << " " << columns << " " << c;
                }
                ASSERT_EQ(out[columns], 7.0f);
            }
}

TEST_P(PageRows, DenseLayer) {
    for (const std::size_t outputs : {16u, 32u})
        for (const std::size_t inputs : {1u, 15u, 32u})
            for (const std::size_t rows : {1u, 2u, 3u, 7u, 8u, 9u, 64u}) {
                const Matrix x = testing::random_matrix(rows, inputs, rows),
                             w = testing::random_matrix(inputs, outputs, inputs);
                const Matrix b = testing::random_matrix(1, outputs, 3);
                Matrix out(rows, outputs);
                dense_layer(x.data(), rows, inputs, w.data(), b.data(), outputs, out.data());
                for (std::size_t r = 0; r < rows; ++r)
                    for (std::size_t o = 0; o < outputs; ++o) {
                        double sum = b(0, o);
                        for (std::size_t i = 0; i < inputs; ++i) sum += static_cast<double>(x(r, i)) * w(i, o);
                        ASSERT_NEAR(out(r, o), sum, 1e-4);
                    }
            }
}

}  // namespace
}  // namespace marginmerge
