#include "export/http_client.h"

#include <httplib.h>

#include <cmath>

#include "core/fail.h"

namespace marginmerge {

namespace {

// No server has that much to say about an insert.
constexpr std::size_t max_answer_bytes = 64U << 20;

struct Url {
    std::string base;  ///< scheme://host:port
    std::string prefix;
    std::string parameters;
    std::string user, password;
};

Url parse_url(const std::string& text) {
    const auto bad = [&](const char* what) {
        fail(ErrorCode::invalid_argument, "--url: expected http://host:port or https://host, found '{}' ({})",
             printable_url(text), what);
    };
    const auto scheme = text.find("://");
    if (scheme == std::string::npos || (text.substr(0, scheme) != "http" && text.substr(0, scheme) != "https"))
        bad("no http or https");
    Url url;
    std::string rest = text.substr(scheme + 3);
    if (const auto question = rest.find('?'); question != std::string::npos) {
        url.parameters = rest.substr(question + 1);
        rest.resize(question);
    }
    if (const auto slash = rest.find('/'); slash != std::string::npos) {
        url.prefix = rest.substr(slash);
        rest.resize(slash);
        while (!url.prefix.empty() && url.prefix.back() == '/') url.prefix.pop_back();
    }
    if (const auto at = rest.rfind('@'); at != std::string::npos) {
        const std::string login = rest.substr(0, at);
        rest = rest.substr(at + 1);
        const auto colon = login.find(':');
        url.user = login.substr(0, colon);
        if (colon != std::string::npos) url.password = login.substr(colon + 1);
    }
    if (rest.empty() || rest[0] == ':') bad("no host");
    url.base = text.substr(0, scheme + 3) + rest;
    return url;
}

httplib::Headers parse_headers(const std::vector<std::string>& lines) {
    httplib::Headers headers;
    for (const auto& line : lines) {
        const auto colon = line.find(':');
        if (colon == std::string::npos || colon == 0 || line.find_first_of("\r\n") != std::string::npos)
            fail(ErrorCode::invalid_argument, "--header: expected 'Name: value', found {} characters without that form",
                 line.size());
        const auto value = line.find_first_not_of(' ', colon + 1);
        headers.emplace(line.substr(0, colon), value == std::string::npos ? "" : line.substr(value));
    }
    return headers;
}

class HttpServer : public RestServer {
public:
    explicit HttpServer(const HttpOptions& options)
        : url_(parse_url(options.url)), shown_(printable_url(options.url)), client_(url_.base) {
        if (!client_.is_valid())
            fail(ErrorCode::invalid_argument, "--url: expected http://host:port or https://host, found '{}'", shown_);
        const auto milliseconds = std::chrono::milliseconds(std::llround(1e3 * std::max(options.timeout, 0.1)));
        client_.set_connection_timeout(std::min(milliseconds, std::chrono::milliseconds(10'000)));
        client_.set_read_timeout(milliseconds);
        client_.set_write_timeout(milliseconds);
        client_.set_keep_alive(true);
        client_.set_default_headers(parse_headers(options.headers));
        if (!url_.user.empty()) client_.set_basic_auth(url_.user, url_.password);
    }

    HttpAnswer ask(const HttpRequest& wanted) override {
        httplib::Request request;
        request.method = wanted.method;
        request.path = url_.prefix + wanted.path;
        if (!url_.parameters.empty())
            request.path += (request.path.find('?') == std::string::npos ? '?' : '&') + url_.parameters;
        if (!wanted.body.empty() || wanted.method != "GET") {
            request.body = wanted.body;
            request.set_header("Content-Type", wanted.content_type.empty() ? "application/json" : wanted.content_type);
        }
        HttpAnswer answer;
        request.content_receiver = [&](const char* data, std::size_t size, std::uint64_t, std::uint64_t) {
            answer.body.append(data, size);
            return answer.body.size() <= max_answer_bytes;
        };
        const auto result = client_.send(request);
        if (!result) fail(ErrorCode::io, "no answer: {}", why(result.error()));
        answer.status = result->status;
        const std::string pause = result->get_header_value("Retry-After");
        if (!pause.empty() && pause.find_first_not_of("0123456789") == std::string::npos && pause.size() < 6)
            answer.retry_after = std::stod(pause);
        return answer;
    }

private:
    static std::string why(httplib::Error error) {
        switch (error) {
            case httplib::Error::Connection: return "the server cannot be reached (connection refused or unknown host)";
            case httplib::Error::ConnectionTimeout: return "the server cannot be reached (no connection in time)";
            case httplib::Error::Read: return "the server closed the connection or was silent for too long";
            case httplib::Error::Write: return "the server closed the connection while data were being sent";
            case httplib::Error::SSLConnection: return "no TLS connection";
            case httplib::Error::SSLServerVerification: return "the server's certificate could not be verified";
            default: return "error '" + httplib::to_string(error) + "'";
        }
    }

    Url url_;
    std::string shown_;
    httplib::Client client_;
};

}  // namespace

std::string printable_url(const std::string& url) {
    const auto scheme = url.find("://");
    const auto at = url.rfind('@', url.find_first_of("/?", scheme == std::string::npos ? 0 : scheme + 3));
    if (scheme == std::string::npos || at == std::string::npos || at < scheme) return url;
    return url.substr(0, scheme + 3) + url.substr(at + 1);
}

std::unique_ptr<RestServer> connect_http(const HttpOptions& options) { return std::make_unique<HttpServer>(options); }

}  // namespace marginmerge
