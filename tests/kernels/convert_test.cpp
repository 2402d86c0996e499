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

float middle_above(std::uint16_t h) {
    return static_cast<float>((half_value(h) + half_value(static_cast<std::uint16_t>(h + 1))) / 2);
}

void expect_halves(const std::vector<float>& in, const std::vector<std::uint16_t>& expected) {
    std::vector<std::uint16_t> out(in.size());
    from_float(in, ScalarType::f16, out.data());
    EXPECT_EQ(out, expected);
    for (std::size_t i = 0; i < in.size(); ++i) ASSERT_EQ(float_to_half(in[i]), expected[i]);
}

TEST_P(Convert, HalfwayBetweenHalvesGoesToTheEvenOne) {
    std::vector<float> in;
    std::vector<std::uint16_t> expected;
    for (std::uint16_t h = 0; h < 0x7BFF; h = static_cast<std::uint16_t>(h + 7)) {
        in.insert(in.end(), {middle_above(h), -middle_above(h)});
        const auto even = static_cast<std::uint16_t>(h + h % 2);
        expected.insert(expected.end(), {even, static_cast<std::uint16_t>(even | 0x8000)});
    }
    expect_halves(in, expected);
}

TEST_P(Convert, RoundsToNearest) {
    // The floats next to the half-way points.
    std::vector<float> in = {65519.0f, 65520.0f, 1e30f, 1e-30f};
    std::vector<std::uint16_t> expected = {0x7BFF, 0x7C00, 0x7C00, 0};
    for (std::uint16_t h = 0; h < 0x7BFF; h = static_cast<std::uint16_t>(h + 7)) {
        in.insert(in.end(), {std::nextafter(middle_above(h), 0.0f), std::nextafter(middle_above(h), 1e9f)});
        expected.insert(expected.end(), {h, static_cast<std::uint16_t>(h + 1)});
    }
    expect_halves(in, expected);

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
