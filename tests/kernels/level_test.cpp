#include "kernels/level.h"

#include <algorithm>
#include <cstdlib>

#include "kernels/products.h"
#include "kernels/reference.h"
#include "levels.h"
#include "marginmerge/core/error.h"

namespace marginmerge {
namespace {

class Level : public testing::EveryLevel {};
MARGINMERGE_EVERY_LEVEL(Level);

TEST_P(Level, TheForcedOneIsRunning) {
    EXPECT_EQ(kernel_name(), GetParam());
    // The layout of packed rows is written by the implementation itself.
    const Matrix one = testing::random_matrix(1, 4, 1);
    const std::int64_t here = PackedRows(one.view()).layout;
    force_kernel_level("scalar");
    const std::int64_t scalar = PackedRows(one.view()).layout;
    EXPECT_EQ(here == scalar, GetParam() == "SCALAR");
}

TEST(Levels, BestFirstAndScalarLast) {
    const std::vector<std::string> levels = kernel_levels();
    ASSERT_FALSE(levels.empty());
    EXPECT_EQ(levels.back(), "SCALAR");
    force_kernel_level("");
    EXPECT_EQ(kernel_name(), levels.front());
}

TEST(Levels, EnvironmentForcesALevel) {
    ASSERT_EQ(setenv("MARGINMERGE_KERNEL", "scalar", 1), 0);
    apply_kernel_environment();
    EXPECT_STREQ(kernel_name(), "SCALAR");
    ASSERT_EQ(setenv("MARGINMERGE_KERNEL", "MMX", 1), 0);
    try {
        apply_kernel_environment();
        ADD_FAILURE() << "an unknown level was accepted";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
        EXPECT_NE(std::string(error.what()).find("found MMX"), std::string::npos) << error.what();
        EXPECT_NE(std::string(error.what()).find("SCALAR"), std::string::npos) << error.what();
    }
    unsetenv("MARGINMERGE_KERNEL");
    apply_kernel_environment();
    EXPECT_EQ(kernel_name(), kernel_levels().front());
}

TEST(Levels, QueriesOfAnotherLevelAreRefused) {
    if (kernel_levels().size() < 2) return;  // nothing to confuse on this CPU
    const Matrix v = testing::random_matrix(3, 8, 1);
    force_kernel_level("");
    const PreparedQuery query(VectorsView(v.view()));
    force_kernel_level("scalar");
    EXPECT_THROW(maxsim(query, VectorsView(v.view())), Error);
    force_kernel_level("");
}

}  // namespace
}  // namespace marginmerge
