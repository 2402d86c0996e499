#include "marginmerge/jobs/synth.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "data/redundancy.h"
#include "io/multi_vector_file.h"
#include "io/qrels.h"
#include "kernels/convert.h"
#include "kernels/maxsim.h"
#include "support/expect_error.h"
#include "support/made_files.h"
#include "support/temporary_directory.h"

namespace marginmerge {
namespace {

using test::TemporaryDirectory;

SynthOptions small(const std::filesystem::path& output) {
    SynthOptions o;
    o.output = output;
    o.kind = "natural";
    o.documents = 60;
    o.queries = 40;
    o.seed = 5;
    return o;
}

TEST(Synth, HitsTheRedundancyAndTheDifficultyAsked) {
    const TemporaryDirectory folder;
    const SynthReport report = synthesise(small(folder.path()));
    EXPECT_NEAR(report.redundancy, 4.8, 0.48);
    const MultiVectorSet docs = read_multi_vectors(folder / "docs.safetensors"),
                         queries = read_multi_vectors(folder / "queries.safetensors");
    const Judgements qrels = read_qrels(folder / "qrels.tsv");
    ASSERT_EQ(docs.size(), 60u);
    ASSERT_EQ(queries.size(), 40u);
    double ratio = 0, ndcg = 0;
    for (std::size_t i = 0; i < docs.size(); ++i) {
        const Matrix v = to_float(docs.vectors(i));
        ratio += static_cast<double>(v.rows()) / effective_rank(v) / 60;
        EXPECT_EQ(static_cast<std::size_t>(docs.grid(i).columns * docs.grid(i).rows), v.rows());
    }
    EXPECT_NEAR(ratio, 4.8, 0.48);
    EXPECT_NEAR(static_cast<double>(docs.total_vectors()) / 60, 238, 20);
    for (std::size_t q = 0; q < queries.size(); ++q) {
        const PreparedQuery query(queries.vectors(q));
        const std::string gold = qrels.at(queries.id(q)).begin()->first;
        const float own = maxsim(query, docs.vectors(*docs.find(gold)));
        std::size_t better = 0;
        for (std::size_t i = 0; i < docs.size(); ++i) better += maxsim(query, docs.vectors(i)) > own;
        if (better < 5) ndcg += 1 / std::log2(static_cast<double>(better) + 2) / 40;
    }
    EXPECT_GT(ndcg, 0.6);
    EXPECT_LT(ndcg, 0.97);
    // The split is by document: no page is asked for on both sides.
    const Judgements train = read_qrels(folder / "train_qrels.tsv"), held_out = read_qrels(folder / "test_qrels.tsv");
    EXPECT_EQ(train.size() + held_out.size(), 40u);
    EXPECT_GT(held_out.size(), 0u);
    for (const auto& [query, gold] : held_out)
        for (const auto& [other, pages] : train) EXPECT_NE(gold.begin()->first, pages.begin()->first) << query << other;
    EXPECT_EQ(read_multi_vectors(folder / "test_queries.safetensors").size(), held_out.size());
}

TEST(Synth, SeedDecidesThreadsDoNot) {
    const TemporaryDirectory folder;
    auto o = small(folder / "a");
    o.documents = 12;
    o.queries = 5;
    o.threads = 1;
    synthesise(o);
    o.output = folder / "b";
    o.threads = 3;
    synthesise(o);
    o.output = folder / "c";
    o.seed = 6;
    synthesise(o);
    for (const char* file : {"docs.safetensors", "queries.safetensors", "qrels.tsv"}) {
        EXPECT_EQ(test::read_file(folder / "a" / file), test::read_file(folder / "b" / file));
        EXPECT_NE(test::read_file(folder / "a" / file), test::read_file(folder / "c" / file));
    }
}

TEST(Synth, AnyShapeAsked) {
    const TemporaryDirectory folder;
    for (const auto& [vectors, redundancy, dim] : {std::tuple{300u, 40.0, 32u}, {500u, 8.0, 96u}, {40u, 2.0, 64u}}) {
        auto o = small(folder.path());
        o.documents = 8;
        o.queries = 0;
        o.vectors = vectors;
        o.redundancy = redundancy;
        o.dim = dim;
        EXPECT_NEAR(synthesise(o).redundancy, redundancy, 0.1 * redundancy) << vectors;
    }
    auto o = small(folder.path());
    o.redundancy = 1.1;
    test::expect_error(ErrorCode::invalid_argument, {"redundancy"}, [&] { synthesise(o); });
    o = small(folder.path());
    o.kind = "paintings";
    test::expect_error(ErrorCode::invalid_argument, {"paintings", "TAT-DQA"}, [&] { synthesise(o); });
}

}  // namespace
}  // namespace marginmerge
