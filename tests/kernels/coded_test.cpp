// The int8 and sign-bit stores.
#include <cmath>

#include "kernels/convert.h"
#include "kernels/maxsim_bits.h"
#include "kernels/maxsim_int8.h"
#include "kernels/reference.h"
#include "levels.h"

namespace marginmerge {
namespace {

using testing::odd_dimensions;
using testing::random_matrix;

class Coded : public testing::EveryLevel {};
MARGINMERGE_EVERY_LEVEL(Coded);

struct Int8Codes {
    std::vector<std::int8_t> codes;
    std::vector<float> scales;
    Int8View view;
};

Int8Codes int8_codes(const Matrix& m) {
    Int8Codes c{std::vector<std::int8_t>(m.size()), std::vector<float>(m.rows()), {}};
    encode_int8(VectorsView(m.view()), c.codes.data(), c.scales.data());
    c.view = {c.codes.data(), c.scales.data(), m.rows(), m.cols()};
    return c;
}

struct BitCodes {
    std::vector<std::uint8_t> codes;
    std::vector<float> scales;
    BitsView view;
};

BitCodes bit_codes(const Matrix& m) {
    BitCodes c{std::vector<std::uint8_t>(m.rows() * bit_row_bytes(m.cols())), std::vector<float>(m.rows()), {}};
    encode_bits(VectorsView(m.view()), c.codes.data(), c.scales.data());
    c.view = {c.codes.data(), c.scales.data(), m.rows(), m.cols()};
    return c;
}

const std::vector<std::int64_t> ragged = {0, 0, 1, 6, 6, 8, 21, 22, 23, 63, 70, 70, 143, 143};

template <class Query, class View>
void expect_equal_reference(const Query& query, View view) {
    std::vector<float> scores(ragged.size() - 1, 99.0f);
    maxsim_many(query, view, ragged, scores);
    for (std::size_t i = 0; i < scores.size(); ++i) {
        const auto first = static_cast<std::size_t>(ragged[i]);
        const View document = view.middle_rows(first, static_cast<std::size_t>(ragged[i + 1]) - first);
        ASSERT_EQ(scores[i], reference::maxsim(query, document)) << "d " << view.dim << " document " << i;
        ASSERT_EQ(scores[i], maxsim(query, document));
    }
}

TEST_P(Coded, Int8EqualsReferenceExactly) {
    for (const std::size_t d : odd_dimensions) {
        const Int8Codes documents = int8_codes(random_matrix(143, d, d));
        // Whole vectors of tokens, halves, and a few more; the kernels treat them apart.
        for (const std::size_t tokens : {1, 11, 12, 13, 20, 28, 36}) {
            const Matrix query = random_matrix(tokens, d, d + tokens);
            expect_equal_reference(PreparedInt8Query(VectorsView(query.view())), documents.view);
        }
    }
}

TEST_P(Coded, BitsEqualReferenceExactly) {
    for (const std::size_t d : odd_dimensions) {
        const BitCodes documents = bit_codes(random_matrix(143, d, d));
        const Matrix query = random_matrix(20, d, d + 1);
        expect_equal_reference(PreparedBitsQuery(VectorsView(query.view())), documents.view);
    }
}

TEST_P(Coded, EveryTokenCount) {
    const Matrix v = random_matrix(143, 72, 1);
    const Int8Codes bytes = int8_codes(v);
    const BitCodes bits = bit_codes(v);
    for (std::size_t tokens = 0; tokens <= 70; ++tokens) {
        const Matrix query = random_matrix(tokens, 72, tokens);
        expect_equal_reference(PreparedInt8Query(VectorsView(query.view())), bytes.view);
        expect_equal_reference(PreparedBitsQuery(VectorsView(query.view())), bits.view);
    }
}

TEST_P(Coded, ExtremeCodesDoNotSaturate) {
    // Every product at its largest, both signs: pairs of products must not overflow 16 bits, nor
    // 128 dimensions of bit sums.
    for (const std::size_t d : {128, 516, 4096}) {
        Matrix v(143, d);
        Matrix query(4, d);
        for (std::size_t j = 0; j < d; ++j) {
            for (std::size_t i = 0; i < v.rows(); ++i) v(i, j) = i % 2 == 0 ? 1.0f : -1.0f;
            query(0, j) = 1.0f;
            query(1, j) = -1.0f;
            query(2, j) = j % 2 == 0 ? 1.0f : -1.0f;
            query(3, j) = 0.0f;
        }
        const Int8Codes bytes = int8_codes(v);
        const PreparedInt8Query prepared(VectorsView(query.view()));
        expect_equal_reference(prepared, bytes.view);
        EXPECT_NEAR(maxsim(prepared, bytes.view), 2.0f * static_cast<float>(d), 1e-3f * static_cast<float>(d));
        const BitCodes bits = bit_codes(v);
        const PreparedBitsQuery prepared_bits(VectorsView(query.view()));
        expect_equal_reference(prepared_bits, bits.view);
        EXPECT_NEAR(maxsim(prepared_bits, bits.view), 2.0f * static_cast<float>(d), 1e-3f * static_cast<float>(d));
    }
}

TEST_P(Coded, Int8ErrorIsWithinItsBound) {
    for (const std::size_t d : {16, 128, 320}) {
        const Matrix v = random_matrix(60, d, 3);
        const Matrix query = random_matrix(30, d, 4);
        const Int8Codes codes = int8_codes(v);
        double square = 0.0;
        for (std::size_t i = 0; i < query.rows(); ++i) {
            const Matrix token(query.view().middle_rows(i, 1));
            const PreparedInt8Query prepared(VectorsView(token.view()));
            const double su = prepared.rows().scales[0];
            for (std::size_t j = 0; j < v.rows(); ++j) {
                double exact = 0.0;
                double u1 = 0.0;
                double v1 = 0.0;
                double u2 = 0.0;
                double v2 = 0.0;
                for (std::size_t t = 0; t < d; ++t) {
                    const double u = token(0, t);
                    const double x = v(j, t);
                    exact += u * x;
                    u1 += std::abs(u);
                    v1 += std::abs(x);
                    u2 += u * u;
                    v2 += x * x;
                }
                const double sv = codes.scales[j];
                const double error = maxsim(prepared, codes.view.middle_rows(j, 1)) - exact;
                const double bound = sv / 2 * u1 + su / 2 * v1 + static_cast<double>(d) / 4 * su * sv;
                ASSERT_LE(std::abs(error), bound * 1.0001 + 1e-5);
                square += error * error / (u2 * v2);
            }
        }
        EXPECT_LT(std::sqrt(square / 1800), d == 16 ? 0.006 : 0.002) << d;
    }
}

TEST_P(Coded, BitsEstimateIsUnbiasedWithTheStatedDeviation) {
    const std::size_t d = 128;
    const Matrix v = random_matrix(100, d, 5);
    const Matrix query = random_matrix(100, d, 6);
    const BitCodes codes = bit_codes(v);
    double sum = 0.0;
    double square = 0.0;
    for (std::size_t i = 0; i < 100; ++i) {
        const Matrix token(query.view().middle_rows(i, 1));
        const PreparedBitsQuery prepared(VectorsView(token.view()));
        for (std::size_t j = 0; j < 100; ++j) {
            double exact = 0.0;
            double u2 = 0.0;
            double v2 = 0.0;
            for (std::size_t t = 0; t < d; ++t) {
                exact += static_cast<double>(token(0, t)) * v(j, t);
                u2 += static_cast<double>(token(0, t)) * token(0, t);
                v2 += static_cast<double>(v(j, t)) * v(j, t);
            }
            const double error = (maxsim(prepared, codes.view.middle_rows(j, 1)) - exact) / std::sqrt(u2 * v2);
            sum += error;
            square += error * error;
        }
    }
    EXPECT_NEAR(sum / 1e4, 0.0, 0.004);
    EXPECT_NEAR(std::sqrt(square / 1e4), std::sqrt((1.5708 - 1.0) / d), 0.01);
}

TEST_P(Coded, CodesAreTheSameOnEveryLevelAndDecode) {
    const Matrix v = random_matrix(9, 33, 7);
    const Int8Codes bytes = int8_codes(v);
    const BitCodes bits = bit_codes(v);
    std::vector<float> decoded(v.size());
    decode_int8(bytes.view, decoded.data());
    for (std::size_t i = 0; i < v.rows(); ++i)
        for (std::size_t j = 0; j < 33; ++j)
            EXPECT_LE(std::abs(decoded[i * 33 + j] - v(i, j)), bytes.scales[i] * 0.5001f);
    decode_bits(bits.view, decoded.data());
    for (std::size_t e = 0; e < v.size(); ++e) EXPECT_EQ(decoded[e] >= 0.0f, v.flat()[e] >= 0.0f);
    force_kernel_level("scalar");
    EXPECT_EQ(int8_codes(v).codes, bytes.codes);
    EXPECT_EQ(int8_codes(v).scales, bytes.scales);
    EXPECT_EQ(bit_codes(v).codes, bits.codes);
    EXPECT_EQ(bit_codes(v).scales, bits.scales);
}

TEST_P(Coded, ZeroAndTinyRowsScoreZero) {
    Matrix v(2, 20);
    v(1, 3) = 1e-38f;
    const Matrix query = random_matrix(3, 20, 1);
    const Int8Codes bytes = int8_codes(v);
    const BitCodes bits = bit_codes(v);
    EXPECT_EQ(maxsim(PreparedInt8Query(VectorsView(query.view())), bytes.view), 0.0f);
    EXPECT_NEAR(maxsim(PreparedBitsQuery(VectorsView(query.view())), bits.view), 0.0f, 1e-30f);
    EXPECT_EQ(maxsim(PreparedInt8Query(VectorsView(v.view())), int8_codes(query).view), 0.0f);
    EXPECT_EQ(maxsim(PreparedBitsQuery(VectorsView(v.view())), bit_codes(query).view), 0.0f);
}

}  // namespace
}  // namespace marginmerge
