// Uploads against servers that stand in for the engines.
#include "export/upload.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "core/fail.h"
#include "export/survey.h"
#include "index/synthetic.h"
#include "io/multi_vector_file.h"
#include "kernels/convert.h"
#include "marginmerge/index/index_writer.h"
#include "marginmerge/jobs/export.h"
#include "stand_in.h"
#include "support/expect_error.h"
#include "support/made_files.h"
#include "support/temporary_directory.h"

namespace marginmerge {
namespace {

namespace fs = std::filesystem;

class Upload : public ::testing::TestWithParam<const char*> {
protected:
    Upload() {
        std::vector<std::string> metadata(40);
        metadata[3] = R"({"source":"a \"b\".pdf","year":2020})";
        IndexWriter writer(directory / "index");
        writer.add(pages, metadata, {.code = VectorCode::f32});
        writer.remove(std::vector<std::string>{"page-0"});
    }
    ExportOptions options(const std::string& url) const {
        ExportOptions o;
        o.index = directory / "index";
        o.target = GetParam();
        o.output = directory / "out";
        o.url = url;
        o.batch_bytes = 6000;
        o.retries = 2;
        o.timeout = 10;
        return o;
    }
    void expect_all(const test::StandIn& server) const {
        EXPECT_EQ(server.problems, std::vector<std::string>());
        ASSERT_EQ(server.pages.size(), 39U);
        for (std::size_t i = 1; i < pages.size(); ++i) {
            const auto found = server.pages.find(pages.id(i));
            ASSERT_NE(found, server.pages.end()) << pages.id(i);
            const Matrix rows = to_float(pages.vectors(i));
            ASSERT_EQ(found->second.vectors.size(), rows.rows());
            for (std::size_t r = 0; r < rows.rows(); ++r)
                for (std::size_t j = 0; j < rows.cols(); ++j) ASSERT_EQ(found->second.vectors[r][j], rows(r, j));
            EXPECT_EQ(found->second.position, i - 1);
            if (i == 3)
                EXPECT_EQ(found->second.metadata.at("source"), "a \"b\".pdf");
            else
                EXPECT_TRUE(found->second.metadata.is_null());
        }
    }

    test::TemporaryDirectory directory;
    MultiVectorSet pages = test::random_pages(40, 9, 32, 5);
};

std::size_t made(const std::string& engine) { return engine == "vespa" ? 32 : 0; }  // its schema must be deployed first

TEST_P(Upload, SendsEveryPageOnce) {
    test::StandIn server(GetParam());
    server.dim = made(GetParam());
    ExportOptions o = options(server.url());
    o.headers = {"Authorization: Bearer secret"};
    const ExportReport report = export_index(o);
    EXPECT_TRUE(report.uploaded);
    EXPECT_EQ(report.retried, 0U);
    EXPECT_GE(report.requests, 3U);
    EXPECT_EQ(server.last_authorization, "Bearer secret");
    expect_all(server);
    for (const auto& [id, page] : server.pages) EXPECT_EQ(page.writes, 1U) << id;
    EXPECT_TRUE(fs::exists(directory / "out/README.md"));
    EXPECT_FALSE(fs::exists(directory / "out/upload.json"));
    EXPECT_FALSE(fs::exists(directory / "out/data"));
    EXPECT_FALSE(fs::exists(directory / "out/load.sh"));
}

TEST_P(Upload, TriesAgainWhenTheServerIsBusy) {
    test::StandIn server(GetParam());
    server.dim = made(GetParam());
    server.trouble = [](std::size_t insert) { return insert == 1 ? 429 : insert == 2 ? 503 : 200; };
    const ExportReport report = export_index(options(server.url()));
    EXPECT_EQ(report.retried, 2U);
    expect_all(server);
}

TEST_P(Upload, GoesOnWhereItStopped) {
    test::StandIn server(GetParam());
    server.dim = made(GetParam());
    ExportOptions o = options(server.url());
    o.connections = 1;
    o.retries = 0;
    const std::size_t after = std::string(GetParam()) == "vespa" ? 21 : 3;
    server.trouble = [after](std::size_t insert) { return insert < after ? 200 : 503; };
    test::expect_error(ErrorCode::io, {GetParam(), "status 503", "of 39 pages are in", "same command"},
                       [&] { export_index(o); });
    const std::size_t before = server.pages.size();
    EXPECT_GT(before, 0U);
    EXPECT_LT(before, 39U);
    EXPECT_TRUE(fs::exists(directory / "out/upload.json"));
    server.trouble = [](std::size_t) { return 200; };
    const ExportReport report = export_index(o);
    EXPECT_GT(report.resumed_pages, 0U);
    EXPECT_LE(report.resumed_pages, before);
    expect_all(server);
    EXPECT_FALSE(fs::exists(directory / "out/upload.json"));
}

TEST_P(Upload, ARefusedPageIsNamedOrExplained) {
    test::StandIn server(GetParam());
    server.dim = made(GetParam());
    server.poison = "page-20";
    test::expect_error(ErrorCode::io, {GetParam(), "refused", "pages are in"},
                       [&] { export_index(options(server.url())); });
}

TEST_P(Upload, AnUnreachableServerIsOneLine) {
    std::string url;
    {
        test::StandIn server(GetParam());
        url = server.url();
    }
    test::expect_error(ErrorCode::io, {GetParam(), "127.0.0.1", "cannot be reached"},
                       [&] { export_index(options(url)); });
}

TEST_P(Upload, ARefusalAtTheDoorIsOneLine) {
    httplib::Server door;
    door.set_pre_routing_handler([](const httplib::Request&, httplib::Response& response) {
        response.status = 401;
        response.set_content(R"({"error":{"reason":"missing authentication credentials"}})", "application/json");
        return httplib::Server::HandlerResponse::Handled;
    });
    const int port = door.bind_to_any_port("127.0.0.1");
    std::thread thread([&] { door.listen_after_bind(); });
    while (!door.is_running()) std::this_thread::yield();
    test::expect_error(ErrorCode::io, {GetParam(), "401", "missing authentication"},
                       [&] { export_index(options("http://127.0.0.1:" + std::to_string(port))); });
    door.stop();
    thread.join();
}

INSTANTIATE_TEST_SUITE_P(Engines, Upload,
                         ::testing::Values("qdrant", "vespa", "milvus", "weaviate", "elasticsearch", "opensearch",
                                           "clickhouse"),
                         [](const auto& p) { return p.param; });

// load.sh as a user runs it.
class LoadScript : public Upload {};

TEST_P(LoadScript, LoadsTheFiles) {
    test::StandIn server(GetParam());
    server.tokens = false;
    ExportOptions o = options("");
    export_index(o);
    std::string variable = std::string(GetParam()) + "_URL";
    for (char& c : variable) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    const std::string command = variable + "=" + server.url() + " " + (directory / "out/load.sh").string() + " > " +
                                (directory / "log").string() + " 2>&1";
    EXPECT_EQ(std::system(command.c_str()), 0) << test::read_file(directory / "log");
    expect_all(server);
    for (const auto& entry : fs::recursive_directory_iterator(directory / "out")) {
        if (entry.path().extension() == ".json") {
            EXPECT_TRUE(nlohmann::json::accept(test::read_file(entry.path()))) << entry.path();
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Engines, LoadScript,
                         ::testing::Values("qdrant", "milvus", "weaviate", "elasticsearch", "opensearch", "clickhouse"),
                         [](const auto& p) { return p.param; });

// Engines that know the dimension of a collection.
class UploadTo : public Upload {};

TEST_P(UploadTo, ACollectionOfAnotherDimensionIsRefused) {
    test::StandIn server(GetParam());
    server.dim = 96;
    test::expect_error(ErrorCode::unsupported, {GetParam(), "'pages' exists", "32", "--name"},
                       [&] { export_index(options(server.url())); });
    EXPECT_EQ(server.inserts, 0U);
}

TEST_P(UploadTo, AVanishedCollectionIsFilledAnew) {
    test::StandIn server(GetParam());
    ExportOptions o = options(server.url());
    o.connections = 1;
    o.retries = 0;
    server.trouble = [](std::size_t insert) { return insert < 2 ? 200 : 503; };
    test::expect_error(ErrorCode::io, {"pages are in"}, [&] { export_index(o); });
    server.trouble = [](std::size_t) { return 200; };
    server.dim = 0;
    server.pages.clear();
    const ExportReport report = export_index(o);
    EXPECT_EQ(report.resumed_pages, 0U);
    ASSERT_FALSE(report.notes.empty());
    EXPECT_NE(report.notes.back().find("starting anew"), std::string::npos);
    expect_all(server);
}

INSTANTIATE_TEST_SUITE_P(Engines, UploadTo, ::testing::Values("qdrant", "milvus", "elasticsearch", "clickhouse"),
                         [](const auto& p) { return p.param; });

class ClickHouseUpload : public Upload {};

TEST_P(ClickHouseUpload, RowsThatAreThereAreNotDoubled) {
    test::StandIn server(GetParam());
    export_index(options(server.url()));
    test::expect_error(ErrorCode::unsupported, {"39 rows", "--append"}, [&] { export_index(options(server.url())); });
    ExportOptions o = options(server.url());
    o.append = true;
    EXPECT_EQ(export_index(o).resumed_pages, 0U);
}

INSTANTIATE_TEST_SUITE_P(Engines, ClickHouseUpload, ::testing::Values("clickhouse"),
                         [](const auto& p) { return p.param; });

class Scripted : public RestServer {
public:
    explicit Scripted(std::vector<HttpAnswer>& answers) : answers_(answers) {}
    HttpAnswer ask(const HttpRequest&) override {
        if (answers_.empty()) fail(ErrorCode::io, "nobody there");
        const HttpAnswer answer = answers_.front();
        answers_.erase(answers_.begin());
        return answer;
    }

private:
    std::vector<HttpAnswer>& answers_;
};

TEST(UploadPauses, DoubleAndFollowRetryAfter) {
    const test::TemporaryDirectory directory;
    const auto index = Index::wrap(test::random_pages(3, 2, 32, 1));
    ExportPlan plan;
    plan.pages = 3;
    plan.dim = 32;
    std::vector<HttpAnswer> answers{{404, "{}", 0}, {200, "{}", 0}, {503, "", 0},
                                    {503, "", 7},   {502, "", 0},   {200, "{}", 0}};
    std::vector<double> pauses;
    UploadOptions options;
    options.connect = [&] { return std::make_unique<Scripted>(answers); };
    options.connections = 1;
    options.journal = directory / "upload.json";
    options.pause = [&](double seconds) { pauses.push_back(seconds); };
    const UploadReport report = upload_index(*index, plan, *qdrant_target().rest(), options);
    EXPECT_EQ(report.retried, 3U);
    EXPECT_EQ(pauses, (std::vector<double>{0.5, 7, 2}));
}

TEST(UploadUrl, IsChecked) {
    const test::TemporaryDirectory directory;
    write_multi_vectors(directory / "docs", test::random_pages(3, 2, 32, 1), ScalarType::f32);
    for (const char* url : {"localhost:6333", "ftp://localhost", "http://", "http://:80"}) {
        ExportOptions o;
        o.index = directory / "docs";
        o.target = "qdrant";
        o.output = directory / "out";
        o.url = url;
        test::expect_error(ErrorCode::invalid_argument, {"--url"}, [&] { export_index(o); });
    }
    ExportOptions o;
    o.index = directory / "docs";
    o.target = "qdrant";
    o.output = directory / "out";
    o.url = "http://user:hunter2@127.0.0.1:1";
    try {
        export_index(o);
        ADD_FAILURE();
    } catch (const Error& error) {
        EXPECT_EQ(std::string(error.what()).find("hunter2"), std::string::npos) << error.what();
    }
}

TEST(Limits, NameThePage) {
    MultiVectorBuilder builder(128);
    builder.add("small", test::random_vectors(2, 128, 1));
    builder.add("vast", Matrix(8193, 128));
    const auto index = Index::wrap(builder.finish());
    test::expect_error(ErrorCode::unsupported, {"qdrant", "'vast'", "1048576", "1048704"},
                       [&] { survey_index(*index, qdrant_target(), 1, {}); });
    test::expect_error(ErrorCode::unsupported, {"milvus", "'vast'", "4096", "8193"},
                       [&] { survey_index(*index, milvus_target(), 1, {}); });
    MultiVectorBuilder wide(4104);
    wide.add("a", Matrix(1, 4104));
    test::expect_error(ErrorCode::unsupported, {"elasticsearch", "4096", "4104"},
                       [&] { survey_index(*Index::wrap(wide.finish()), elasticsearch_target(), 1, {}); });
    MultiVectorBuilder named(32);
    named.add(std::string(600, 'x'), Matrix(1, 32));
    test::expect_error(ErrorCode::unsupported, {"opensearch", "512", "600"},
                       [&] { survey_index(*Index::wrap(named.finish()), opensearch_target(), 1, {}); });
}

}  // namespace
}  // namespace marginmerge
