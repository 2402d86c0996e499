#include "marginmerge/jobs/evaluate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "index/synthetic.h"
#include "io/multi_vector_file.h"
#include "io/trec_run.h"
#include "kernels/convert.h"
#include "marginmerge/core/error.h"
#include "support/temporary_directory.h"
#include "support/thread_cluster.h"

namespace marginmerge {
namespace {

// A corpus, a worse copy of it (each page's first vectors), queries near some pages, and labels.
struct Fixture {
    test::TemporaryDirectory directory;
    MultiVectorSet full = test::random_pages(60, 24, 32, 1);
    EvaluateOptions options;

    Fixture() {
        MultiVectorBuilder small(32), queries(32);
        std::ofstream qrels(directory / "qrels.tsv");
        qrels << "query-id\tcorpus-id\tscore\n";
        for (std::size_t i = 0; i < full.size(); ++i) {
            const Matrix v = to_float(full.vectors(i));
            small.add(full.id(i), v.view().middle_rows(0, (v.rows() + 2) / 3));
        }
        Random random(7);
        for (std::size_t q = 0; q < 20; ++q) {
            Matrix v = to_float(full.vectors(q));
            for (float& x : v.flat()) x += 0.25f * static_cast<float>(random.normal());
            queries.add("q" + std::to_string(q), v.view().middle_rows(0, std::min<std::size_t>(v.rows(), 6)));
            qrels << "q" << q << "\tpage-" << q << "\t2\n"
                  << "q" << q << "\tpage-" << q + 20 << "\t1\n";
            qrels << "q" << q << "\tpage-" << q + 40 << "\t0\n";
        }
        qrels << "unknown\tpage-1\t1\n";
        qrels.close();
        write_multi_vectors(directory / "full.safetensors", full, ScalarType::f32);
        write_multi_vectors(directory / "small.safetensors", small.finish(), ScalarType::f32);
        write_multi_vectors(directory / "queries.safetensors", queries.finish(), ScalarType::f32);
        options.full = directory / "full.safetensors";
        options.indexes = {directory / "small.safetensors"};
        options.queries = directory / "queries.safetensors";
        options.qrels = directory / "qrels.tsv";
    }
};

TEST(Evaluate, TheFullIndexKeepsEverything) {
    Fixture f;
    f.options.indexes = {f.options.full};
    const EvaluateReport r = evaluate_job(f.options);
    EXPECT_EQ(r.queries, 20U);
    EXPECT_EQ(r.unknown_queries, 1U);
    const IndexFigures& i = r.indexes.at(0);
    EXPECT_EQ(i.name, "full-2");
    EXPECT_EQ(i.retention, 1);
    EXPECT_EQ(i.fidelity.flips, 0U);
    EXPECT_EQ(i.fidelity.pairs, 20U * 2 * 58);
    EXPECT_EQ(i.overlap_top, 1);
    EXPECT_EQ(i.ndcg_difference.low, 0);
    EXPECT_FALSE(i.ndcg_difference.supported);
    EXPECT_GT(r.full_quality.ndcg, 0.3);
}

TEST(Evaluate, SameForAnyNumberOfProcesses) {
    Fixture f;
    f.options.timed_queries = 0;
    f.options.threads = 1;
    f.options.runs = f.directory / "runs";
    const std::string one = evaluate_json(evaluate_job(f.options));
    const RankedRun run = read_trec_run(f.directory / "runs" / "small.run");
    for (const std::size_t size : {2u, 3u}) {
        const auto reports = test::on_cluster(size, [&](Cluster* cluster) {
            EvaluateOptions own = f.options;
            own.cluster = cluster;
            own.runs = f.directory / "shared-runs";
            return evaluate_job(own);
        });
        EXPECT_EQ(evaluate_json(reports[0]), one);
        EXPECT_TRUE(reports[1].indexes.empty()) << "only the first reports";
        const RankedRun shared = read_trec_run(f.directory / "shared-runs" / "small.run");
        ASSERT_EQ(shared.size(), run.size());
        for (const auto& [query, ranking] : run)
            for (std::size_t i = 0; i < ranking.size(); ++i) EXPECT_EQ(shared.at(query).at(i).id, ranking[i].id);
    }
}

// Figures recomputed from the runs alone, by the definitions.
TEST(Evaluate, AgreesWithItsRuns) {
    Fixture f;
    f.options.runs = f.directory / "runs";
    f.options.timed_queries = 3;
    const EvaluateReport r = evaluate_job(f.options);
    const RankedRun full = read_trec_run(f.directory / "runs" / "full.run");
    const RankedRun small = read_trec_run(f.directory / "runs" / "small.run");
    double ndcg_sum = 0;
    std::size_t flips = 0, pairs = 0;
    for (std::size_t q = 0; q < 20; ++q) {
        const std::string id = "q" + std::to_string(q);
        const std::map<std::string, int> grades{{"page-" + std::to_string(q), 2},
                                                {"page-" + std::to_string(q + 20), 1}};
        ASSERT_EQ(full.at(id).size(), 60U);
        ASSERT_EQ(small.at(id).size(), 60U);
        double dcg = 0;
        std::map<std::string, double> a, b;
        for (std::size_t rank = 0; rank < 60; ++rank) {
            const auto& hit = small.at(id)[rank];
            const auto grade = grades.find(hit.id);
            if (rank < 5 && grade != grades.end())
                dcg += (std::exp2(grade->second) - 1) / std::log2(static_cast<double>(rank) + 2);
            b[hit.id] = hit.score;
            a[full.at(id)[rank].id] = full.at(id)[rank].score;
        }
        ndcg_sum += dcg / (3 + 1 / std::log2(3.0));
        for (const auto& [p, grade] : grades)
            for (const auto& [n, score] : a) {
                if (grades.count(n) > 0) continue;
                ++pairs;
                flips += (a[p] > score) != (b[p] > b[n]);
            }
    }
    const IndexFigures& i = r.indexes.at(0);
    EXPECT_NEAR(i.quality.ndcg, ndcg_sum / 20, 1e-12);
    EXPECT_EQ(i.fidelity.flips, flips);
    EXPECT_EQ(i.fidelity.pairs, pairs);
    EXPECT_GT(flips, 0U);
    EXPECT_GT(i.search_ms, 0);
    EXPECT_EQ(i.per_query.size(), 20U);
}

TEST(Evaluate, WithoutLabelsTheFullIndexJudges) {
    Fixture f;
    f.options.no_labels = true;
    f.options.qrels.clear();
    const EvaluateReport r = evaluate_job(f.options);
    EXPECT_FALSE(r.labels);
    EXPECT_EQ(r.queries, 20U);
    EXPECT_EQ(r.full_quality.ndcg, 1);
    EXPECT_EQ(r.indexes[0].fidelity.pairs, 20U * 10 * 50);
    EXPECT_LT(r.indexes[0].overlap_top, 1);
    EXPECT_GT(r.indexes[0].overlap_top, 0.2);
}

TEST(Evaluate, ReportsInEveryForm) {
    Fixture f;
    f.options.indexes.push_back(f.options.full);
    f.options.timed_queries = 0;
    const EvaluateReport r = evaluate_job(f.options);
    const auto json = nlohmann::json::parse(evaluate_json(r));
    EXPECT_EQ(json["indexes"].size(), 2U);
    EXPECT_EQ(json["indexes"][0]["per_query"].size(), 20U);
    EXPECT_NEAR(json["indexes"][0]["flips"]["mean"].get<double>(), r.indexes[0].fidelity.flip_rate(), 1e-12);
    const std::string csv = evaluate_csv(r);
    EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 41);
    const std::string html = evaluate_html(r);
    EXPECT_NE(html.find("<svg"), std::string::npos);
    EXPECT_EQ(html.find("http"), std::string::npos);  // nothing is fetched
    EXPECT_EQ(html.find("<script"), std::string::npos);
    EXPECT_EQ(html.find("nan"), std::string::npos);
}

TEST(Evaluate, SupportedDifferencesAreColouredByTheirSign) {
    Fixture f;
    f.options.timed_queries = 0;
    EvaluateReport r = evaluate_job(f.options);
    const auto with = [&](double mean, bool supported) {
        r.indexes[0].ndcg_difference = {mean, mean - 0.01, mean + 0.01, supported};
        return evaluate_html(r);
    };
    EXPECT_NE(with(-0.1, true).find("class=\"loss\""), std::string::npos);
    EXPECT_NE(with(0.1, true).find("class=\"gain\""), std::string::npos);
    const std::string neither = with(0.005, false);
    EXPECT_EQ(neither.find("class=\"loss\""), std::string::npos);
    EXPECT_EQ(neither.find("class=\"gain\""), std::string::npos);
}

TEST(Evaluate, HostileIdsDoNotReachTheMarkup) {
    Fixture f;
    MultiVectorBuilder queries(32);
    queries.add("<script>alert(1)</script>", test::random_vectors(4, 32, 3));
    write_multi_vectors(f.directory / "queries.safetensors", queries.finish(), ScalarType::f32);
    f.options.no_labels = true;
    EXPECT_EQ(evaluate_html(evaluate_job(f.options)).find("<script"), std::string::npos);
}

TEST(Evaluate, WrongInputsAreNamed) {
    Fixture f;
    EvaluateOptions o = f.options;
    o.qrels.clear();
    EXPECT_THROW(evaluate_job(o), Error);
    o = f.options;
    o.indexes.clear();
    EXPECT_THROW(evaluate_job(o), Error);
    o = f.options;
    std::swap(o.full, o.queries);  // pages of the index are not among the "documents"
    try {
        evaluate_job(o);
        ADD_FAILURE();
    } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find("page-0"), std::string::npos) << error.what();
    }
    std::ofstream(f.directory / "qrels.tsv") << "nobody\tpage-1\t1\n";
    EXPECT_THROW(evaluate_job(f.options), Error);
}

TEST(Evaluate, PagesAnIndexLacksCountAsNotFound) {
    Fixture f;
    std::vector<std::size_t> half;
    for (std::size_t i = 0; i < 60; i += 2) half.push_back(i);
    write_multi_vectors(f.directory / "half.safetensors", f.full.subset(half), ScalarType::f32);
    f.options.indexes = {f.directory / "half.safetensors"};
    const EvaluateReport r = evaluate_job(f.options);
    EXPECT_EQ(r.indexes[0].missing, 30U);
    EXPECT_LT(r.indexes[0].quality.ndcg, r.full_quality.ndcg);
    EXPECT_TRUE(std::isfinite(r.indexes[0].fidelity.mean_margin_error()));
}

}  // namespace
}  // namespace marginmerge
