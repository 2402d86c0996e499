#include "router.h"

#include "api_error.h"

namespace marginmerge::server {

namespace {

int hex(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

std::string_view next_segment(std::string_view& path) {
    const auto stop = path.find('/');
    const std::string_view segment = path.substr(0, stop);
    path = stop == path.npos ? std::string_view() : path.substr(stop);
    return segment;
}

bool matches(std::string_view pattern, std::string_view path, PathValues& values) {
    values.clear();
    while (!pattern.empty() && !path.empty()) {
        pattern.remove_prefix(1);
        path.remove_prefix(1);
        const std::string_view expected = next_segment(pattern);
        const std::string_view found = next_segment(path);
        if (expected.size() > 1 && expected.front() == '{') {
            if (found.empty()) return false;
            values.push_back(percent_decode(found));
        } else if (expected != found) {
            return false;
        }
    }
    return pattern.empty() && path.empty();
}

}  // namespace

std::string percent_decode(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        char c = text[i];
        if (c == '%') {
            if (i + 2 >= text.size() || hex(text[i + 1]) < 0 || hex(text[i + 2]) < 0) {
                throw ApiError(400, "bad_request", "a broken percent escape in the path");
            }
            c = static_cast<char>(hex(text[i + 1]) * 16 + hex(text[i + 2]));
            i += 2;
        }
        if (c == '\0') throw ApiError(400, "bad_request", "a zero byte in the path");
        out.push_back(c);
    }
    return out;
}

const Route& Router::find(std::string_view method, std::string_view raw_path, PathValues& values) const {
    const std::string_view wanted = method == "HEAD" ? "GET" : method;
    bool known = false;
    for (const Route& route : routes_) {
        if (!matches(route.path, raw_path, values)) continue;
        if (route.method == wanted) return route;
        known = true;
    }
    if (known) throw ApiError(405, "method_not_allowed", std::string(method) + " is not something this path does");
    throw ApiError(404, "not_found", "no such path; see /openapi.json");
}

}  // namespace marginmerge::server
