#include "service.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "api_error.h"
#include "kernels/convert.h"
#include "overview.h"
#include "test_server.h"

namespace marginmerge::server {
namespace {

using test::Corpus;

SearchRequest example(const std::string& id, const std::string& view = "") {
    SearchRequest r;
    r.query.examples = {id};
    r.view = view;
    return r;
}

/// MaxSim by the definition, in double precision.
double score(const MultiVectorSet& pages, const std::string& id, const Matrix& query) {
    const Matrix v = to_float(pages.vectors(*pages.find(id)));
    double sum = 0;
    for (std::size_t t = 0; t < query.rows(); ++t) {
        double best = -1e300;
        for (std::size_t r = 0; r < v.rows(); ++r) {
            double dot = 0;
            for (std::size_t j = 0; j < v.cols(); ++j) dot += static_cast<double>(query(t, j)) * v(r, j);
            best = std::max(best, dot);
        }
        sum += best;
    }
    return sum;
}

TEST(Service, ViewsAreTheSamePagesWithMoreOrFewerVectors) {
    const Corpus corpus;
    Service service(corpus.options());
    const auto stats = service.stats();
    std::vector<std::string> names;
    for (const auto& view : stats["views"]) names.push_back(view["name"]);
    EXPECT_EQ(names, (std::vector<std::string>{"2%", "5%", "10%", "20%", "index", "full"}));
    EXPECT_EQ(stats["views"].back()["vectors"], Corpus::pages * Corpus::patches);
    EXPECT_EQ(stats["source_vectors"], Corpus::pages * Corpus::patches);

    const MultiVectorSet full = read_multi_vectors(corpus.directory / "full.safetensors");
    const MultiVectorSet small = read_multi_vectors(corpus.directory / "small.safetensors");
    const Matrix query = to_float(read_multi_vectors(corpus.directory / "queries.safetensors").vectors(1));
    const auto from_full = service.search(example("q1", "full"));
    for (const auto& hit : from_full["hits"]) {
        EXPECT_NEAR(hit["score"].get<double>(), score(full, hit["id"], query), 1e-5);
    }
    const auto from_index = service.search(example("q1"));
    for (const auto& hit : from_index["hits"]) {
        EXPECT_NEAR(hit["score"].get<double>(), score(small, hit["id"], query), 1e-5);
    }
    EXPECT_THROW(service.search(example("q1", "7%")), ApiError);
}

TEST(Service, ExplanationAddsUpInEveryView) {
    const Corpus corpus;
    Service service(corpus.options());
    for (const std::string view : {"5%", "20%", "index", "full"}) {
        const auto hits = service.search(example("q2", view))["hits"];
        for (const auto& hit : hits) {
            ExplainRequest request;
            request.query.examples = {"q2"};
            request.id = hit["id"];
            request.view = view;
            request.similarities = true;
            const auto page = service.explain(request);
            EXPECT_NEAR(page["score"].get<double>(), hit["score"].get<double>(), 1e-5) << view;
            EXPECT_EQ(page["owner"].size(), Corpus::patches);
            EXPECT_EQ(page["grid"], nlohmann::ordered_json({4, 4}));
            double sum = 0;
            for (const auto& token : page["tokens"]) {
                sum += token["score"].get<double>();
                const int r = token["representative"];
                const auto& row = page["similarities"][token["token"].get<std::size_t>()];
                EXPECT_EQ(row.size(), page["vectors"].get<std::size_t>());
                for (const auto& s : row)
                    EXPECT_LE(s.get<double>(), row[static_cast<std::size_t>(r)].get<double>() + 1e-9);
                for (const auto& patch : token["patches"]) EXPECT_EQ(page["owner"][patch.get<std::size_t>()], r);
            }
            EXPECT_NEAR(sum, page["score"].get<double>(), 1e-5);
        }
    }
}

// Pages encoded from text have boxes, which a compressed file does not carry: the full pages served beside it do.
TEST(Service, PlacesComeFromTheFullPagesWhenTheIndexHasNone) {
    const Corpus corpus;
    const MultiVectorSet full = read_multi_vectors(corpus.directory / "full.safetensors");
    std::vector<float> boxes;
    for (std::size_t i = 0; i < full.total_vectors(); ++i) {
        const float left = 0.01F * static_cast<float>(i % 16);
        boxes.insert(boxes.end(), {left, 0.25F, left + 0.01F, 0.5F});
    }
    MultiVectorParts parts;
    parts.vectors = full.all_vectors();
    parts.offsets = full.offsets();
    for (std::size_t i = 0; i < full.size(); ++i) parts.ids.push_back(full.id(i));
    parts.boxes = boxes;
    const MultiVectorSet boxed(std::move(parts), "boxed");
    write_multi_vectors(corpus.directory / "boxed.safetensors", boxed, ScalarType::f32);
    write_multi_vectors(corpus.directory / "bare.safetensors", Corpus::compressed(full, Corpus::kept, false),
                        ScalarType::f32);
    ServiceOptions options = corpus.options();
    options.sources.index = corpus.directory / "bare.safetensors";
    options.sources.full.clear();
    EXPECT_TRUE(Service(options).page("page-3")["boxes"].is_null());
    options.sources.full = corpus.directory / "boxed.safetensors";
    Service service(std::move(options));
    ExplainRequest request;
    request.query.examples = {"q2"};
    request.id = "page-3";
    for (const auto& page : {service.page("page-3"), service.explain(request)}) {
        ASSERT_EQ(page["boxes"].size(), Corpus::patches);
        EXPECT_NEAR(page["boxes"][5][0].get<double>(), 0.05, 1e-6);
        EXPECT_NEAR(page["boxes"][5][3].get<double>(), 0.5, 1e-6);
    }
}

TEST(Service, FiltersHoldInEveryView) {
    const Corpus corpus;
    Service service(corpus.options());
    for (const std::string view : {"5%", "index", "full"}) {
        SearchRequest request = example("q0", view);
        request.filter = Filter::parse("year >= 2015 and language = de");
        const auto hits = service.search(request)["hits"];
        ASSERT_EQ(hits.size(), 2U) << view;
        for (const auto& hit : hits) EXPECT_EQ(hit["metadata"]["language"], "de");
        request.k = 1;
        EXPECT_EQ(service.search(request)["hits"].size(), 1U);
    }
}

TEST(Service, VariantFilesBecomeViews) {
    const Corpus corpus;
    const MultiVectorSet full = read_multi_vectors(corpus.directory / "full.safetensors");
    write_multi_vectors(corpus.directory / "two.safetensors", Corpus::compressed(full, 2), ScalarType::f32);
    ServiceOptions options = corpus.options();
    options.sources.variants = {corpus.directory / "two.safetensors"};
    Service service(std::move(options));
    const auto views = service.stats()["views"];
    ASSERT_EQ(views.size(), 3U);
    EXPECT_EQ(views[0]["kind"], "variant");
    EXPECT_NEAR(views[0]["share"].get<double>(), 0.125, 1e-9);
    EXPECT_EQ(service.search(example("q0", views[0]["name"]))["hits"].size(), 10U);
}

TEST(Service, ChangesAreSeenAtOnceAndOldReadersKeepTheirs) {
    const Corpus corpus;
    Service service(corpus.options());
    const auto before = service.snapshot();
    AddRequest add;
    MultiVectorBuilder builder(Corpus::dim);
    builder.add("new", test::random_rows(3, Corpus::dim, 5));
    add.pages = builder.finish();
    add.metadata = {R"({"title": "new"})"};
    EXPECT_EQ(service.add(add)["added"], 1);
    EXPECT_EQ(service.page("new")["metadata"]["title"], "new");
    EXPECT_THROW(service.add(add), ApiError) << "exists";
    add.replace = true;
    EXPECT_EQ(service.add(add)["replaced"], 1);
    EXPECT_EQ(service.remove({"new", "absent"}, false)["deleted"], 1);
    EXPECT_THROW(service.page("new"), ApiError);
    EXPECT_THROW(service.remove({"new"}, true), ApiError);
    EXPECT_EQ(before->index->size(), Corpus::pages);
}

TEST(Service, NoticesWhatOtherProcessesDo) {
    const Corpus corpus;
    ServiceOptions options = corpus.options();
    options.poll_seconds = 0.05;
    Service service(std::move(options));
    const std::string gone = "page-3";
    IndexWriter(corpus.directory / "index").remove(std::span(&gone, 1));
    for (int i = 0; i < 100 && service.snapshot()->index->size() == Corpus::pages; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_EQ(service.snapshot()->index->size(), Corpus::pages - 1);
}

TEST(Service, SearchesWhileTheIndexChanges) {
    const Corpus corpus;
    Service service(corpus.options());
    std::atomic<bool> end{false};
    std::atomic<int> searches{0};
    std::vector<std::thread> readers;
    for (int i = 0; i < 3; ++i) {
        readers.emplace_back([&] {
            while (!end) {
                ASSERT_GE(service.search(example("q0"))["hits"].size(), 10U);
                ++searches;
            }
        });
    }
    for (int i = 0; i < 15; ++i) {
        AddRequest add;
        MultiVectorBuilder builder(Corpus::dim);
        builder.add("extra-" + std::to_string(i),
                    test::random_rows(3, Corpus::dim, 70 + static_cast<std::uint64_t>(i)));
        add.pages = builder.finish();
        service.add(add);
        if (i % 3 == 0) service.reload();
    }
    end = true;
    for (auto& r : readers) r.join();
    EXPECT_GT(searches.load(), 0);
    EXPECT_EQ(service.snapshot()->index->size(), Corpus::pages + 15);
}

TEST(Service, SingleFilesAreReadOnlyAndLimitsHold) {
    const Corpus corpus;
    ServiceOptions options = corpus.options();
    options.sources.index = corpus.directory / "small.safetensors";
    options.limits.search_seconds = -1;
    Service service(std::move(options));
    const auto code = [](auto&& f) {
        try {
            f();
            return std::string("ok");
        } catch (const ApiError& error) {
            return error.code();
        }
    };
    EXPECT_EQ(code([&] { service.remove({"page-0"}, true); }), "read_only");
    EXPECT_EQ(code([&] { service.search(example("q0")); }), "deadline_exceeded");
    EXPECT_EQ(code([&] { service.search(example("nothing")); }), "example_not_found");
    SearchRequest wrong;
    wrong.query.vectors.push_back(Matrix(1, 3));
    EXPECT_EQ(code([&] { service.search(wrong); }), "dimension_mismatch");
    SearchRequest text;
    text.query.texts = {"hello"};
    EXPECT_EQ(code([&] { service.search(text); }), "no_encoder");
}

TEST(Service, BadFilesAreRefusedAtTheStart) {
    const Corpus corpus;
    ServiceOptions options = corpus.options();
    options.sources.index = corpus.directory / "absent";
    EXPECT_THROW(Service{options}, Error);
    options = corpus.options();
    MultiVectorBuilder other(8);
    other.add("a", test::random_rows(1, 8, 1));
    write_multi_vectors(corpus.directory / "eight.safetensors", other.finish(), ScalarType::f32);
    options.sources.queries = corpus.directory / "eight.safetensors";
    EXPECT_THROW(Service{options}, Error);
}

TEST(Overview, RedundancyIsPatchesForEachDirection) {
    Matrix same(6, 16);
    for (std::size_t i = 0; i < 6; ++i) same(i, 0) = 1;
    EXPECT_NEAR(redundancy(same), 6, 1e-6) << "one direction";
    Matrix different(6, 16);
    for (std::size_t i = 0; i < 6; ++i) different(i, i) = 1;
    EXPECT_NEAR(redundancy(different), 1, 1e-6);
    Matrix tall(40, 4);
    for (std::size_t i = 0; i < 40; ++i) tall(i, i % 4) = 1;
    EXPECT_NEAR(redundancy(tall), 10, 1e-5);
    const Corpus corpus;
    Service service(corpus.options());
    for (int i = 0; i < 200 && !service.overview()["ready"].get<bool>(); ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const auto overview = service.overview();
    ASSERT_TRUE(overview["ready"].get<bool>());
    EXPECT_EQ(overview["basis"], "full");
    EXPECT_EQ(overview["pages"].size(), Corpus::pages);
    EXPECT_EQ(overview["fields"].size(), 3U);
    EXPECT_EQ(overview["fields"][2]["maximum"], 2021);
}

}  // namespace
}  // namespace marginmerge::server
