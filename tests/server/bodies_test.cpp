#include "bodies.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "api_error.h"
#include "support/made_files.h"
#include "test_server.h"

namespace marginmerge::server {
namespace {

template <class F>
std::string refusal(F&& f) {
    try {
        f();
        return "ok";
    } catch (const ApiError& error) {
        return error.code();
    } catch (const Error& error) {
        return to_string(error.code());
    }
}

std::string search_code(const std::string& body) {
    return refusal([&] { parse_search(BodyKind::json, body, {}, {}); });
}

std::string npy(const std::string& type, const std::string& shape, const std::string& data) {
    std::string header = "{'descr': '" + type + "', 'fortran_order': False, 'shape': (" + shape + "), }";
    while ((10 + header.size() + 1) % 64 != 0) header += ' ';
    header += '\n';
    return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(header.size() & 255) +
           static_cast<char>(header.size() >> 8) + header + data;
}

std::string floats(const std::vector<float>& values) {
    std::string out(values.size() * 4, '\0');
    std::memcpy(out.data(), values.data(), out.size());
    return out;
}

TEST(JsonBodies, OneQueryAndABatch) {
    const SearchRequest one = parse_search(
        BodyKind::json, R"({"vectors": [[1, 2], [3, 4.5]], "k": 7, "view": "5%", "metadata": false})", {}, {});
    ASSERT_EQ(one.query.vectors.size(), 1U);
    EXPECT_EQ(one.query.vectors[0](1, 1), 4.5f);
    EXPECT_FALSE(one.query.batch);
    EXPECT_EQ(one.k, 7U);
    EXPECT_EQ(one.view, "5%");
    EXPECT_FALSE(one.metadata);
    const SearchRequest two = parse_search(
        BodyKind::json, R"({"queries": [[[1]], [[2], [3]]], "first_pass": "bits", "candidates": 50, "rerank": 5})", {},
        {});
    EXPECT_TRUE(two.query.batch);
    EXPECT_EQ(two.query.vectors[1].rows(), 2U);
    EXPECT_EQ(two.first_pass, FirstPass::bits);
    EXPECT_EQ(two.candidates, 50U);
    EXPECT_EQ(two.rerank, 5U);
}

TEST(JsonBodies, FiltersInEveryForm) {
    const auto filter = [](const std::string& text) {
        return parse_search(BodyKind::json, R"({"text": "a", "filter": )" + text + "}", {}, {}).filter;
    };
    EXPECT_TRUE(filter(R"("year > 3")").matches(R"({"year": 4})"));
    EXPECT_FALSE(filter(R"({"year": {"lt": 3}})").matches(R"({"year": 4})"));
    EXPECT_TRUE(filter("null").empty());
    const Filter both = filter(R"(["year > 3", {"a": "b"}])");
    EXPECT_TRUE(both.matches(R"({"year": 4, "a": "b"})"));
    EXPECT_FALSE(both.matches(R"({"year": 4, "a": "c"})"));
    EXPECT_EQ(search_code(R"({"text": "a", "filter": 3})"), "invalid_argument");
    EXPECT_EQ(search_code(R"({"text": "a", "filter": [[]]})"), "invalid_argument");
    EXPECT_EQ(search_code(R"({"text": "a", "filter": "year >"})"), "invalid_argument");
}

TEST(JsonBodies, SayWhatIsWrong) {
    for (const char* bad : {"", "{", "[]", "3", "{\"k\": }", "\xff"})
        EXPECT_EQ(search_code(bad), "invalid_json") << bad;
    for (const char* bad :
         {"{}", R"({"vectors": []})", R"({"vectors": [[]]})", R"({"vectors": [[1], [1, 2]]})", R"({"vectors": [1]})",
          R"({"vectors": [["a"]]})", R"({"vectors": [[1e300]]})", R"({"vectors": [[1]], "text": "x"})",
          R"({"text": " "})", R"({"text": 3})", R"({"texts": "a"})", R"({"vectors": [[1]], "k": 0})",
          R"({"vectors": [[1]], "k": -1})", R"({"vectors": [[1]], "k": 1.5})", R"({"vectors": [[1]], "kk": 1})",
          R"({"vectors": [[1]], "metadata": 1})", R"({"vectors": [[1]], "first_pass": "magic"})",
          R"({"queries": [[1]]})"}) {
        EXPECT_EQ(search_code(bad), "invalid_argument") << bad;
    }
    EXPECT_EQ(search_code(R"({"vectors": [[1]], "k": 1001})"), "limit_exceeded");
    Limits small;
    small.batch = 1;
    small.query_vectors = 2;
    small.json_bytes = 60;
    small.text_bytes = 3;
    EXPECT_EQ(refusal([&] { parse_search(BodyKind::json, R"({"queries": [[[1]], [[2]]]})", {}, small); }),
              "limit_exceeded");
    EXPECT_EQ(refusal([&] { parse_search(BodyKind::json, R"({"vectors": [[1], [2], [3]]})", {}, small); }),
              "limit_exceeded");
    EXPECT_EQ(refusal([&] { parse_search(BodyKind::json, R"({"text": "four"})", {}, small); }), "limit_exceeded");
    EXPECT_EQ(refusal([&] { parse_search(BodyKind::json, std::string(61, ' '), {}, small); }), "body_too_large");
    EXPECT_EQ(search_code("{\"vectors\": " + std::string(200000, '[') + std::string(200000, ']') + "}"),
              "invalid_argument")
        << "deep nesting";
}

TEST(JsonBodies, ExplainAddAndDelete) {
    const ExplainRequest e =
        parse_explain(BodyKind::json, R"({"example": "q", "id": "p", "similarities": true})", {}, {});
    EXPECT_EQ(e.id, "p");
    EXPECT_TRUE(e.similarities);
    EXPECT_EQ(refusal([] { parse_explain(BodyKind::json, R"({"example": "q"})", {}, {}); }), "invalid_argument");
    const AddRequest a = parse_add(
        BodyKind::json,
        R"({"pages": [{"id": "x", "vectors": [[1, 2]], "grid": [3, 4], "metadata": {"a": 1}}], "replace": true})", {},
        {});
    EXPECT_EQ(a.pages.id(0), "x");
    EXPECT_EQ(a.pages.grid(0).rows, 4);
    EXPECT_EQ(a.metadata.at(0), R"({"a":1})");
    EXPECT_TRUE(a.replace);
    for (const char* bad : {R"({"pages": []})", R"({"pages": [{"id": "x"}]})", R"({"pages": [{"vectors": [[1]]}]})",
                            R"({"pages": [{"id": "x", "vectors": [[1]]}, {"id": "x", "vectors": [[1]]}]})",
                            R"({"pages": [{"id": "x", "vectors": [[1]]}, {"id": "y", "vectors": [[1, 2]]}]})",
                            R"({"pages": [{"id": "x", "vectors": [[1]], "grid": [1]}]})",
                            R"({"pages": [{"id": "x", "vectors": [[1]], "metadata": 1}]})"}) {
        EXPECT_EQ(refusal([&] { parse_add(BodyKind::json, bad, {}, {}); }), "invalid_argument") << bad;
    }
    EXPECT_EQ(parse_ids(R"({"ids": ["a", "b"]})", {}), (std::vector<std::string>{"a", "b"}));
    for (const char* bad : {"{}", R"({"ids": []})", R"({"ids": [1]})"})
        EXPECT_EQ(refusal([&] { parse_ids(bad, {}); }), "invalid_argument");
}

TEST(NpyBodies, TwoAndThreeDimensions) {
    const QueryInput one = parse_npy_queries(npy("<f4", "2, 2", floats({1, 2, 3, 4})), {});
    EXPECT_FALSE(one.batch);
    EXPECT_EQ(one.vectors[0](1, 0), 3);
    const QueryInput two = parse_npy_queries(npy("<f4", "2, 2, 2", floats({1, 2, 0, 0, 5, 6, 7, 8})), {});
    EXPECT_TRUE(two.batch);
    ASSERT_EQ(two.vectors.size(), 2U);
    EXPECT_EQ(two.vectors[0].rows(), 1U) << "padding must not take part";
    EXPECT_EQ(two.vectors[1](1, 1), 8);
    const std::string half("\x00\x3c\x00\xc0", 4);
    EXPECT_EQ(parse_npy_queries(npy("<f2", "1, 2", half), {}).vectors[0](0, 1), -2);
    EXPECT_EQ(body_kind("application/octet-stream", npy("<f4", "1, 1", floats({1}))), BodyKind::npy);
    const SearchRequest s = parse_search(BodyKind::npy, npy("<f4", "1, 1", floats({1})),
                                         {{"k", "4"}, {"filter", "a = 1"}, {"metadata", "false"}}, {});
    EXPECT_EQ(s.k, 4U);
    EXPECT_FALSE(s.filter.empty());
    EXPECT_FALSE(s.metadata);
}

TEST(NpyBodies, SayWhatIsWrong) {
    const auto code = [](const std::string& body) { return refusal([&] { parse_npy_queries(body, {}); }); };
    const std::string good = npy("<f4", "2, 2", floats({1, 2, 3, 4}));
    for (std::size_t n = 0; n < good.size(); ++n) EXPECT_EQ(code(good.substr(0, n)), "invalid_body") << n;
    EXPECT_EQ(code(good + "x"), "invalid_body");
    EXPECT_EQ(code(npy("<f4", "2", floats({1, 2}))), "invalid_body");
    EXPECT_EQ(code(npy(">f4", "1, 1", floats({1}))), "invalid_body");
    EXPECT_EQ(code(npy("<i4", "1, 1", floats({1}))), "invalid_body");
    EXPECT_EQ(code(npy("<f4", "999999999, 999999999", floats({1}))), "limit_exceeded");
    EXPECT_EQ(code(npy("<f4", "1, 99999999999", floats({1}))), "invalid_body");
    EXPECT_EQ(code(npy("<f4", "0, 1", "")), "invalid_body");
    EXPECT_EQ(code(npy("<f4", "1, 1", floats({std::numeric_limits<float>::quiet_NaN()}))), "invalid_body");
    EXPECT_EQ(code(npy("<f4", "1, 1, 1", floats({0}))), "invalid_body") << "only padding";
}

TEST(SafetensorsBodies, QueriesAndPages) {
    const test::Corpus corpus;
    const std::string file = test::read_file(corpus.directory / "queries.safetensors");
    const QueryInput queries = parse_safetensors_queries(file, {});
    ASSERT_EQ(queries.vectors.size(), 3U);
    EXPECT_EQ(queries.ids[2], "q2");
    EXPECT_TRUE(queries.batch);
    const std::string unaligned = "x" + file;  // a body has no alignment
    EXPECT_EQ(parse_safetensors_queries(std::string_view(unaligned).substr(1), {}).vectors.size(), 3U);
    const AddRequest pages = parse_add(BodyKind::safetensors, test::read_file(corpus.directory / "small.safetensors"),
                                       {{"replace", "true"}}, {});
    EXPECT_EQ(pages.pages.size(), test::Corpus::pages);
    EXPECT_EQ(pages.pages.owner(0).size(), test::Corpus::patches);
    EXPECT_EQ(pages.pages.grid(0).columns, 4);
    EXPECT_TRUE(pages.replace);
}

TEST(SafetensorsBodies, MetadataAndPlainTensors) {
    const auto file = [](const std::string& header, const std::string& data) {
        std::string out(8, '\0');
        const std::uint64_t length = header.size();
        std::memcpy(out.data(), &length, 8);
        return out + header + data;
    };
    const std::string plain = file(R"({"a":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]}})", floats({1, 2}));
    EXPECT_EQ(parse_safetensors_queries(plain, {}).ids.at(0), "a");
    EXPECT_FALSE(parse_safetensors_queries(plain, {}).batch);
    const std::string tensors =
        R"("vectors":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},"offsets":{"dtype":"I64","shape":[2],"data_offsets":[8,24]})";
    const std::string data = floats({1, 2}) + std::string(8, '\0') + std::string("\x01\0\0\0\0\0\0\0", 8);
    const AddRequest good =
        parse_add(BodyKind::safetensors,
                  file(R"({"__metadata__":{"page_metadata":"{\"0\": {\"a\": 2}}"},)" + tensors + "}", data), {}, {});
    EXPECT_EQ(good.metadata.at(0), R"({"a":2})");
    for (const char* bad : {R"([])", R"({\"7\": {}})", R"({\"0\": 1})", "{"}) {
        const std::string body =
            file(std::string(R"({"__metadata__":{"page_metadata":")") + bad + "\"}," + tensors + "}", data);
        EXPECT_EQ(refusal([&] { parse_add(BodyKind::safetensors, body, {}, {}); }), "invalid_body") << bad;
    }
}

TEST(SafetensorsBodies, EveryTruncationAndManyFlipsAreRefusedOrSound) {
    const test::Corpus corpus;
    const std::string file = test::read_file(corpus.directory / "queries.safetensors");
    for (std::size_t n = 0; n < file.size(); n += 7) {
        EXPECT_EQ(refusal([&] { parse_safetensors_queries(std::string_view(file).substr(0, n), {}); }), "invalid_body")
            << n;
    }
    Random random(3);
    for (int i = 0; i < 3000; ++i) {
        std::string broken = file;
        broken[random.below(std::min<std::size_t>(broken.size(), 700))] = static_cast<char>(random.below(256));
        const std::string code = refusal([&] { parse_safetensors_queries(broken, {}); });
        EXPECT_TRUE(code == "ok" || code == "invalid_body" || code == "limit_exceeded") << code;
    }
}

TEST(BodyKinds, ByTypeAndFirstBytes) {
    EXPECT_EQ(body_kind("application/json; charset=utf-8", "{}"), BodyKind::json);
    EXPECT_EQ(body_kind("Application/Octet-Stream", "abc"), BodyKind::safetensors);
    for (const char* bad : {"", "text/plain", "multipart/form-data", "application/x-www-form-urlencoded"}) {
        EXPECT_EQ(refusal([&] { body_kind(bad, "{}"); }), "unsupported_media_type") << bad;
    }
}

}  // namespace
}  // namespace marginmerge::server
