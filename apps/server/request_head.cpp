#include "request_head.h"

#include <algorithm>
#include <charconv>

#include "api_error.h"

namespace marginmerge::server {

namespace {

bool is_token(std::string_view s) {
    constexpr std::string_view marks = "!#$%&'*+-.^_`|~";
    return !s.empty() && std::all_of(s.begin(), s.end(), [&](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
               marks.find(c) != marks.npos;
    });
}

bool same(std::string_view a, std::string_view lower_case) {
    return a.size() == lower_case.size() && std::equal(a.begin(), a.end(), lower_case.begin(), [](char x, char y) {
               return (x >= 'A' && x <= 'Z' ? static_cast<char>(x + 32) : x) == y;
           });
}

std::string_view trimmed(std::string_view s) {
    while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
    while (!s.empty() && (s.back() == ' ' || s.back() == '\t')) s.remove_suffix(1);
    return s;
}

[[noreturn]] void malformed(const char* what) {
    throw ApiError(400, "bad_request", std::string("malformed HTTP: ") + what);
}

void parse_request_line(std::string_view line, RequestHead& head, const Limits& limits) {
    const auto first = line.find(' ');
    const auto last = line.rfind(' ');
    if (first == line.npos || last == first) malformed("request line");
    head.method = line.substr(0, first);
    head.target = line.substr(first + 1, last - first - 1);
    const std::string_view version = line.substr(last + 1);
    if (!is_token(head.method)) malformed("method");
    if (version != "HTTP/1.1" && version != "HTTP/1.0") malformed("expected HTTP/1.1 or HTTP/1.0");
    if (head.target.size() > limits.target_bytes)
        throw ApiError(414, "uri_too_long", "path and query string are too long");
    const bool printable =
        std::all_of(head.target.begin(), head.target.end(), [](char c) { return c > 0x20 && c < 0x7f; });
    if (head.target.empty() || head.target.front() != '/' || !printable) malformed("request target");
}

}  // namespace

std::optional<RequestHead> parse_request_head(std::string_view text, const Limits& limits) {
    const auto end = text.substr(0, limits.head_bytes).find("\r\n\r\n");
    if (end == text.npos) {
        if (text.size() >= limits.head_bytes) {
            const bool in_first_line = text.substr(0, limits.head_bytes).find("\r\n") == text.npos;
            if (in_first_line) throw ApiError(414, "uri_too_long", "path and query string are too long");
            throw ApiError(431, "headers_too_large", "request headers are too large");
        }
        return std::nullopt;
    }
    RequestHead head;
    head.head_bytes = end + 4;
    std::string_view rest = text.substr(0, end + 2);
    const auto next_line = [&rest] {
        const auto stop = rest.find("\r\n");
        const std::string_view line = rest.substr(0, stop);
        rest.remove_prefix(stop + 2);
        return line;
    };
    parse_request_line(next_line(), head, limits);
    bool has_length = false;
    while (!rest.empty()) {
        const std::string_view line = next_line();
        const auto colon = line.find(':');
        if (colon == line.npos || !is_token(line.substr(0, colon))) malformed("header line");
        const std::string_view name = line.substr(0, colon);
        const std::string_view value = trimmed(line.substr(colon + 1));
        if (std::any_of(value.begin(), value.end(),
                        [](char c) { return (c >= 0 && c < 0x20 && c != '\t') || c == 0x7f; })) {
            malformed("header value");
        }
        if (same(name, "content-length")) {
            const auto [stop, error] = std::from_chars(value.data(), value.data() + value.size(), head.content_length);
            if (has_length || error != std::errc() || stop != value.data() + value.size()) malformed("Content-Length");
            has_length = true;
        } else if (same(name, "transfer-encoding")) {
            throw ApiError(411, "length_required", "send the body with a Content-Length, not in chunks");
        } else if (same(name, "content-encoding")) {
            if (!same(value, "identity")) {
                throw ApiError(415, "unsupported_media_type", "compressed request bodies are not accepted");
            }
        } else if (same(name, "expect")) {
            if (!same(value, "100-continue")) malformed("Expect");
            head.expect_continue = true;
        } else if (same(name, "host")) {
            if (!head.host.empty()) malformed("more than one Host");
            head.host = value;
        } else if (same(name, "origin")) {
            head.origin = value;
        } else if (same(name, "content-type")) {
            head.content_type = value;
        } else if (same(name, "authorization")) {
            head.authorization = value;
        } else if (same(name, "x-api-key")) {
            head.api_key = value;
        }
    }
    if (head.content_length > limits.body_bytes) {
        throw ApiError(413, "body_too_large",
                       "the body is larger than " + std::to_string(limits.body_bytes) + " bytes");
    }
    return head;
}

}  // namespace marginmerge::server
