#include <gtest/gtest.h>
#include <httplib.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "api_error.h"
#include "marginmerge/core/error.h"
#include "text_encoder.h"

namespace marginmerge::server {
namespace {

/// A token-embedding server in the small: answers what the test tells it to, remembers the request.
class StandIn {
public:
    StandIn() {
        const auto answer = [this](const httplib::Request& request, httplib::Response& response) {
            path = request.path;
            body = nlohmann::json::parse(request.body, nullptr, false);
            authorization = request.get_header_value("Authorization");
            std::this_thread::sleep_for(delay);
            response.status = status;
            response.set_content(reply, "application/json");
        };
        server_.Post(".*", answer);
        port_ = server_.bind_to_any_port("127.0.0.1");
        thread_ = std::thread([this] { server_.listen_after_bind(); });
        while (!server_.is_running()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ~StandIn() {
        server_.stop();
        thread_.join();
    }
    std::string url(const std::string& rest = "") const { return "http://127.0.0.1:" + std::to_string(port_) + rest; }

    int status = 200;
    std::string reply;
    std::chrono::milliseconds delay{0};
    std::string path, authorization;
    nlohmann::json body;

private:
    httplib::Server server_;
    int port_ = 0;
    std::thread thread_;
};

std::string failure(TextEncoder& encoder) {
    try {
        encoder.encode("x");
        return "";
    } catch (const ApiError& error) {
        EXPECT_EQ(error.status(), 502);
        EXPECT_EQ(error.code(), "encoder_failed");
        return error.what();
    }
}

TEST(EndpointEncoder, SpeaksThePoolingForm) {
    StandIn server;
    server.reply =
        R"({"object": "list", "model": "m", "data": [{"index": 0, "object": "pooling", "data": [[3, 4], [0, -2]]}], "usage": {}})";
    EndpointOptions options;
    options.url = server.url();
    options.model = "colqwen";
    options.task = "token_embed";
    options.prefix = "Query: ";
    options.api_key = "secret";
    const auto encoder = make_endpoint_encoder(options);
    const EncodedText text = encoder->encode("invoices \"2020\"");
    EXPECT_EQ(server.path, "/pooling");
    EXPECT_EQ(server.body["input"], nlohmann::json::array({"Query: invoices \"2020\""}));
    EXPECT_EQ(server.body["model"], "colqwen");
    EXPECT_EQ(server.body["task"], "token_embed");
    EXPECT_EQ(server.authorization, "Bearer secret");
    ASSERT_EQ(text.vectors.rows(), 2U);
    EXPECT_FLOAT_EQ(text.vectors(0, 0), 0.6f) << "rows are scaled to unit length";
    EXPECT_FLOAT_EQ(text.vectors(1, 1), -1.0f);
}

TEST(EndpointEncoder, UnderstandsTheOtherForms) {
    StandIn server;
    EndpointOptions options;
    options.url = server.url("/v1/custom?x=1");
    const auto encoder = make_endpoint_encoder(options);
    for (const char* reply : {R"({"data": [{"embedding": [[1, 0]]}]})", R"({"embeddings": [[[1, 0]]]})",
                              R"({"data": [{"embeddings": [[1, 0]]}]})"}) {
        server.reply = reply;
        EXPECT_EQ(encoder->encode("x").vectors(0, 0), 1.0f) << reply;
    }
    EXPECT_EQ(server.path, "/v1/custom");
    EXPECT_FALSE(server.body.contains("model"));
}

TEST(EndpointEncoder, SaysWhatIsWrong) {
    StandIn server;
    EndpointOptions options;
    options.url = server.url();
    options.timeout_seconds = 1;
    const auto encoder = make_endpoint_encoder(options);
    for (const char* reply :
         {"", "no json", "[]", "{}", R"({"data": []})", R"({"data": [{}]})", R"({"data": [{"data": [1, 2]}]})",
          R"({"data": [{"data": [[1], [1, 2]]}]})", R"({"data": [{"data": [["a"]]}]})",
          R"({"data": [{"data": [[1e300]]}]})", R"({"data": 3})"}) {
        server.reply = reply;
        EXPECT_NE(failure(*encoder), "") << reply;
    }
    server.status = 500;
    EXPECT_NE(failure(*encoder).find("status 500"), std::string::npos);
    server.status = 200;
    server.delay = std::chrono::milliseconds(2500);
    EXPECT_NE(failure(*encoder), "") << "too slow";
    options.url = "http://127.0.0.1:1";
    EXPECT_NE(failure(*make_endpoint_encoder(options)).find("cannot be reached"), std::string::npos);
    for (const char* bad : {"", "localhost:80", "ftp://x", "http://"}) {
        options.url = bad;
        EXPECT_THROW(make_endpoint_encoder(options), Error) << bad;
    }
}

}  // namespace
}  // namespace marginmerge::server
