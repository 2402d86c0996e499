#include "export/text.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "core/random.h"

namespace marginmerge {
namespace {

TEST(Text, NumbersReadBackAsTheSameFloat) {
    Random random(7);
    for (int i = 0; i < 2000; ++i) {
        const auto value = static_cast<float>(random.normal() * std::pow(10.0, random.uniform() * 40 - 20));
        std::string text;
        append_number(text, value);
        EXPECT_EQ(std::strtof(text.c_str(), nullptr), value) << text;
    }
}

TEST(Text, UuidsDependOnTheIdAlone) {
    EXPECT_EQ(page_uuid("a"), page_uuid("a"));
    std::set<std::string> seen;
    for (int i = 0; i < 1000; ++i) seen.insert(page_uuid(std::to_string(i)));
    EXPECT_EQ(seen.size(), 1000U);
    const std::string uuid = page_uuid("page-1");
    ASSERT_EQ(uuid.size(), 36U);
    EXPECT_EQ(uuid[14], '8');  // version 8: made by an application
    EXPECT_NE(std::string("89ab").find(uuid[19]), std::string::npos);
}

TEST(Text, LiteralsAreQuoted) {
    EXPECT_EQ(sql_text("it's"), "'it''s'");
    EXPECT_EQ(json_text("a\"\n\xFF"), "\"a\\\"\\n\xEF\xBF\xBD\"");
    EXPECT_EQ(fill("x {{a}} {{b}}{{a}}", {{"a", "1"}, {"b", "{{a}}"}}), "x 1 {{a}}1");
}

}  // namespace
}  // namespace marginmerge
