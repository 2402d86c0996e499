#include "learn/split.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "support/npy.h"

namespace marginmerge {
namespace {

TEST(Split, DocumentsAreDividedAsInTheReference) {
    std::ifstream in(test::oracle("protocol/splits.json"));
    const auto reference = nlohmann::json::parse(in);
    ASSERT_GE(reference.size(), 5U);
    for (const auto& [key, expected] : reference.items()) {
        const Split split = split_documents(std::stoll(key));
        EXPECT_EQ(split.evaluation, expected.at("evaluation").get<std::vector<std::int64_t>>()) << key;
        EXPECT_EQ(split.validation, expected.at("validation").get<std::vector<std::int64_t>>()) << key;
        EXPECT_EQ(split.train, expected.at("train").get<std::vector<std::int64_t>>()) << key;
    }
}

TEST(Split, ValidationTakesAtLeastOneAndNothingFromNothing) {
    EXPECT_EQ(split_validation({7}).validation, (std::vector<std::int64_t>{7}));
    EXPECT_TRUE(split_validation({}).validation.empty());
    std::vector<std::int64_t> items(135);
    for (std::size_t i = 0; i < items.size(); ++i) items[i] = static_cast<std::int64_t>(i);
    EXPECT_EQ(split_validation(items).validation.size(), 13U);
    EXPECT_EQ(split_validation(items).train.size(), 122U);
}

}  // namespace
}  // namespace marginmerge
