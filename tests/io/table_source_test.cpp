// Parquet and Arrow files: our own, and small ones that other people's writers made (tests/data/tables/make.mjs).
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <filesystem>

#include "io/arrow_writer.h"
#include "io/parquet_writer.h"
#include "io/vector_source.h"
#include "kernels/convert.h"
#include "support/expect_error.h"
#include "support/made_files.h"
#include "support/temporary_directory.h"

namespace marginmerge {
namespace {

std::filesystem::path table(const std::string& name) {
    return std::filesystem::path(MARGINMERGE_TEST_DATA) / "tables" / name;
}

float value(std::size_t r, std::size_t v, std::size_t j) {
    return static_cast<float>((7 * r + 3 * v + 5 * j) % 17) / 8 - 1;
}

void expect_row(const SourceDocument& document, std::size_t r, std::size_t vectors) {
    ASSERT_EQ(document.vectors.rows, vectors) << r;
    if (vectors == 0) return;
    ASSERT_EQ(document.vectors.dim, 16U);
    const Matrix rows = to_float(document.vectors);
    for (std::size_t v = 0; v < vectors; ++v)
        for (std::size_t j = 0; j < 16; ++j) ASSERT_EQ(rows(v, j), value(r, v, j)) << r << " " << v << " " << j;
}

class ForeignTable : public ::testing::TestWithParam<const char*> {};

TEST_P(ForeignTable, HoldsWhatWasWritten) {
    const auto source = open_source(table(GetParam()));
    SourceDocument document;
    for (std::size_t r = 0; r < 6; ++r) {
        ASSERT_TRUE(source->next(document));
        EXPECT_EQ(document.id, "doc " + std::to_string(r));
        expect_row(document, r, 1 + r % 3);
    }
    EXPECT_FALSE(source->next(document));
}

INSTANTIATE_TEST_SUITE_P(Files, ForeignTable,
                         ::testing::Values("snappy.parquet", "zstd-v2.parquet", "gzip.parquet", "lz4.parquet",
                                           "doubles.parquet", "fixed.arrows", "fixed.arrow", "ragged.arrows"));

TEST(ForeignTables, DictionariesNullsAndSingleVectors) {
    SourceDocument document;
    auto source = open_source(table("dictionary.parquet"));
    std::size_t rows = 0;
    for (; source->next(document); ++rows) {
        const std::size_t r = static_cast<std::size_t>(document.id.back() - '0');
        expect_row(document, r, 1 + r % 3);
    }
    EXPECT_EQ(rows, 240U);
    source = open_source(table("one-vector.parquet"));
    for (std::size_t r = 0; r < 6; ++r) {
        ASSERT_TRUE(source->next(document));
        EXPECT_EQ(document.id, std::to_string(r));
        expect_row(document, r, 1);
    }
    source = open_source(table("snappy-null.parquet"));
    for (std::size_t r = 0; r < 6; ++r) {
        ASSERT_TRUE(source->next(document));
        expect_row(document, r, r == 4 ? 0 : 1 + r % 3);
    }
}

template <class Writer>
void round_trip(const std::string& name) {
    const test::TemporaryDirectory directory;
    const auto path = directory / name;
    const auto vectors = [](std::size_t p) {
        Matrix m(p % 5 == 4 ? 0 : 1 + p * 37 % 300, 24);
        for (std::size_t i = 0; i < m.size(); ++i) m.data()[i] = static_cast<float>(i + p) / 16 - 3;
        return m;
    };
    constexpr std::size_t pages = 900;  // several pages and batches
    {
        Writer writer(path, 24);
        for (std::size_t p = 0; p < pages; ++p) {
            const Matrix m = vectors(p);
            const std::string id = "page " + std::to_string(p);
            writer.add({static_cast<std::int64_t>(p), id, p % 3 == 0 ? "" : "{\"a\":1}", m.view()});
        }
        const std::uint64_t bytes = writer.commit();
        EXPECT_EQ(bytes, std::filesystem::file_size(path));
    }
    const auto source = open_source(path);
    SourceDocument document;
    for (std::size_t p = 0; p < pages; ++p) {
        ASSERT_TRUE(source->next(document));
        EXPECT_EQ(document.id, "page " + std::to_string(p));
        const Matrix expected = vectors(p);
        ASSERT_EQ(document.vectors.rows, expected.rows());
        if (expected.rows() == 0) continue;
        const Matrix found = to_float(document.vectors);
        ASSERT_EQ(std::memcmp(found.data(), expected.data(), expected.size() * 4), 0) << p;
    }
    EXPECT_FALSE(source->next(document));
}

TEST(TableWriters, ParquetReadsBack) { round_trip<ParquetWriter>("a.parquet"); }
TEST(TableWriters, ArrowReadsBack) { round_trip<ArrowWriter>("a.arrow"); }

// Any cut and any flipped byte either still reads or is one of our errors.
TEST(BadTables, AreRefusedInOneLine) {
    for (const char* name : {"snappy.parquet", "zstd-v2.parquet", "doubles.parquet", "fixed.arrows", "fixed.arrow"}) {
        const std::string whole = test::read_file(table(name));
        const auto read = [&](const std::string& bytes) {
            try {
                const auto source = open_source(test::as_source(bytes), "stem");
                SourceDocument document;
                while (source->next(document)) {
                }
            } catch (const Error& error) {
                EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
                EXPECT_NE(error.code(), ErrorCode::internal) << error.what();
            }
        };
        for (std::size_t cut = 0; cut < whole.size(); cut += 7) read(whole.substr(0, cut));
        for (std::size_t i = 0; i < whole.size(); ++i) {
            std::string bytes = whole;
            bytes[i] = static_cast<char>(bytes[i] ^ 0x5A);
            read(bytes);
        }
    }
    test::expect_error(ErrorCode::corrupt, {"PAR1", "cut short"},
                       [] { open_source(test::as_source("PAR1 and then nothing of the kind"), "stem"); });
    test::expect_error(ErrorCode::corrupt, {"ARROW1", "cut short"},
                       [] { open_source(test::as_source(std::string("ARROW1\0\0 and then nothing", 25)), "stem"); });
}

// A batch of a few hundred bytes whose lengths promise millions of vectors; found by the fuzzer as a reader that does
// not come back.
TEST(BadTables, LengthsWithoutBytesAreNotWalked) {
    const std::string bytes = test::read_file(table("endless.arrow"));
    const auto begin = std::chrono::steady_clock::now();
    test::expect_error(ErrorCode::corrupt, {"embeddings"}, [&] {
        const auto source = open_source(test::as_source(bytes), "stem");
        SourceDocument document;
        while (source->next(document)) {
        }
    });
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(100));
}

}  // namespace
}  // namespace marginmerge
