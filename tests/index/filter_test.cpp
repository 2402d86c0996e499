#include "marginmerge/index/filter.h"

#include <gtest/gtest.h>

#include "marginmerge/core/error.h"

namespace marginmerge {
namespace {

constexpr const char* page = R"({"year":2021,"source":"a.pdf","tags":["x","y"],"draft":false,"author":{"name":"Ada"},)"
                             R"("number":"7","none":null,"a.b":1})";

TEST(Filter, TextFormSelects) {
    const std::pair<const char*, bool> cases[] = {
        {"year=2021", true},
        {"year == 2021", true},
        {"year>=2020", true},
        {"year>2021", false},
        {"year<2021.5", true},
        {"source=a.pdf", true},
        {"source!=a.pdf", false},
        {"missing!=3", true},
        {"missing=null", true},
        {"none=null", true},
        {"none exists", false},
        {"year exists", true},
        {"missing exists", false},
        {"tags=x", true},
        {"tags=z", false},
        {"tags!=x", false},
        {"draft=false", true},
        {"draft=true", false},
        {"author.name=Ada", true},
        {"a.b=1", true},
        {"number=7", true},
        {"number=\"7\"", true},
        {"year=\"2021\"", false},
        {"source in (b.pdf, 'a.pdf')", true},
        {"source in ()", false},
        {"year>=\"2000\"", false},
        {"source>='a' and source<'b'", true},
        {"year=1 or year=2021", true},
        {"not year=1", true},
        {"not (year=1 or tags=y)", false},
        {"year=2021 and tags=y or year=1", true},
        {"year=1 and tags=y or tags=x", true},
        {"order=1 or year=2021", true},
        {"'source' = 'a.pdf'", true},
    };
    for (const auto& [text, expected] : cases) {
        EXPECT_EQ(Filter::parse(text).matches(page), expected) << text;
        EXPECT_EQ(Filter::parse(Filter::parse(text).to_string()).matches(page), expected) << text;
    }
}

TEST(Filter, JsonFormSelects) {
    const std::pair<const char*, bool> cases[] = {
        {R"({})", true},
        {R"({"year":2021})", true},
        {R"({"year":"2021"})", false},
        {R"({"year":{"gte":2020,"lt":2022}})", true},
        {R"({"year":{"gte":2020,"lt":2021}})", false},
        {R"({"tags":["q","y"]})", true},
        {R"({"year":2021,"source":"b.pdf"})", false},
        {R"({"$or":[{"year":1},{"source":"a.pdf"}]})", true},
        {R"({"$and":[{"year":2021},{"source":"b.pdf"}]})", false},
        {R"({"$not":{"year":1}})", true},
        {R"({"missing":{"exists":false}})", true},
        {R"({"missing":{"ne":1}})", true},
        {R"({"author.name":{"eq":"Ada"}})", true},
        {R"({"number":{"in":[7]}})", false},
    };
    for (const auto& [text, expected] : cases) {
        const Filter filter = Filter::parse_json(text);
        EXPECT_EQ(filter.matches(page), expected) << text;
    }
    EXPECT_TRUE(Filter::parse_json("{}").empty());
}

TEST(Filter, BothMustHold) {
    EXPECT_TRUE((Filter::parse("year=2021") & Filter::parse("tags=x")).matches(page));
    EXPECT_FALSE((Filter::parse("year=2021") & Filter::parse("tags=q")).matches(page));
    EXPECT_TRUE((Filter() & Filter::parse("tags=x")).matches(page));
    EXPECT_FALSE(Filter::parse("year=1").matches(""));
    EXPECT_TRUE(Filter::parse("year!=1").matches(""));
}

TEST(Filter, NonsenseIsRefusedWithAPlace) {
    for (const char* text : {"", "year", "year=", "=3", "year>>3", "year=3 and", "(year=3", "year=3)", "a in 3",
                             "a in (1", "'a", "not", "\"\"=1", "year=3 year=4"}) {
        try {
            Filter::parse(text);
            ADD_FAILURE() << "accepted: " << text;
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << text;
            EXPECT_NE(std::string(error.what()).find("expected"), std::string::npos) << error.what();
        }
    }
    for (const char* text : {"", "[]", "{\"a\":{}}", "{\"a\":{\"like\":1}}", "{\"$or\":[]}", "{\"$not\":{}}",
                             "{\"a\":[[1]]}", "{", "{\"a\":{\"exists\":1}}", "{\"\":1}"})
        EXPECT_THROW(Filter::parse_json(text), Error) << text;
}

TEST(Filter, DeepNestingIsRefused) {
    const std::string open(100000, '(');
    EXPECT_THROW(Filter::parse(open + "a=1"), Error);
    std::string negations;
    for (int i = 0; i < 100000; ++i) negations += "not ";
    EXPECT_THROW(Filter::parse(negations + "a=1"), Error);
    std::string json;
    for (int i = 0; i < 100000; ++i) json += "{\"$not\":";
    EXPECT_THROW(Filter::parse_json(json), Error);
}

}  // namespace
}  // namespace marginmerge
