// The whole server over a socket, against its own description.
#include <gtest/gtest.h>
#include <httplib.h>

#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "api_error.h"
#include "router.h"
#include "routes.h"
#include "support/made_files.h"
#include "test_server.h"
#include "web_files.h"

namespace marginmerge::server {
namespace {

using nlohmann::json;
using test::Corpus;
using test::RunningServer;

const json& document() {
    static const json d = json::parse(openapi_document());
    return d;
}

/// Checks a value against the schemas of our document (the part of JSON Schema that it uses).
void check(const json& schema, const json& value, const std::string& where) {
    if (schema.contains("$ref")) {
        const std::string name = schema["$ref"].get<std::string>().substr(std::strlen("#/components/schemas/"));
        return check(document()["components"]["schemas"].at(name), value, where);
    }
    if (value.is_null()) {
        EXPECT_TRUE(schema.value("nullable", false)) << where;
        return;
    }
    const std::string type = schema.value("type", "");
    if (type == "object") {
        ASSERT_TRUE(value.is_object()) << where;
        for (const auto& name : schema.value("required", json::array()))
            EXPECT_TRUE(value.contains(name.get<std::string>())) << where << "." << name;
        if (!schema.contains("properties")) return;
        for (const auto& [name, item] : value.items()) {
            ASSERT_TRUE(schema["properties"].contains(name)) << where << "." << name << " is not in the document";
            check(schema["properties"][name], item, where + "." + name);
        }
    } else if (type == "array") {
        ASSERT_TRUE(value.is_array()) << where;
        for (const auto& item : value) check(schema["items"], item, where + "[]");
    } else if (type == "string") {
        EXPECT_TRUE(value.is_string()) << where;
        if (schema.contains("enum")) {
            EXPECT_NE(std::find(schema["enum"].begin(), schema["enum"].end(), value), schema["enum"].end())
                << where << value;
        }
    } else if (type == "integer") {
        EXPECT_TRUE(value.is_number_integer()) << where;
    } else if (type == "number") {
        EXPECT_TRUE(value.is_number()) << where;
    } else if (type == "boolean") {
        EXPECT_TRUE(value.is_boolean()) << where;
    }
}

/// What was exercised: "POST /v1/search 200", and each error code.
std::set<std::string> seen_responses;
std::set<std::string> seen_codes;

/// A response that must be one the document promises.
json expect(const std::string& method, const std::string& path, const httplib::Result& result, int status,
            const std::string& code = "") {
    const std::string where = method + " " + path;
    EXPECT_TRUE(result) << where;
    if (!result) return {};
    EXPECT_EQ(result->status, status) << where << " " << result->body;
    std::string lower = method;
    for (char& c : lower) c = static_cast<char>(std::tolower(c));
    const json& responses = document()["paths"].at(path).at(lower)["responses"];
    EXPECT_TRUE(responses.contains(std::to_string(result->status)))
        << where << " " << result->status << " is not in the document";
    seen_responses.insert(where + " " + std::to_string(result->status));
    if (result->get_header_value("Content-Type").rfind("application/json", 0) != 0) return {};
    const json body = json::parse(result->body, nullptr, false);
    EXPECT_FALSE(body.is_discarded()) << where;
    const json response = responses.value(std::to_string(result->status), json::object());
    if (response.contains("content")) check(response["content"]["application/json"]["schema"], body, where);
    if (!code.empty()) {
        EXPECT_EQ(body["error"]["code"], code) << where;
        EXPECT_EQ(body["error"]["status"], status);
        const json& codes = response["x-error-codes"];
        EXPECT_NE(std::find(codes.begin(), codes.end(), code), codes.end())
            << where << ": " << code << " is not in the document";
        seen_codes.insert(code);
    }
    return body;
}

struct Server : RunningServer {
    httplib::Client client;
    explicit Server(const Corpus& corpus) : Server(corpus.options()) {}
    explicit Server(ServiceOptions options, HttpOptions o = {})
        : RunningServer(std::move(options), o), client("127.0.0.1", port) {
        client.set_read_timeout(60);
    }
    httplib::Result post(const std::string& path, const std::string& body,
                         const std::string& type = "application/json") {
        return client.Post(path, body, type);
    }
    json search(const std::string& body, int status = 200, const std::string& code = "") {
        return expect("POST", "/v1/search", post("/v1/search", body), status, code);
    }
};

TEST(Routes, AreThoseOfTheDocument) {
    const Corpus corpus;
    Service service(corpus.options());
    GateCounters counters;
    Router router;
    add_routes(router, service, {{}, &counters, false});
    std::set<std::string> real, described, pages;
    for (const WebFile& file : web_files()) pages.insert("GET " + std::string(file.path));
    for (const Route& route : router.routes()) {
        const std::string name = route.method + " " + route.path;
        if (pages.count(name) == 0) real.insert(name);
    }
    for (const auto& [path, operations] : document()["paths"].items()) {
        for (const auto& [method, operation] : operations.items()) {
            std::string upper = method;
            for (char& c : upper) c = static_cast<char>(std::toupper(c));
            described.insert(upper + " " + path);
            const bool open = operation.contains("security") && operation["security"].empty();
            for (const Route& route : router.routes()) {
                if (route.method == upper && route.path == path) {
                    EXPECT_EQ(route.open, open) << upper << path;
                }
            }
        }
    }
    EXPECT_EQ(real, described);
}

// One test exercises every route and every error of the document, and proves that it did.
TEST(Routes, AnswerAsTheDocumentSays) {
    const Corpus corpus;
    HttpOptions http;
    http.limits.body_bytes = 1 << 20;
    http.limits.k = 50;
    http.limits.head_seconds = 1;
    ServiceOptions options = corpus.options();
    options.limits = http.limits;
    Server s(std::move(options), http);
    httplib::Client& c = s.client;

    // search
    const json one = s.search(R"({"example": "q0", "k": 3})");
    EXPECT_EQ(one["hits"].size(), 3U);
    EXPECT_EQ(s.search(R"({"examples": ["q0", "q1"], "metadata": false})")["results"].size(), 2U);
    const std::string queries = test::read_file(corpus.directory / "queries.safetensors");
    const json binary =
        expect("POST", "/v1/search", s.post("/v1/search?k=3&view=full", queries, "application/octet-stream"), 200);
    EXPECT_EQ(binary["results"].size(), 3U);
    EXPECT_EQ(binary["view"], "full");
    s.search(R"({"example": "q0", "first_pass": "prefix", "candidates": 8})");
    s.search("{", 400, "invalid_json");
    s.search("{}", 400, "invalid_argument");
    s.search(R"({"example": "q0", "k": 51})", 400, "limit_exceeded");
    s.search(R"({"vectors": [[1, 2]]})", 400, "dimension_mismatch");
    s.search(R"({"example": "nobody"})", 404, "example_not_found");
    s.search(R"({"example": "q0", "view": "3%"})", 404, "view_not_found");
    s.search(R"({"text": "words"})", 501, "no_encoder");
    expect("POST", "/v1/search", s.post("/v1/search", "not a file", "application/octet-stream"), 400, "invalid_body");
    expect("POST", "/v1/search", s.post("/v1/search", "{}", "text/plain"), 415, "unsupported_media_type");
    for (const std::size_t size : {10U, 8192U, 8193U, 100000U})  // what curl -d sends unless told otherwise
        expect("POST", "/v1/search", s.post("/v1/search", std::string(size, ' '), "application/x-www-form-urlencoded"),
               415, "unsupported_media_type");
    expect("POST", "/v1/search", s.post("/v1/search", std::string(2 << 20, ' ')), 413, "body_too_large");
    expect("POST", "/v1/search",
           c.Post(
               "/v1/search",
               [](std::size_t, httplib::DataSink& sink) {
                   sink.write("x", 1);
                   sink.done();
                   return true;
               },
               "application/json"),
           411, "length_required");
    // What gates and routers say is the same on every path.
    const auto on_search = [&](const httplib::Headers& headers, int status, const std::string& code) {
        expect("POST", "/v1/search", c.Post("/v1/search", headers, R"({"example": "q0"})", "application/json"), status,
               code);
    };
    on_search({{"Origin", "http://evil.example"}}, 403, "forbidden_host");
    on_search(
        {{"X-Long", std::string(5000, 'a')}, {"X-Long2", std::string(7000, 'a')}, {"X-Long3", std::string(7000, 'a')}},
        431, "headers_too_large");
    expect("POST", "/v1/search", c.Post("/v1/search?" + std::string(3000, 'a'), "{}", "application/json"), 414,
           "uri_too_long");

    // explain
    const std::string id = one["hits"][0]["id"];
    expect("POST", "/v1/explain",
           s.post("/v1/explain", R"({"example": "q0", "id": ")" + id + R"(", "similarities": true})"), 200);
    expect("POST", "/v1/explain", s.post("/v1/explain", R"({"example": "q0", "id": "nobody"})"), 404, "page_not_found");
    expect("POST", "/v1/explain", s.post("/v1/explain", R"({"example": "q0"})"), 400, "invalid_argument");

    // encode and examples
    const json decoded =
        expect("POST", "/v1/encode", s.post("/v1/encode", queries, "application/vnd.safetensors"), 200);
    EXPECT_EQ(decoded["queries"].size(), 3U);
    EXPECT_EQ(expect("GET", "/v1/examples", c.Get("/v1/examples?limit=2"), 200)["examples"].size(), 2U);
    expect("GET", "/v1/examples", c.Get("/v1/examples?limit=x"), 400, "invalid_argument");
    expect("GET", "/v1/examples", c.Get("/v1/examples?limit=99999"), 400, "limit_exceeded");

    // pages
    EXPECT_EQ(expect("GET", "/v1/pages", c.Get("/v1/pages?limit=5&filter=year%20%3E%202015"), 200)["matching"], 6);
    EXPECT_EQ(expect("GET", "/v1/pages", c.Get("/v1/pages?filter=year=2015"), 200)["matching"], 1);
    EXPECT_EQ(expect("GET", "/v1/pages", c.Get("/v1/pages?filter=year%3E=2016&limit=1"), 200)["matching"], 6);
    expect("GET", "/v1/pages", c.Get("/v1/pages?filter=year%20%3E"), 400, "invalid_argument");
    const json page = expect("GET", "/v1/pages/{id}", c.Get("/v1/pages/page-1"), 200);
    EXPECT_TRUE(page["image"].get<bool>());
    EXPECT_FALSE(page["text"].get<bool>());
    expect("GET", "/v1/pages/{id}", c.Get("/v1/pages/..%2Fsecret"), 404, "page_not_found");
    expect("GET", "/v1/pages/{id}", c.Get("/v1/pages/%zz"), 400, "bad_request");
    const auto image = c.Get("/v1/pages/page-1/image");
    expect("GET", "/v1/pages/{id}/image", image, 200);
    EXPECT_EQ(image->get_header_value("Content-Type"), "image/svg+xml");
    EXPECT_NE(image->get_header_value("Content-Security-Policy").find("sandbox"), std::string::npos);
    expect("GET", "/v1/pages/{id}/image",
           c.Get("/v1/pages/page-1/image", {{"If-None-Match", image->get_header_value("ETag")}}), 304);
    expect("GET", "/v1/pages/{id}/image", c.Get("/v1/pages/page-0/image"), 404, "asset_not_found");
    const auto text = c.Get("/v1/pages/page-0/text");
    expect("GET", "/v1/pages/{id}/text", text, 200);
    EXPECT_EQ(text->body, "words of page zero");
    expect("GET", "/v1/pages/{id}/text",
           c.Get("/v1/pages/page-0/text", {{"If-None-Match", text->get_header_value("ETag")}}), 304);
    expect("GET", "/v1/pages/{id}/text", c.Get("/v1/pages/nobody/text"), 404, "page_not_found");

    // changes
    std::string vector = "[";
    for (std::size_t i = 0; i < Corpus::dim; ++i) vector += (i == 0 ? "1" : ",0");
    const std::string add = R"({"pages": [{"id": "a/b c", "vectors": [)" + vector + R"(]], "metadata": {"year": 1}}]})";
    expect("POST", "/v1/pages", s.post("/v1/pages", add), 201);
    expect("POST", "/v1/pages", s.post("/v1/pages", add), 409, "conflict");
    expect("POST", "/v1/pages", s.post("/v1/pages", R"({"pages": [{"id": "x", "vectors": [[1]]}]})"), 400,
           "dimension_mismatch");
    EXPECT_EQ(expect("POST", "/v1/pages",
                     s.post("/v1/pages?replace=true", test::read_file(corpus.directory / "small.safetensors"),
                            "application/octet-stream"),
                     201)["replaced"],
              12);
    EXPECT_EQ(expect("GET", "/v1/pages/{id}", c.Get("/v1/pages/a%2Fb%20c"), 200)["metadata"]["year"], 1);
    {
        const IndexWriter other(corpus.directory / "index");
        expect("DELETE", "/v1/pages/{id}", c.Delete("/v1/pages/page-0"), 503, "locked");
    }
    expect("DELETE", "/v1/pages/{id}", c.Delete("/v1/pages/a%2Fb%20c"), 200);
    expect("DELETE", "/v1/pages/{id}", c.Delete("/v1/pages/a%2Fb%20c"), 404, "page_not_found");
    EXPECT_EQ(expect("DELETE", "/v1/pages",
                     c.Delete("/v1/pages", R"({"ids": ["page-0", "nobody"]})", "application/json"), 200)["missing"],
              1);
    expect("DELETE", "/v1/pages", c.Delete("/v1/pages", R"({"ids": 3})", "application/json"), 400, "invalid_argument");
    EXPECT_EQ(expect("POST", "/v1/reload", s.post("/v1/reload", ""), 200)["pages"], 11);

    // about the server
    EXPECT_EQ(expect("GET", "/v1/stats", c.Get("/v1/stats"), 200)["pages"], 11);
    for (int i = 0; i < 100 && !expect("GET", "/v1/overview", c.Get("/v1/overview"), 200)["ready"].get<bool>(); ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    expect("GET", "/healthz", c.Get("/healthz"), 200);
    expect("GET", "/readyz", c.Get("/readyz"), 200);
    const auto metrics = c.Get("/metrics");
    expect("GET", "/metrics", metrics, 200);
    for (const char* line :
         {"marginmerge_requests_total{route=\"POST /v1/search\",status=\"200\"} ",
          "marginmerge_request_seconds_bucket{route=\"GET /v1/stats\",le=\"+Inf\"} 1", "marginmerge_index_pages 11",
          "marginmerge_pages_deleted_total 2", "marginmerge_connections "}) {
        EXPECT_NE(metrics->body.find(line), std::string::npos) << line;
    }
    expect("GET", "/openapi.json", c.Get("/openapi.json"), 200);

    // Unknown paths and methods have no place in the document's paths; their codes have.
    const auto unknown = c.Get("/v2/anything");
    EXPECT_EQ(unknown->status, 404);
    EXPECT_EQ(json::parse(unknown->body)["error"]["code"], "not_found");
    seen_codes.insert("not_found");
    const auto wrong = c.Put("/v1/search", "", "text/plain");
    EXPECT_EQ(wrong->status, 405);
    EXPECT_EQ(json::parse(wrong->body)["error"]["code"], "method_not_allowed");
    seen_codes.insert("method_not_allowed");

    // The rest of the document's errors, each on a server made to fail that way.
    s.service.begin_shutdown();
    expect("GET", "/readyz", c.Get("/readyz"), 503, "not_ready");
    std::filesystem::remove_all(corpus.directory / "full.safetensors");
    expect("POST", "/v1/reload", s.post("/v1/reload", ""), 404, "not_found");
    expect("GET", "/healthz", c.Get("/healthz"), 200);
    s.search(R"({"example": "q1"})");

    for (const auto& [path, operations] : document()["paths"].items()) {
        for (const auto& [method, operation] : operations.items()) {
            std::string upper = method;
            for (char& ch : upper) ch = static_cast<char>(std::toupper(ch));
            const bool done =
                seen_responses.count(upper + " " + path + " 200") + seen_responses.count(upper + " " + path + " 201") >
                0;
            EXPECT_TRUE(done) << upper << " " << path << " was not exercised";
        }
    }
    // Codes that other tests show: by the gate's (time, load), the encoder's and the files' own faults.
    const std::set<std::string> elsewhere{"unauthorized",      "request_timeout", "overloaded", "encoder_failed",
                                          "deadline_exceeded", "read_only",       "corrupt",    "io",
                                          "internal",          "unsupported"};
    for (const auto& error : document()["x-errors"]) {
        const std::string code = error["code"];
        EXPECT_TRUE(seen_codes.count(code) == 1 || elsewhere.count(code) == 1) << code << " was not exercised";
    }
}

TEST(Routes, KeysAreAskedForAndChecked) {
    const Corpus corpus;
    HttpOptions http;
    http.api_key = "open sesame";
    Server s(corpus.options(), http);
    httplib::Client& c = s.client;
    expect("GET", "/v1/stats", c.Get("/v1/stats"), 401, "unauthorized");
    expect("GET", "/v1/stats", c.Get("/v1/stats", {{"X-API-Key", "open sesam"}}), 401, "unauthorized");
    expect("GET", "/v1/stats", c.Get("/v1/stats", {{"Authorization", "Basic open sesame"}}), 401, "unauthorized");
    expect("GET", "/v1/stats", c.Get("/v1/stats", {{"X-API-Key", "open sesame"}}), 200);
    expect("GET", "/v1/stats", c.Get("/v1/stats", {{"Authorization", "Bearer open sesame"}}), 200);
    expect("GET", "/metrics", c.Get("/metrics"), 401, "unauthorized");
    for (const char* open : {"/", "/app.js", "/healthz", "/readyz", "/openapi.json"})
        EXPECT_EQ(c.Get(open)->status, 200) << open;
    HttpOptions outside;
    outside.host = "0.0.0.0";
    EXPECT_THROW(HttpServer(s.service, outside), Error) << "no key, no other address";
}

TEST(Routes, ServeThePage) {
    const Corpus corpus;
    Server s(corpus);
    const auto page = s.client.Get("/");
    ASSERT_EQ(page->status, 200);
    EXPECT_NE(page->body.find("<!doctype html>"), std::string::npos);
    EXPECT_NE(page->get_header_value("Content-Security-Policy").find("default-src 'self'"), std::string::npos);
    EXPECT_EQ(s.client.Get("/", {{"If-None-Match", page->get_header_value("ETag")}})->status, 304);
    EXPECT_EQ(s.client.Head("/")->body, "");
    for (const WebFile& file : web_files()) {
        EXPECT_EQ(file.content.find("http://"), file.content.find("http://www.w3.org"))
            << file.path << " must not need the network";
        EXPECT_EQ(file.content.find("https://"), std::string_view::npos) << file.path;
    }
    EXPECT_EQ(s.client.Get("/", {{"Host", "rebound.example"}})->status, 403);
}

TEST(Routes, TextGoesThroughTheEncoder) {
    struct Fixed : TextEncoder {
        std::atomic<int> calls{0};
        EncodedText encode(const std::string& text) override {
            ++calls;
            if (text == "broken") throw ApiError(502, "encoder_failed", "encoder: no");
            EncodedText out{test::random_rows(5, Corpus::dim, 900), {"a", "b", "c", "d", "e"}};
            return out;
        }
        std::string description() const override { return "fixed"; }
    };
    const Corpus corpus;
    const auto encoder = std::make_shared<Fixed>();
    ServiceOptions options = corpus.options();
    options.encoder = encoder;
    Server s(std::move(options));
    EXPECT_EQ(s.search(R"({"text": "hello"})")["hits"], s.search(R"({"example": "q0"})")["hits"]);
    const json why = expect("POST", "/v1/explain", s.post("/v1/explain", R"({"text": "hello", "id": "page-0"})"), 200);
    EXPECT_EQ(why["tokens"][1]["text"], "b");
    EXPECT_EQ(encoder->calls.load(), 1) << "the second time comes from memory";
    s.search(R"({"text": "broken"})", 502, "encoder_failed");
    EXPECT_EQ(expect("GET", "/v1/stats", s.client.Get("/v1/stats"), 200)["encoder"], "fixed");
}

TEST(Routes, FaultsOfFilesAndTime) {
    const Corpus corpus;
    ServiceOptions options = corpus.options();
    options.sources.index = corpus.directory / "small.safetensors";
    options.sources.full.clear();
    options.limits.search_seconds = -1;
    Server s(std::move(options));
    s.search(R"({"example": "q0"})", 504, "deadline_exceeded");
    expect("DELETE", "/v1/pages/{id}", s.client.Delete("/v1/pages/page-0"), 409, "read_only");
    std::string bytes = test::read_file(corpus.directory / "small.safetensors");
    bytes[3] = '\x7f';
    write_text_file(corpus.directory / "small.safetensors", bytes);
    expect("POST", "/v1/reload", s.post("/v1/reload", ""), 500, "corrupt");
    EXPECT_EQ(s.client.Get("/v1/pages/page-1")->status, 200) << "the old state stays";
}

TEST(Routes, ManyClientsAtOnce) {
    const Corpus corpus;
    Server s(corpus);
    std::atomic<int> wrong{0};
    std::vector<std::thread> clients;
    for (int i = 0; i < 8; ++i) {
        clients.emplace_back([&] {
            httplib::Client c("127.0.0.1", s.port);
            c.set_keep_alive(true);
            for (int j = 0; j < 25; ++j) {
                const auto r = c.Post("/v1/search", R"({"example": "q1", "k": 2})", "application/json");
                if (!r || r->status != 200) ++wrong;
            }
        });
    }
    for (int i = 0; i < 5; ++i) s.service.reload();
    for (auto& t : clients) t.join();
    EXPECT_EQ(wrong.load(), 0);
}

}  // namespace
}  // namespace marginmerge::server
