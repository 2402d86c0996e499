#include "kernels/elementwise.h"

#include <cmath>

#include "levels.h"

namespace marginmerge {
namespace {

class Elementwise : public testing::EveryLevel {};
MARGINMERGE_EVERY_LEVEL(Elementwise);

std::vector<float> range(float low, float high, std::size_t count) {
    std::vector<float> x(count);
    for (std::size_t i = 0; i < count; ++i)
        x[i] = low + (high - low) * static_cast<float>(i) / static_cast<float>(count - 1);
    return x;
}

template <class Function, class Expected>
void expect_close(Function function, const std::vector<float>& in, double relative, double absolute,
                  Expected expected) {
    std::vector<float> out(in.size());
    function(std::span<const float>(in), std::span<float>(out));
    for (std::size_t i = 0; i < in.size(); ++i) {
        const double e = expected(static_cast<double>(in[i]));
        ASSERT_NEAR(out[i], e, relative * std::abs(e) + absolute) << "at " << in[i];
    }
    std::vector<float> inplace = in;  // in and out may be the same
    function(std::span<const float>(inplace), std::span<float>(inplace));
    ASSERT_EQ(inplace, out);
}

TEST_P(Elementwise, Exp) {
    expect_close(exp_of, range(-80.0f, 80.0f, 20011), 1e-6, 0.0, [](double x) { return std::exp(x); });
}

TEST_P(Elementwise, Log) {
    std::vector<float> in = range(1e-3f, 4.0f, 20011);
    in.insert(in.end(), {1e-30f, 1e30f, 1.0f});
    expect_close(log_of, in, 1e-6, 1e-6, [](double x) { return std::log(x); });
}

TEST_P(Elementwise, Erf) {
    expect_close(erf_of, range(-6.0f, 6.0f, 20011), 0.0, 1e-6, [](double x) { return std::erf(x); });
}

TEST_P(Elementwise, Gelu) {
    expect_close(gelu_of, range(-9.0f, 9.0f, 20011), 0.0, 1e-6,
                 [](double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); });
    // The exact form, not the tanh approximation (which is 3e-4 away here).
    expect_close(gelu_of, {2.2f, -2.2f}, 0.0, 2e-7, [](double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); });
}

TEST_P(Elementwise, Tanh) {
    expect_close(tanh_of, range(-9.0f, 9.0f, 20011), 0.0, 1e-6, [](double x) { return std::tanh(x); });
}

TEST_P(Elementwise, Coverage) {
    const float best = 0.83f;
    const float tau = 0.05f;
    const auto coverage = [&](std::span<const float> in, std::span<float> out) { coverage_of(in, best, tau, out); };
    // The exponent is a float: its rounding alone is worth 50 * 2^-24 of the result.
    expect_close(coverage, range(-1.0f, best, 20011), 5e-6, 0.0, [&](double x) {
        return std::exp(std::max((x - static_cast<double>(best)) / static_cast<double>(tau), -50.0));
    });
}

TEST_P(Elementwise, OddCountsTouchNothingElse) {
    for (std::size_t count = 0; count < 40; ++count) {
        std::vector<float> out(count + 1, 7.0f);
        const std::vector<float> in(count, -0.5f);
        exp_of(in, std::span<float>(out).first(count));
        EXPECT_EQ(out[count], 7.0f);
        for (std::size_t i = 0; i < count; ++i) EXPECT_NEAR(out[i], std::exp(-0.5), 1e-6);
    }
}

}  // namespace
}  // namespace marginmerge
