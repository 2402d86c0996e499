#include "marginmerge/index/index_writer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "index/synthetic.h"
#include "io/multi_vector_file.h"
#include "kernels/convert.h"
#include "marginmerge/core/error.h"
#include "support/temporary_directory.h"

namespace marginmerge {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> numbered_metadata(const MultiVectorSet& pages) {
    std::vector<std::string> out;
    for (std::size_t i = 0; i < pages.size(); ++i)
        out.push_back(R"({ "number": )" + std::to_string(i) + R"(, "parity": ")" + (i % 2 == 0 ? "even" : "odd") +
                      "\"}");
    return out;
}

TEST(IndexWriter, LifeOfAnIndex) {
    const test::TemporaryDirectory directory;
    const auto folder = directory / "index";
    const MultiVectorSet a = test::random_pages(40, 20, 32, 1, "a-");
    const MultiVectorSet b = test::random_pages(30, 20, 32, 2, "b-");
    {
        IndexWriter writer(folder);
        EXPECT_EQ(writer.add(a, numbered_metadata(a), {.code = VectorCode::f32}).generation, 1U);
        EXPECT_EQ(writer.add(b, {}).generation, 2U);
    }
    auto index = Index::open(folder);
    EXPECT_EQ(index->size(), 70U);
    EXPECT_EQ(index->id(40), "b-0");
    EXPECT_EQ(index->find("b-7"), 47U);
    EXPECT_EQ(index->metadata(3), R"({"number":3,"parity":"odd"})");
    EXPECT_EQ(index->metadata(41), "");
    const auto old = index;
    {
        IndexWriter writer(folder);
        const std::vector<std::string> ids{"a-0", "b-29", "a-0"};
        EXPECT_EQ(writer.remove(ids).deleted, 2U);
        const std::vector<std::string> unknown{"a-1", "zzz"};
        EXPECT_THROW(writer.remove(unknown), Error);
        EXPECT_EQ(writer.remove(unknown, {.ignore_missing = true}).missing, 1U);
    }
    EXPECT_EQ(old->size(), 70U);  // a snapshot does not change
    index = Index::reopen(index);
    EXPECT_EQ(Index::reopen(index), index);
    EXPECT_EQ(index->size(), 67U);
    EXPECT_EQ(index->id(0), "a-2");
    EXPECT_FALSE(index->find("a-1"));
    EXPECT_EQ(index->find("a-2"), 0U);
    EXPECT_EQ(index->stats().deleted, 3U);

    // Search over segments with tombstones equals search over a plain set of the same pages.
    MultiVectorBuilder builder(32);
    for (std::size_t i = 0; i < index->size(); ++i) builder.add(index->id(i), index->vectors(i));
    const auto plain = Index::wrap(builder.finish());
    const Matrix q = test::random_vectors(8, 32, 3);
    const auto check = [&](const Index& other) {
        const auto expected = plain->search(q.view(), {.k = 100});
        const auto found = other.search(q.view(), {.k = 100});
        ASSERT_EQ(found.size(), expected.size());
        for (std::size_t i = 0; i < found.size(); ++i) {
            EXPECT_EQ(found[i].id, expected[i].id);
            EXPECT_EQ(found[i].score, expected[i].score);
        }
    };
    check(*index);
    {
        IndexWriter writer(folder);
        const CompactReport report = writer.compact();
        EXPECT_EQ(report.pages, 67U);
        EXPECT_LT(report.bytes_after, report.bytes_before);
    }
    check(*index);  // the old snapshot's files are gone from the folder, not from its mapping
    index = Index::reopen(index);
    EXPECT_EQ(index->stats().segments, 1U);
    EXPECT_EQ(index->stats().deleted, 0U);
    EXPECT_EQ(index->metadata(*index->find("a-5")), R"({"number":5,"parity":"odd"})");
    check(*index);
    EXPECT_TRUE(verify_index(folder).problems.empty());
    EXPECT_EQ(verify_index(folder).pages, 67U);
}

TEST(IndexWriter, ReplaceTakesThePlace) {
    const test::TemporaryDirectory directory;
    const MultiVectorSet a = test::random_pages(10, 5, 16, 1);
    const MultiVectorSet b = test::random_pages(4, 5, 16, 2);
    IndexWriter writer(directory / "i");
    writer.add(a, {}, {.code = VectorCode::f32});
    EXPECT_THROW(writer.add(b, {}), Error);
    const AddReport report = writer.add(b, {}, {.replace = true});
    EXPECT_EQ(report.replaced, 4U);
    const auto index = Index::open(directory / "i");
    EXPECT_EQ(index->size(), 10U);
    const std::size_t p = *index->find("page-2");
    EXPECT_EQ(index->vectors(p).flat()[0], to_float(b.vectors(2)).flat()[0]);
}

TEST(IndexWriter, FiltersSelectPages) {
    const test::TemporaryDirectory directory;
    const MultiVectorSet a = test::random_pages(40, 5, 16, 1);
    IndexWriter(directory / "i").add(a, numbered_metadata(a));
    const auto index = Index::open(directory / "i");
    const Matrix q = test::random_vectors(3, 16, 3);
    const auto hits =
        index->search(q.view(), {.k = 50, .filter = Filter::parse("number>=10 and number<20 and parity=odd")});
    ASSERT_EQ(hits.size(), 5U);
    for (const Hit& h : hits) EXPECT_TRUE(h.position >= 10 && h.position < 20 && h.position % 2 == 1);
    EXPECT_TRUE(index->search(q.view(), {.filter = Filter::parse("number=99")}).empty());
    EXPECT_EQ(index->search(q.view(), {.k = 50, .filter = Filter::parse("other!=1")}).size(), 40U);
}

TEST(IndexWriter, CodesKeepTheirPromises) {
    const test::TemporaryDirectory directory;
    const MultiVectorSet a = test::random_pages(60, 30, 128, 1);
    const Matrix q = test::random_vectors(10, 128, 3);
    const auto exact = Index::wrap(a)->score_all(q.view());
    const std::pair<VectorCode, double> codes[] = {
        {VectorCode::f32, 0}, {VectorCode::f16, 2e-3}, {VectorCode::int8, 0.1}, {VectorCode::bits, 3}};
    std::uint64_t previous = UINT64_MAX;
    for (const auto& [code, tolerance] : codes) {
        const auto folder = directory / to_string(code);
        IndexWriter(folder).add(a, {}, {.code = code});
        const auto index = Index::open(folder);
        EXPECT_EQ(index->code(), code);
        const auto scores = index->score_all(q.view());
        for (std::size_t i = 0; i < scores.size(); ++i) EXPECT_NEAR(scores[i], exact[i], tolerance) << to_string(code);
        EXPECT_LT(index->stats().vector_bytes, previous);
        previous = index->stats().vector_bytes;
        EXPECT_TRUE(verify_index(folder).problems.empty());
        const Explanation e = index->explain(q.view(), 0);
        EXPECT_NEAR(e.score, scores[0], 0.1);
    }
    // Coarser by compact, never finer.
    IndexWriter writer(directory / "f32");
    writer.compact({.code = VectorCode::int8});
    EXPECT_THROW(writer.compact({.code = VectorCode::f16}), Error);
    EXPECT_THROW(writer.add(test::random_pages(2, 3, 128, 9, "n-"), {}, {.code = VectorCode::f16}), Error);
    EXPECT_EQ(Index::open(directory / "f32")->score_all(q.view()),
              Index::open(directory / "int8")->score_all(q.view()));
}

TEST(IndexWriter, FullVectorsRerank) {
    const test::TemporaryDirectory directory;
    const MultiVectorSet full = test::random_pages(80, 30, 64, 1);
    MultiVectorBuilder builder(64);
    for (std::size_t i = 0; i < full.size(); ++i) {
        const Matrix v = to_float(full.vectors(i));
        builder.add(full.id(i), v.view().middle_rows(0, (v.rows() + 3) / 4));
    }
    const MultiVectorSet small = builder.finish();
    {
        IndexWriter writer(directory / "i");
        const std::size_t half[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
        writer.add(small.subset(half), {}, {.full = &full});
        EXPECT_THROW(writer.add(small, {}, {.replace = true}), Error);  // would mix with and without
        writer.add(small, {}, {.replace = true, .full = &full});
        writer.compact();
    }
    const auto index = Index::open(directory / "i");
    ASSERT_TRUE(index->has_full());
    const Matrix q = test::random_vectors(10, 64, 3);
    const auto exact = Index::wrap(full)->search(q.view());
    const auto reranked = index->search(q.view(), {.rerank = 80});
    const auto scanned = index->search(q.view(), {.full = true});
    for (std::size_t i = 0; i < 10; ++i) {
        EXPECT_EQ(reranked[i].id, exact[i].id);
        EXPECT_EQ(scanned[i].id, exact[i].id);
        EXPECT_NEAR(reranked[i].score, exact[i].score, 5e-3);
    }
}

TEST(IndexWriter, OnlyOneWriter) {
    const test::TemporaryDirectory directory;
    IndexWriter first(directory / "i");
    EXPECT_THROW(IndexWriter(directory / "i"), Error);
}

TEST(IndexWriter, StrangersFoldersAreLeftAlone) {
    const test::TemporaryDirectory directory;
    std::ofstream(directory / "thesis.txt") << "precious";
    EXPECT_THROW(IndexWriter(directory.path()), Error);
    EXPECT_TRUE(fs::exists(directory / "thesis.txt"));
    EXPECT_THROW(IndexWriter(directory / "absent", {.create = false}), Error);
    EXPECT_FALSE(fs::exists(directory / "absent"));
}

TEST(IndexWriter, DamageIsFound) {
    const test::TemporaryDirectory directory;
    const auto folder = directory / "i";
    IndexWriter(folder).add(test::random_pages(20, 10, 16, 1), {});
    const auto file = folder / "pages-00000001.safetensors";
    ASSERT_TRUE(fs::exists(file));
    {
        std::fstream f(file, std::ios::in | std::ios::out | std::ios::binary);
        f.seekp(static_cast<std::streamoff>(fs::file_size(file)) - 300);
        f.put('\x55');
    }
    ASSERT_EQ(verify_index(folder).problems.size(), 1U);
    EXPECT_NE(verify_index(folder).problems[0].find("xxh64"), std::string::npos);
    fs::resize_file(file, fs::file_size(file) - 1);
    EXPECT_FALSE(verify_index(folder).problems.empty());
    fs::remove(file);
    EXPECT_FALSE(verify_index(folder).problems.empty());
    EXPECT_THROW(Index::open(folder), Error);
    std::string manifest;
    std::getline(std::ifstream(folder / "manifest.json"), manifest, '\0');
    manifest.replace(manifest.find("\"count\": 20"), 11, "\"count\": 21");
    std::ofstream(folder / "manifest.json") << manifest;
    try {
        Index::open(folder);
        ADD_FAILURE();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::corrupt);
    }
}

TEST(IndexWriter, LeftoversOfADeadWriterGo) {
    const test::TemporaryDirectory directory;
    const auto folder = directory / "i";
    IndexWriter(folder).add(test::random_pages(5, 10, 16, 1), {});
    for (const char* name :
         {"pages-00000002.safetensors", "pages-00000002.safetensors.tmp-1-2", "manifest.json.tmp-9-0"})
        std::ofstream(folder / name) << "half";
    std::ofstream(folder / "notes.txt") << "kept";
    EXPECT_EQ(verify_index(folder).leftovers.size(), 3U);
    { IndexWriter writer(folder); }
    EXPECT_TRUE(verify_index(folder).leftovers.empty());
    EXPECT_TRUE(fs::exists(folder / "notes.txt"));
    EXPECT_EQ(Index::open(folder)->size(), 5U);
}

TEST(IndexWriter, ReadersSeeWholeStatesWhileAWriterWorks) {
    const test::TemporaryDirectory directory;
    const auto folder = directory / "i";
    // Pairs of pages come and go together; a reader that sees one without the other saw a state between.
    const auto pair = [](std::size_t i) { return test::random_pages(2, 3, 16, i, "p" + std::to_string(i) + "-"); };
    IndexWriter(folder).add(pair(0), {});
    std::atomic<bool> done{false};
    std::atomic<int> faults{0}, reads{0};
    std::vector<std::thread> readers;
    for (int r = 0; r < 2; ++r)
        readers.emplace_back([&] {
            auto index = Index::open(folder);
            while (!done) {
                try {
                    index = Index::reopen(index);
                    for (std::size_t i = 0; i < index->size(); ++i) {
                        std::string id = index->id(i);
                        id.back() = id.back() == '0' ? '1' : '0';
                        if (!index->find(id)) ++faults;
                    }
                    index->search(index->vectors(0).view());
                    ++reads;
                } catch (const std::exception& error) {
                    ADD_FAILURE() << error.what();
                    return;
                }
            }
        });
    for (std::size_t i = 1; i < 40; ++i) {
        IndexWriter writer(folder);
        writer.add(pair(i), {});
        if (i % 3 == 0)
            writer.remove(
                std::vector<std::string>{"p" + std::to_string(i - 1) + "-0", "p" + std::to_string(i - 1) + "-1"});
        if (i % 7 == 0) writer.compact();
    }
    done = true;
    for (auto& t : readers) t.join();
    EXPECT_EQ(faults, 0);
    EXPECT_GT(reads, 0);
}

TEST(MetadataLines, MatchPagesById) {
    const MultiVectorSet pages = test::random_pages(3, 2, 16, 1);
    const auto lines = parse_metadata_lines(
        "{\"id\":\"page-2\",\"t\":1}\r\n\n{\"_id\":\"page-0\",\"metadata\":{\"u\":2}}", pages, "m.jsonl");
    EXPECT_EQ(lines, (std::vector<std::string>{R"({"u":2})", "", R"({"t":1})"}));
    for (const char* bad : {"{\"id\":\"nope\"}", "{\"t\":1}", "[]", "{\"id\":[]}", "{",
                            "{\"id\":\"page-1\",\"a\":1}\n{\"id\":\"page-1\"}"})
        EXPECT_THROW(parse_metadata_lines(bad, pages, "m.jsonl"), Error) << bad;
}

}  // namespace
}  // namespace marginmerge
