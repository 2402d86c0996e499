#include "core/numpy_random.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "support/npy.h"

namespace marginmerge {

TEST(NumpyRandom, PermutationsMatchNumpyForEverySize) {
    const auto splits = nlohmann::json::parse(std::ifstream(test::oracle("protocol/splits.json")));
    ASSERT_GE(splits.size(), 5U);
    for (const auto& [n, split] : splits.items()) {
        EXPECT_EQ(NumpyRandom(0).permutation(std::stoll(n)), split["permutation"].get<std::vector<std::int64_t>>())
            << n;
    }
}

TEST(NumpyRandom, RandintMatchesNumpy) {
    const std::vector<std::int64_t> expected{172, 47, 117, 192, 251, 195, 9, 211};
    EXPECT_EQ(NumpyRandom(0).randint(300, 8), expected);
}

}  // namespace marginmerge
