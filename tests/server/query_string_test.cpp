#include "query_string.h"

#include <gtest/gtest.h>

namespace marginmerge::server {
namespace {

TEST(QueryString, AValueIsAllAfterTheFirstEqualsSign) {
    EXPECT_EQ(parse_query("/v1/pages?filter=year=2048&limit=3"), (Parameters{{"filter", "year=2048"}, {"limit", "3"}}));
    EXPECT_EQ(parse_query("/v1/pages?filter=year%3E=2040"), (Parameters{{"filter", "year>=2040"}}));
    EXPECT_EQ(parse_query("/?a==&b=?"), (Parameters{{"a", "="}, {"b", "?"}}));
}

TEST(QueryString, DecodesNamesAndValues) {
    EXPECT_EQ(parse_query("/?a%20b=c+d%2Be%26f"), (Parameters{{"a b", "c d+e&f"}}));
    EXPECT_EQ(parse_query("/?a=%e4%BD%A0"), (Parameters{{"a", "\xe4\xbd\xa0"}}));
    // What is no escape stands for itself.
    EXPECT_EQ(parse_query("/?a=100%&b=%zz&c=%4&d=%-1&e=%+1"),
              (Parameters{{"a", "100%"}, {"b", "%zz"}, {"c", "%4"}, {"d", "%-1"}, {"e", "% 1"}}));
}

TEST(QueryString, TakesEmptyAndRepeatedParts) {
    EXPECT_EQ(parse_query("/path"), Parameters());
    EXPECT_EQ(parse_query("/path?"), Parameters());
    EXPECT_EQ(parse_query("/?a&b=&&=c&"), (Parameters{{"a", ""}, {"b", ""}}));
    EXPECT_EQ(parse_query("/?k=2&a=1&k=1#k=3"), (Parameters{{"k", "2"}, {"a", "1"}, {"k", "1"}}));
}

}  // namespace
}  // namespace marginmerge::server
