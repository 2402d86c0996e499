#include "marginmerge/jobs/import.h"

#include <cmath>
#include <limits>

#include "io/multi_vector_file.h"
#include "io/qrels.h"
#include "kernels/convert.h"
#include "support/expect_error.h"
#include "support/made_files.h"
#include "support/temporary_directory.h"

namespace marginmerge {
namespace {

using test::expect_error;
using test::npy_bytes;
using test::raw;

// rows x 16 with rows of unit norm: 0.25 in every column.
std::vector<float> unit_rows(std::size_t rows) { return std::vector<float>(rows * 16, 0.25f); }

struct Import {
    test::TemporaryDirectory directory;
    ImportOptions options;

    Import() { options.output = directory / "out.safetensors"; }
    void source(const std::string& name, const std::string& bytes) {
        test::write_file(directory / name, bytes);
        options.sources.push_back(directory / name);
    }
    ImportReport run() { return import_vectors(options); }
    MultiVectorSet result() const { return read_multi_vectors(options.output); }
};

TEST(Import, DropsZeroRowsAndNormalises) {
    Import import;
    auto values = unit_rows(6);
    for (int j = 0; j < 16; ++j) values[16 + j] = 0;      // row 1 of document 0 is padding
    for (int j = 0; j < 16; ++j) values[5 * 16 + j] = 2;  // row 2 of document 1 is long
    import.source("a.npy", npy_bytes("<f4", "2, 3, 16", raw(values)));
    import.options.type = ScalarType::f32;
    const ImportReport report = import.run();
    EXPECT_EQ(report.documents, 2U);
    EXPECT_EQ(report.vectors, 5U);
    EXPECT_EQ(report.zero_rows_dropped, 1U);
    EXPECT_EQ(report.not_unit, 1U);
    EXPECT_EQ(report.bytes, std::filesystem::file_size(import.options.output));
    const MultiVectorSet set = import.result();
    EXPECT_EQ(set.vectors_of(0), 2U);
    EXPECT_EQ(set.id(1), "1");
    const Matrix second = to_float(set.vectors(1));
    for (std::size_t j = 0; j < 16; ++j) EXPECT_FLOAT_EQ(second(2, j), 0.25f);
}

TEST(Import, KeepNormsLeavesVectors) {
    Import import;
    import.source("a.npy", npy_bytes("<f4", "1, 16", raw(test::ramp(16))));
    import.options.keep_norms = true;
    EXPECT_EQ(import.run().not_unit, 1U);
    EXPECT_EQ(to_float(import.result().vectors(0))(0, 15), 2.0f);
    EXPECT_EQ(import.result().id(0), "a");
}

TEST(Import, UnitVectorsStayExact) {
    Import import;
    std::vector<std::uint16_t> halves(32);
    for (std::size_t i = 0; i < halves.size(); ++i)
        halves[i] = static_cast<std::uint16_t>(0x3400 + (i % 5) - 2);  // 0.25
    import.source("a.npy", npy_bytes("<f2", "2, 16", raw(halves)));
    EXPECT_EQ(import.run().not_unit, 0U);
    EXPECT_EQ(std::memcmp(import.result().vectors(0).data, halves.data(), 64), 0);
}

TEST(Import, ConcatenatesSourcesInOrder) {
    Import import;
    import.source("b.npy", npy_bytes("<f4", "2, 16", raw(unit_rows(2))));
    import.source("a.npz", test::zip_bytes({{"y.npy", npy_bytes("<f4", "1, 16", raw(unit_rows(1)))},
                                            { "x.npy",
                                              npy_bytes("<f4", "3, 16", raw(unit_rows(3))) }}));
    EXPECT_EQ(import.run().sources.size(), 2U);
    const MultiVectorSet set = import.result();
    ASSERT_EQ(set.size(), 3U);
    EXPECT_EQ(set.id(0), "b");
    EXPECT_EQ(set.id(1), "y");
    EXPECT_EQ(set.vectors_of(2), 3U);
}

// With odd dimensions the tensors behind the vectors would lose their alignment.
TEST(Import, OddDimensionsStayReadable) {
    Import import;
    import.source("a.npy", npy_bytes("<f4", "3, 17", raw(test::ramp(51))));
    import.options.ids = import.directory / "ids";
    test::write_file(import.options.ids, "only\n");
    import.run();
    EXPECT_EQ(import.result().id(0), "only");
    EXPECT_EQ(import.result().dim(), 17U);
}

TEST(Import, GridSurvivesOnlyWhenNoPatchWasDropped) {
    Import import;
    auto values = unit_rows(8);
    for (int j = 0; j < 16; ++j) values[3 * 16 + j] = 0;  // document 0: behind its 3x1 grid
    for (int j = 0; j < 16; ++j) values[4 * 16 + j] = 0;  // document 1: inside
    import.source("a.npy", npy_bytes("<f4", "2, 4, 16", raw(values)));
    import.options.grid = {3, 1};
    EXPECT_EQ(import.run().grids_dropped, 1U);
    EXPECT_TRUE(import.result().grid(0).known());
    EXPECT_FALSE(import.result().grid(1).known());
    import.options.grid = {300, 2};
    test::expect_error(ErrorCode::invalid_argument, {"--grid 300x2", "600"}, [&] { import.run(); });
}

TEST(Import, OwnFilesKeepBoxesAndGrid) {
    Import import;
    struct Storage {
        std::vector<float> vectors = unit_rows(3);
        std::vector<float> boxes{0, 0, 1, 1, 0, 0, .5f, .5f, .5f, .5f, 1, 1};
        std::vector<std::int64_t> offsets{0, 2, 3};
        std::vector<std::int32_t> grid{2, 1, 0, 0};
    };
    auto s = std::make_shared<Storage>();
    std::fill_n(s->vectors.begin() + 16, 16, 0.0f);
    MultiVectorParts parts;
    parts.vectors = {s->vectors.data(), ScalarType::f32, 3, 16};
    parts.offsets = s->offsets;
    parts.boxes = s->boxes;
    parts.grid = s->grid;
    parts.storage = s;
    write_multi_vectors(import.directory / "in", MultiVectorSet(parts, "made"), ScalarType::f32);
    import.options.sources = {import.directory / "in"};
    EXPECT_EQ(import.run().zero_rows_dropped, 1U);
    const MultiVectorSet set = import.result();
    ASSERT_TRUE(set.has_boxes());
    EXPECT_EQ(set.boxes(0).size(), 4U);
    EXPECT_EQ(set.boxes(1)[0], .5f);
    EXPECT_FALSE(set.grid(0).known());  // its second patch was dropped
}

TEST(Import, RefusesNotANumber) {
    Import import;
    auto values = unit_rows(3);
    values[2 * 16 + 5] = std::numeric_limits<float>::quiet_NaN();
    import.source("a.npy", npy_bytes("<f4", "3, 16", raw(values)));
    expect_error(ErrorCode::corrupt, {"a.npy", "document 'a'", "row 2", "column 5"}, [&] { import.run(); });
    EXPECT_FALSE(std::filesystem::exists(import.options.output));
}

TEST(Import, EmptyDocumentsAreRefusedOrDropped) {
    Import import;
    auto values = unit_rows(4);
    std::fill_n(values.begin(), 32, 0.0f);
    import.source("a.npy", npy_bytes("<f4", "2, 2, 16", raw(values)));
    expect_error(ErrorCode::corrupt, {"document '0'", "--drop-empty"}, [&] { import.run(); });
    import.options.drop_empty = true;
    EXPECT_EQ(import.run().empty_dropped, 1U);
    EXPECT_EQ(import.result().id(0), "1");
}

TEST(Import, RefusesDuplicatesAndMixedDimensions) {
    Import twice;
    twice.source("a.npy", npy_bytes("<f4", "1, 16", raw(unit_rows(1))));
    twice.options.sources.push_back(twice.options.sources[0]);
    expect_error(ErrorCode::corrupt, {"unique", "'a' twice"}, [&] { twice.run(); });
    Import mixed;
    mixed.source("a.npy", npy_bytes("<f4", "1, 16", raw(unit_rows(1))));
    mixed.source("b.npy", npy_bytes("<f4", "1, 32", raw(test::ramp(32))));
    expect_error(ErrorCode::corrupt, {"b.npy", "16 dimensions", "found 32"}, [&] { mixed.run(); });
    Import few;
    few.source("a.npy", npy_bytes("<f4", "1, 16", raw(unit_rows(1))));
    few.options.ids = few.directory / "ids";
    test::write_file(few.options.ids, "x\ny\n");
    expect_error(ErrorCode::corrupt, {"ids", "expected 1", "found 2"}, [&] { few.run(); });
    Import large;
    large.options.keep_norms = true;
    large.source("a.npy", npy_bytes("<f4", "1, 16", raw(std::vector<float>(16, 1e6f))));
    expect_error(ErrorCode::unsupported, {"65504", "--dtype f32"}, [&] { large.run(); });
}

TEST(Import, CacheFolderWithJudgements) {
    Import import;
    const auto folder = import.directory / "cache";
    const auto torch = std::filesystem::path(MARGINMERGE_TEST_DATA) / "torch";
    std::filesystem::create_directory(folder);
    std::filesystem::copy(torch / "list_f16.pt", folder / "ps.pt");
    std::filesystem::copy(torch / "nested.pt", folder / "qs.pt");
    test::write_file(folder / "meta.json", R"({"gold": [2, 1, 0]})");
    import.options.sources = {folder};
    import.options.qrels_out = import.directory / "qrels.tsv";
    EXPECT_EQ(import.run().judged_queries, 3U);
    EXPECT_EQ(read_qrels(import.options.qrels_out).at("0").at("2"), 1);
}

}  // namespace
}  // namespace marginmerge
