#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/random.h"
#include "kernels/level.h"
#include "kernels/maxsim.h"
#include "marginmerge/core/matrix.h"

namespace marginmerge::testing {

/// Dimensions on both sides of every vector length and block.
inline const std::vector<std::size_t> odd_dimensions = {1,  3,  7,  8,  9,  15,  16,  17,  31,
                                                        32, 33, 63, 64, 65, 127, 128, 129, 320};

/// A test run once for every level this CPU has, with that level forced.
class EveryLevel : public ::testing::TestWithParam<std::string> {
protected:
    void SetUp() override { force_kernel_level(GetParam()); }
    void TearDown() override { force_kernel_level(""); }
};

inline std::string level_name(const ::testing::TestParamInfo<std::string>& info) { return info.param; }

inline Matrix random_matrix(std::size_t rows, std::size_t cols, std::uint64_t seed) {
    Random random(seed);
    Matrix m;
    m.reshape(rows, cols);
    for (float& x : m.flat()) x = static_cast<float>(random.normal());
    return m;
}

}  // namespace marginmerge::testing

#define MARGINMERGE_EVERY_LEVEL(SUITE)                                                          \
    INSTANTIATE_TEST_SUITE_P(Level, SUITE, ::testing::ValuesIn(::marginmerge::kernel_levels()), \
                             ::marginmerge::testing::level_name)
