#include "request_head.h"

#include <gtest/gtest.h>

#include "api_error.h"
#include "http_server.h"
#include "router.h"

namespace marginmerge::server {
namespace {

std::string code_of(std::string_view text, const Limits& limits = {}) {
    try {
        return parse_request_head(text, limits) ? "ok" : "incomplete";
    } catch (const ApiError& error) {
        return error.code();
    }
}

TEST(RequestHead, ReadsWhatTheGateNeeds) {
    const std::string text =
        "POST /v1/search?k=3 HTTP/1.1\r\nHost: localhost:1\r\ncontent-LENGTH:  12\r\nExpect: 100-Continue\r\n"
        "Authorization: Bearer x y\r\nX-Api-Key: z\r\nOrigin: http://a\r\nContent-Type: text/plain; "
        "a=b\r\n\r\n{\"a\":1}";
    const auto head = parse_request_head(text, {});
    ASSERT_TRUE(head);
    EXPECT_EQ(head->method, "POST");
    EXPECT_EQ(head->path(), "/v1/search");
    EXPECT_EQ(head->content_length, 12U);
    EXPECT_TRUE(head->expect_continue);
    EXPECT_EQ(head->host, "localhost:1");
    EXPECT_EQ(head->authorization, "Bearer x y");
    EXPECT_EQ(head->api_key, "z");
    EXPECT_EQ(head->origin, "http://a");
    EXPECT_EQ(head->content_type, "text/plain; a=b");
    EXPECT_EQ(text.substr(head->head_bytes), "{\"a\":1}");
}

TEST(RequestHead, RefusesWhatNobodyShouldGuessAbout) {
    EXPECT_EQ(code_of("GET / HTTP/1.1\r\nHost: a\r\n"), "incomplete");
    EXPECT_EQ(code_of("GET / HTTP/1.1\r\n\r\n"), "ok");
    EXPECT_EQ(code_of("GET /\r\n\r\n"), "bad_request");
    EXPECT_EQ(code_of("GET  HTTP/1.1\r\n\r\n"), "bad_request");
    EXPECT_EQ(code_of("GET http://x/ HTTP/1.1\r\n\r\n"), "bad_request");
    EXPECT_EQ(code_of("GET / HTTP/2.0\r\n\r\n"), "bad_request");
    EXPECT_EQ(code_of("G@T / HTTP/1.1\r\n\r\n"), "bad_request");
    EXPECT_EQ(code_of("GET / HTTP/1.1\r\nHost : a\r\n\r\n"), "bad_request");
    EXPECT_EQ(code_of("GET / HTTP/1.1\r\n folded\r\n\r\n"), "bad_request");
    EXPECT_EQ(code_of("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"), "bad_request");
    EXPECT_EQ(code_of(std::string_view("GET / HTTP/1.1\r\nA: \0\r\n\r\n", 24)), "bad_request");
    EXPECT_EQ(code_of("POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n"), "bad_request");
    EXPECT_EQ(code_of("POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n"), "bad_request");
    EXPECT_EQ(code_of("POST / HTTP/1.1\r\nContent-Length: 99999999999999999999999\r\n\r\n"), "bad_request");
    EXPECT_EQ(code_of("POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n"), "body_too_large");
    EXPECT_EQ(code_of("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"), "length_required");
    EXPECT_EQ(code_of("POST / HTTP/1.1\r\nContent-Encoding: gzip\r\n\r\n"), "unsupported_media_type");
    EXPECT_EQ(code_of("GET /" + std::string(3000, 'a') + " HTTP/1.1\r\n\r\n"), "uri_too_long");
    EXPECT_EQ(code_of("GET /" + std::string(30000, 'a')), "uri_too_long");
    EXPECT_EQ(code_of("GET / HTTP/1.1\r\nA: " + std::string(30000, 'a')), "headers_too_large");
}

TEST(Router, TellsUnknownPathsFromUnknownMethods) {
    Router router;
    router.add({"GET", "/v1/pages/{id}", nullptr});
    router.add({"GET", "/v1/pages/{id}/image", nullptr});
    PathValues values;
    EXPECT_EQ(router.find("GET", "/v1/pages/a%2Fb%20c", values).path, "/v1/pages/{id}");
    EXPECT_EQ(values, PathValues{"a/b c"});
    EXPECT_EQ(router.find("HEAD", "/v1/pages/x/image", values).path, "/v1/pages/{id}/image");
    const auto status = [&](const char* method, const char* path) {
        try {
            router.find(method, path, values);
            return 200;
        } catch (const ApiError& error) {
            return error.status();
        }
    };
    EXPECT_EQ(status("POST", "/v1/pages/x"), 405);
    EXPECT_EQ(status("GET", "/v1/pages"), 404);
    EXPECT_EQ(status("GET", "/v1/pages/"), 404);
    EXPECT_EQ(status("GET", "/v1/pages/x/y"), 404);
    EXPECT_EQ(status("GET", "/v1/pages/%zz"), 400);
    EXPECT_EQ(status("GET", "/v1/pages/%00"), 400);
}

TEST(Secret, ComparesWholeKeys) {
    EXPECT_TRUE(same_secret("abc", "abc"));
    for (const char* wrong : {"", "a", "ab", "abd", "abcabc", "abcc"}) EXPECT_FALSE(same_secret("abc", wrong)) << wrong;
    EXPECT_FALSE(same_secret("", "")) << "no key is no key that fits";
}

TEST(Loopback, IsOnlyThisMachine) {
    for (const char* yes : {"127.0.0.1", "127.1.2.3", "localhost", "::1"}) EXPECT_TRUE(is_loopback(yes)) << yes;
    for (const char* no : {"0.0.0.0", "::", "192.168.1.2", "127.evil.example", "localhost.example"})
        EXPECT_FALSE(is_loopback(no)) << no;
}

}  // namespace
}  // namespace marginmerge::server
