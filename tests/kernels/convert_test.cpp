#include "kernels/convert.h"

#include <bit>
#include <cmath>

#include "levels.h"

namespace marginmerge {
namespace {

class Convert : public testing::EveryLevel {};
MARGINMERGE_EVERY_LEVEL(Convert);

std::vector<std::uint16_t> all_patterns() {
    std::vector<std::uint16_t> all(65536);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint16_t>(i);
    return all;
}

/// The value of a half by its definition.
double half_value(std::uint16_t h) {
    const int exponent = (h >> 10) & 31;
    const double mantissa = h & 1023;
    const double magnitude = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(mantissa + 1024.0, exponent - 25);
    return h & 0x8000 ? -magnitude : magnitude;
}

TEST_P(Convert, EveryHalfIsExact) {
    const auto all = all_patterns();
    const Matrix floats = to_float(VectorsView(all.data(), ScalarType::f16, 1, all.size()));
    for (std::size_t i = 0; i < all.size(); ++i) {
        const float x = floats.data()[i];
        if (((i >> 10) & 31) == 31) {
            ASSERT_EQ(std::isnan(x), (i & 1023) != 0) << i;
            if (!std::isnan(x)) {
                ASSERT_EQ(x, i & 0x8000 ? -INFINITY : INFINITY);
            }
        } else {
            ASSERT_EQ(x, half_value(all[i])) << i;
            ASSERT_EQ(std::signbit(x), i >= 0x8000);
        }
    }
}

TEST_P(Convert, EveryHalfAndBrainSurvivesARoundTrip) {
    const auto all = all_patterns();
    for (const ScalarType type : {ScalarType::f16, ScalarType::bf16}) {
        const Matrix floats = to_float(VectorsView(all.data(), type, 1, all.size()));
        std::vector<std::uint16_t> back(all.size());
        from_float(floats.flat(), type, back.data());
        for (std::size_t i = 0; i < all.size(); ++i) {
            if (std::isnan(floats.data()[i])) {
                const Matrix again = to_float(VectorsView(&back[i], type, 1, 1));
                ASSERT_TRUE(std::isnan(again.data()[0])) << i;
            } else {
                ASSERT_EQ(back[i], i) << to_string(type);
            }
        }
    }
}

/// Half-way points between the neighbouring halves first..last, and their neighbours in float.
void expect_nearest_even(std::uint16_t first, std::uint16_t last) {
    std::vector<float> in;
    std::vector<std::uint16_t> expected;
    for (std::uint16_t h = first; h < last; h = static_cast<std::uint16_t>(h + 7)) {
        const auto middle = static_cast<float>((half_value(h) + half_value(static_cast<std::uint16_t>(h + 1))) / 2);
        in.insert(in.end(), {middle, std::nextafter(middle, 0.0f), std::nextafter(middle, 1e9f), -middle});
        const auto up = static_cast<std::uint16_t>(h + 1);
        const auto even = h % 2 == 0 ? h : up;
        expected.insert(expected.end(), {even, h, up, static_cast<std::uint16_t>(even | 0x8000)});
    }
    in.insert(in.end(), {65519.0f, 65520.0f, 1e30f, 1e-30f});
    expected.insert(expected.end(), {0x7BFF, 0x7C00, 0x7C00, 0});
    std::vector<std::uint16_t> out(in.size());
    from_float(in, ScalarType::f16, out.data());
    EXPECT_EQ(out, expected);
    for (std::size_t i = 0; i < in.size(); ++i) ASSERT_EQ(float_to_half(in[i]), expected[i]);
}

TEST_P(Convert, SubnormalHalvesRoundToNearestEven) { expect_nearest_even(0, 0x400); }

TEST_P(Convert, RoundsToNearestEven) {
    expect_nearest_even(0x400, 0x7BFF);
    const float brain_in[] = {std::bit_cast<float>(0x3F808000U), std::bit_cast<float>(0x3F818000U),
                              std::bit_cast<float>(0x3F808001U), std::bit_cast<float>(0x3F807FFFU)};
    std::uint16_t brain[4];
    from_float(brain_in, ScalarType::bf16, brain);
    EXPECT_EQ(brain[0], 0x3F80);
    EXPECT_EQ(brain[1], 0x3F82);
    EXPECT_EQ(brain[2], 0x3F81);
    EXPECT_EQ(brain[3], 0x3F80);
}

TEST_P(Convert, OddCountsTouchNothingElse) {
    for (std::size_t count = 0; count < 40; ++count) {
        const Matrix in = testing::random_matrix(1, count, count + 1);
        std::vector<std::uint16_t> halves(count + 1, 0xABCD);
        from_float(in.flat(), ScalarType::f16, halves.data());
        EXPECT_EQ(halves[count], 0xABCD);
        std::vector<float> out(count + 1, 7.0f);
        to_float(VectorsView(halves.data(), ScalarType::f16, 1, count), out.data());
        EXPECT_EQ(out[count], 7.0f);
        for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(out[i], half_to_float(float_to_half(in(0, i))));
    }
}

}  // namespace
}  // namespace marginmerge
