#include "io/vector_source.h"

#include <gtest/gtest.h>

#include "io/cache_folder.h"
#include "io/natural_order.h"
#include "kernels/convert.h"
#include "support/expect_error.h"
#include "support/made_files.h"
#include "support/temporary_directory.h"

namespace marginmerge {
namespace {

using test::expect_error;
using test::npy_bytes;
using test::ramp;
using test::raw;

struct Read {
    std::vector<std::string> ids;
    std::vector<Matrix> documents;
    std::vector<PatchGrid> grids;
    std::string form;
};

Read read_all(VectorSource& source) {
    Read all;
    all.form = source.form();
    const std::size_t promised = source.size();
    SourceDocument document;
    while (source.next(document)) {
        all.ids.push_back(document.id);
        all.documents.push_back(to_float(document.vectors));
        all.grids.push_back(document.grid);
    }
    if (promised != 0) {
        EXPECT_EQ(promised, all.ids.size());
    }
    return all;
}

Read read_bytes(const std::string& bytes, const std::vector<std::int64_t>& bounds = {}) {
    return read_all(*open_source(test::as_source(bytes), "stem", bounds));
}

using Ids = std::vector<std::string>;

TEST(NpySource, TwoDimensionsAreOneDocumentOrCutByOffsets) {
    const std::string bytes = npy_bytes("<f4", "3, 16", raw(ramp(48)));
    const Read one = read_bytes(bytes);
    EXPECT_EQ(one.ids, Ids{"stem"});
    EXPECT_EQ(one.documents[0].rows(), 3U);
    for (const auto& bounds :
         {std::vector<std::int64_t>{0, 1, 3}, std::vector<std::int64_t>{1, 2}}) {  // offsets, lengths
        const Read two = read_bytes(bytes, bounds);
        ASSERT_EQ(two.documents.size(), 2U);
        EXPECT_EQ(two.documents[1].rows(), 2U);
        EXPECT_EQ(two.documents[1](0, 0), 17.0f / 8);
        EXPECT_EQ(two.ids[0], "");
    }
}

TEST(NpySource, FindsOffsetsBesideTheFile) {
    const test::TemporaryDirectory directory;
    test::write_file(directory / "v.npy", npy_bytes("<f8", "3, 16", raw(std::vector<double>(48, 0.25))));
    test::write_file(directory / "v_offsets.npy", npy_bytes("<i4", "3,", raw<std::int32_t>({0, 2, 3})));
    const Read two = read_all(*open_source(directory / "v.npy"));
    ASSERT_EQ(two.documents.size(), 2U);
    EXPECT_EQ(two.documents[0].rows(), 2U);
    EXPECT_EQ(two.documents[0](1, 15), 0.25f);
}

TEST(NpySource, ThreeDimensionsArePadded) {
    const Read two = read_bytes(npy_bytes("<f2", "2, 3, 16", raw(std::vector<std::uint16_t>(96, 0x3C00))));
    ASSERT_EQ(two.documents.size(), 2U);
    EXPECT_EQ(two.documents[1].rows(), 3U);
    EXPECT_EQ(two.documents[1](2, 3), 1.0f);
}

TEST(NpySource, OddAlignmentIsCopied) {
    std::string bytes = npy_bytes("<f4", "1, 16", raw(ramp(16)));
    bytes.insert(8 + 2 + 1, " ");  // one more blank in the header shifts the data
    ++bytes[8];
    const Read one = read_bytes(bytes);
    EXPECT_EQ(one.documents[0](0, 15), 2.0f);
}

TEST(NpzSource, OneArrayADocumentStoredOrDeflated) {
    for (const bool deflate : {false, true}) {
        const Read all =
            read_bytes(test::zip_bytes({{"page10.npy", npy_bytes("<f4", "2, 16", raw(ramp(32))), deflate},
                                        {"page2.npy", npy_bytes("<f4", "1, 16", raw(ramp(16))), deflate}}));
        EXPECT_EQ(all.ids, (Ids{"page10", "page2"}));  // archive order is what numpy.savez was given
        EXPECT_EQ(all.documents[0](1, 0), 17.0f / 8);
    }
}

TEST(NpzSource, PartsByName) {
    const std::string ids = npy_bytes("<U2", "2,", raw<std::uint32_t>({'a', 0, 0xE9, 'b'}));
    const std::string offsets = npy_bytes("<i8", "3,", raw<std::int64_t>({0, 1, 3}));
    const std::string grid = npy_bytes("<i4", "2, 2", raw<std::int32_t>({1, 1, 2, 1}));
    const Read all = read_bytes(test::zip_bytes({{"ids.npy", ids, true},
                                                 {"embeddings.npy", npy_bytes("<f4", "3, 16", raw(ramp(48))), true},
                                                 {"offsets.npy", offsets, true},
                                                 {"grid.npy", grid}}));
    EXPECT_EQ(all.ids, (Ids{"a",
                            "\xC3\xA9"
                            "b"}));
    EXPECT_EQ(all.documents[1].rows(), 2U);
    EXPECT_EQ(all.grids[1].columns, 2);
}

TEST(NpzSource, PaddedWithLengths) {
    const Read all = read_bytes(test::zip_bytes({{"x.npy", npy_bytes("<f4", "2, 2, 16", raw(ramp(64))), true},
                                                 {"lengths.npy", npy_bytes("<i8", "2,", raw<std::int64_t>({1, 2}))}}));
    ASSERT_EQ(all.documents.size(), 2U);
    EXPECT_EQ(all.documents[0].rows(), 1U);
    EXPECT_EQ(all.documents[1](0, 0), 33.0f / 8);
}

TEST(SafetensorsSource, OneTensorADocumentInNaturalOrder) {
    const std::string header =
        R"({"p10":{"dtype":"F32","shape":[1,16],"data_offsets":[0,64]},"p2":{"dtype":"F32","shape":[2,16],"data_offsets":[64,192]}})";
    const Read all = read_bytes(test::safetensors_bytes(header, raw(ramp(48))));
    EXPECT_EQ(all.ids, (Ids{"p2", "p10"}));
    EXPECT_EQ(all.documents[0](0, 0), 17.0f / 8);
}

TEST(SafetensorsSource, OnePaddedTensor) {
    const std::string header = R"({"x":{"dtype":"F32","shape":[2,1,16],"data_offsets":[0,128]}})";
    const Read all = read_bytes(test::safetensors_bytes(header, raw(ramp(32))));
    ASSERT_EQ(all.documents.size(), 2U);
    EXPECT_EQ(all.documents[1](0, 0), 17.0f / 8);
}

TEST(NaturalOrder, NumbersInsideNames) {
    EXPECT_TRUE(natural_less("page2", "page10"));
    EXPECT_TRUE(natural_less("a9b", "a10a"));
    EXPECT_TRUE(natural_less("9", "10"));
    EXPECT_TRUE(natural_less("a", "a1"));
    EXPECT_TRUE(natural_less("a01", "a1") != natural_less("a1", "a01"));
    EXPECT_FALSE(natural_less("x", "x"));
    EXPECT_TRUE(natural_less("a99999999999999999999998", "a99999999999999999999999"));
}

std::string json_vector(float value) {
    std::string text = "[";
    for (int i = 0; i < 16; ++i) text += (i > 0 ? "," : "") + std::to_string(value);
    return text + "]";
}

TEST(JsonLinesSource, LiberalKeys) {
    const std::string v = json_vector(0.5f);
    const Read all =
        read_bytes("{\"id\": \"a\", \"vectors\": [" + v + "," + v + "], \"grid\": [2, 1], \"x\": {\"vectors\": 3}}\n" +
                   "\n{\"embeddings\": [" + v + "], \"_id\": 7}\r\n{\"embedding\": " + v + "}");
    EXPECT_EQ(all.ids, (Ids{"a", "7", ""}));
    EXPECT_EQ(all.documents[0].rows(), 2U);
    EXPECT_EQ(all.grids[0].columns, 2);
    EXPECT_EQ(all.documents[2].rows(), 1U);
    EXPECT_EQ(all.documents[2](0, 15), 0.5f);
}

// Document i of tests/data/torch/make.py.
void expect_torch_document(const Matrix& m, std::size_t i) {
    ASSERT_EQ(m.rows(), i + 2);
    ASSERT_EQ(m.cols(), 16U);
    for (std::size_t r = 0; r < m.rows(); ++r)
        for (std::size_t c = 0; c < 16; ++c)
            ASSERT_EQ(m(r, c), (static_cast<float>((7 * i + 3 * r + c) % 11) - 5) / 8) << i << " " << r << " " << c;
}

std::filesystem::path torch_file(const std::string& name) {
    return std::filesystem::path(MARGINMERGE_TEST_DATA) / "torch" / name;
}

TEST(TorchSource, ReadsEveryForm) {
    for (const char* name : {"list_f16.pt", "tuple_f64.pt", "dict_bf16.pt", "shared_storage.pt", "strided.pt",
                             "nested.pt", "batch_of_one.pt", "parts.pt", "parameters.pt", "protocol4.pt"}) {
        SCOPED_TRACE(name);
        const Read all = read_all(*open_source(torch_file(name)));
        ASSERT_EQ(all.documents.size(), 3U);
        for (std::size_t i = 0; i < 3; ++i) expect_torch_document(all.documents[i], i);
    }
    EXPECT_EQ(read_all(*open_source(torch_file("dict_bf16.pt"))).ids, (Ids{"a", "b", "c"}));
    EXPECT_EQ(read_all(*open_source(torch_file("parts.pt"))).ids, (Ids{"x", "y", "z"}));
    EXPECT_EQ(read_all(*open_source(torch_file("single.pt"))).ids, Ids{"single"});
    const Read padded = read_all(*open_source(torch_file("padded_f32.pt")));
    ASSERT_EQ(padded.documents.size(), 3U);
    EXPECT_EQ(padded.documents[0].rows(), 4U);
    EXPECT_EQ(padded.documents[0](1, 2), (static_cast<float>((3 + 2) % 11) - 5) / 8);
    EXPECT_EQ(padded.documents[0](3, 2), 0.0f);
}

TEST(TorchSource, CallsNothing) {
    expect_error(ErrorCode::unsupported, {"calls_system.pt", "'posix.system'", "not called"},
                 [] { open_source(torch_file("calls_system.pt")); });
    EXPECT_FALSE(std::filesystem::exists("called"));
    expect_error(ErrorCode::unsupported, {"holds_a_set.pt"}, [] { open_source(torch_file("holds_a_set.pt")); });
    expect_error(ErrorCode::unsupported, {"legacy.pt", "pickle"}, [] { open_source(torch_file("legacy.pt")); });
    expect_error(ErrorCode::unsupported, {"integers.pt", "document 1", "I64"},
                 [] { open_source(torch_file("integers.pt")); });
    expect_error(ErrorCode::corrupt, {"expanded.pt", "expanded view"}, [] { open_source(torch_file("expanded.pt")); });
}

TEST(CacheFolder, NamesAndJudgements) {
    const test::TemporaryDirectory directory;
    std::filesystem::copy(torch_file("list_f16.pt"), directory / "ps.pt");
    std::filesystem::copy(torch_file("nested.pt"), directory / "qs.pt");
    test::write_file(directory / "meta.json",
                     R"({"doc_ids": ["d0","d1","d2"], "query_ids": [5, 6, 7], "gold": [0, [1, 2], -1], "model": "x"})");
    EXPECT_EQ(read_all(*open_source(directory.path())).ids, (Ids{"d0", "d1", "d2"}));
    SourceOptions options;
    options.queries = true;
    EXPECT_EQ(read_all(*open_source(directory.path(), options)).ids, (Ids{"5", "6", "7"}));
    EXPECT_EQ(read_cache_judgements(directory.path()), (Judgements{{"5", {{"d0", 1}}}, {"6", {{"d1", 1}, {"d2", 1}}}}));
    std::filesystem::remove(directory / "meta.json");
    EXPECT_EQ(read_all(*open_source(directory.path())).ids, (Ids{"", "", ""}));
    expect_error(ErrorCode::not_found, {"gold"}, [&] { read_cache_judgements(directory.path()); });
}

TEST(CacheFolder, FormsOfMeta) {
    EXPECT_EQ(parse_cache_meta(R"({"gold_idx": [1]})", 2, 1, "m").judgements, (Judgements{{"0", {{"1", 1}}}}));
    EXPECT_EQ(parse_cache_meta(R"({"qrels": {"q": {"d": 2}}})", 0, 0, "m").judgements, (Judgements{{"q", {{"d", 2}}}}));
    EXPECT_EQ(parse_cache_meta(R"([{"query_id": "q", "gold": 1}])", 2, 1, "m").judgements,
              (Judgements{{"q", {{"1", 1}}}}));
    // Texts are no ids: they repeat.
    EXPECT_TRUE(parse_cache_meta(R"({"queries": ["a", "a"]})", 2, 2, "m").query_ids.empty());
    expect_error(ErrorCode::corrupt, {"m: gold", "below 2", "found 2"},
                 [] { parse_cache_meta(R"({"gold": [2]})", 2, 1, "m"); });
    expect_error(ErrorCode::corrupt, {"gold", "1 entries", "found 2"},
                 [] { parse_cache_meta(R"({"gold": [0,1]})", 2, 1, "m"); });
    expect_error(ErrorCode::corrupt, {"expected JSON"}, [] { parse_cache_meta("{", 0, 0, "m"); });
}

}  // namespace
}  // namespace marginmerge
