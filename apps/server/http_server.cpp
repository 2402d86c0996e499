#include "http_server.h"

#include <httplib.h>

#include <chrono>
#include <cstring>

#include "api_error.h"
#include "bodies.h"
#include "core/fail.h"
#include "core/parallel.h"
#include "metrics.h"
#include "router.h"
#include "routes.h"
#include "service.h"

namespace marginmerge::server {

namespace {

/// A complete request to read, an answer to collect: cpp-httplib never sees the socket.
class BufferStream : public httplib::Stream {
public:
    explicit BufferStream(const RawRequest& request) : request_(request) {}
    bool is_readable() const override { return position_ < request_.bytes.size(); }
    bool is_writable() const override { return true; }
    ssize_t read(char* out, std::size_t size) override {
        const std::size_t n = std::min(size, request_.bytes.size() - position_);
        std::memcpy(out, request_.bytes.data() + position_, n);
        position_ += n;
        return static_cast<ssize_t>(n);
    }
    ssize_t write(const char* data, std::size_t size) override {
        out_.append(data, size);
        return static_cast<ssize_t>(size);
    }
    void get_remote_ip_and_port(std::string& ip, int& port) const override {
        ip = request_.peer;
        port = 0;
    }
    void get_local_ip_and_port(std::string& ip, int& port) const override {
        ip.clear();
        port = 0;
    }
    socket_t socket() const override { return 0; }
    std::string take() { return std::move(out_); }

private:
    const RawRequest& request_;
    std::size_t position_ = 0;
    std::string out_;
};

/// Opens what cpp-httplib keeps for its own socket loop.
class Processor : public httplib::Server {
public:
    bool process(httplib::Stream& stream, bool last, bool& closed) {
        return process_request(stream, last, closed, nullptr);
    }
};

// The largest form that cpp-httplib reads (CPPHTTPLIB_FORM_URL_ENCODED_PAYLOAD_MAX_LENGTH where it was compiled).
constexpr std::size_t library_form_bytes = 8192;

std::string_view without_port(std::string_view host) {
    if (!host.empty() && host.front() == '[') return host.substr(0, std::min(host.find(']'), host.size() - 1) + 1);
    return host.substr(0, host.find(':'));
}

// The handler drops "Expect": the gate has answered it already.
void drop_expect(std::string& bytes) {
    const auto end = bytes.find("\r\n\r\n");
    for (auto at = bytes.find("\r\n"); at < end; at = bytes.find("\r\n", at + 2)) {
        if (bytes.size() - at > 9 && ::strncasecmp(bytes.c_str() + at + 2, "expect:", 7) == 0) {
            bytes.erase(at, bytes.find("\r\n", at + 2) - at);
            return;
        }
    }
}

}  // namespace

bool same_secret(std::string_view expected, std::string_view given) {
    unsigned difference = expected.size() == given.size() ? 0U : 1U;
    for (std::size_t i = 0; i < given.size(); ++i) {
        const unsigned char e = expected.empty() ? 0 : static_cast<unsigned char>(expected[i % expected.size()]);
        difference |= static_cast<unsigned>(e ^ static_cast<unsigned char>(given[i]));
    }
    return difference == 0 && !expected.empty();
}

bool is_loopback(const std::string& host) {
    return host == "localhost" || host == "::1" ||
           (host.rfind("127.", 0) == 0 && host.find_first_not_of("0123456789.") == host.npos);
}

struct HttpServer::Impl {
    Service& service;
    HttpOptions options;
    Router router;
    Processor http;
    std::unique_ptr<Gate> gate;

    Impl(Service& s, HttpOptions o) : service(s), options(std::move(o)) {}

    // Decides by the headers alone, before a body is read.
    void admit(const RequestHead& head) const {
        PathValues values;
        const Route& route = router.find(head.method, head.path(), values);
        const std::string_view host = without_port(head.host);
        // A page of another site may make a browser send requests here, or point its own name at
        // this address (DNS rebinding); neither can forge these headers.
        if (is_loopback(options.host) && !head.host.empty() && !is_loopback(std::string(host)) && host != "[::1]") {
            throw ApiError(403, "forbidden_host", "this server answers to localhost only");
        }
        if (!head.origin.empty() && head.origin != "null" && head.method != "GET" && head.method != "HEAD") {
            const auto scheme = head.origin.find("://");
            if (scheme == head.origin.npos || head.origin.substr(scheme + 3) != head.host) {
                throw ApiError(403, "forbidden_host", "requests from pages of other sites are not accepted");
            }
        }
        if (head.origin == "null" && head.method != "GET" && head.method != "HEAD") {
            throw ApiError(403, "forbidden_host", "requests from pages of other sites are not accepted");
        }
        if (!options.api_key.empty() && !route.open) check_key(head);
        // cpp-httplib would answer 413 to a long form, which is what curl -d sends unless told otherwise.
        if (head.content_length > library_form_bytes && head.method != "GET" && head.method != "HEAD")
            body_kind(head.content_type, {});
    }

    void check_key(const RequestHead& head) const {
        constexpr std::string_view bearer = "Bearer ";
        const bool has_bearer = head.authorization.substr(0, bearer.size()) == bearer;
        const std::string_view given = has_bearer ? head.authorization.substr(bearer.size()) : head.api_key;
        if (!same_secret(options.api_key, given)) {
            throw ApiError(401, "unauthorized", "send the key as 'Authorization: Bearer KEY' or 'X-API-Key: KEY'");
        }
    }

    void dispatch(const httplib::Request& request, httplib::Response& response) {
        const auto begin = std::chrono::steady_clock::now();
        std::string label = "none";
        try {
            PathValues values;
            const Route& route =
                router.find(request.method, request.target.substr(0, request.target.find('?')), values);
            label = route.method + " " + route.path;
            route.handle(request, response, values);
            if (response.status == -1) response.status = 200;
        } catch (...) {
            const ApiError error = to_api_error(std::current_exception());
            response.status = error.status();
            response.set_content(error_body(error.status(), error.code(), error.what()), "application/json");
        }
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
        service.metrics().record(label, response.status, took.count());
    }
};

HttpServer::HttpServer(Service& service, HttpOptions options)
    : impl_(std::make_unique<Impl>(service, std::move(options))) {
    Impl& impl = *impl_;
    if (!is_loopback(impl.options.host) && impl.options.api_key.empty()) {
        fail(ErrorCode::invalid_argument,
             "--host {}: other machines could reach this server; give --api-key or set MARGINMERGE_API_KEY",
             impl.options.host);
    }
    if (impl.options.workers == 0) impl.options.workers = std::max<std::size_t>(4, 2 * resolve_threads(0));
    const Limits& limits = impl.options.limits;
    const std::string every = R"([\s\S]*)";
    const auto any = [&impl](const httplib::Request& q, httplib::Response& r) { impl.dispatch(q, r); };
    impl.http.Get(every, any).Post(every, any).Put(every, any).Patch(every, any).Delete(every, any).Options(every, any);
    impl.http.set_payload_max_length(limits.body_bytes);
    impl.http.set_keep_alive_timeout(static_cast<time_t>(limits.idle_seconds));
    impl.http.set_keep_alive_max_count(1000000);
    impl.http.set_default_headers({{"X-Content-Type-Options", "nosniff"}, {"Server", "marginmerge"}});
    // What cpp-httplib refuses by itself gets our form of error, too.
    impl.http.set_error_handler([](const httplib::Request&, httplib::Response& response) {
        if (response.body.empty()) {
            response.set_content(error_body(response.status, "bad_request", "the request was not understood"),
                                 "application/json");
        }
    });
    GateOptions gate;
    gate.limits = limits;
    gate.workers = impl.options.workers;
    gate.urgent = {"/healthz", "/readyz", "/metrics"};
    gate.admit = [&impl](const RequestHead& head) { impl.admit(head); };
    gate.handle = [this](RawRequest& request) { return handle(request); };
    impl.gate = std::make_unique<Gate>(std::move(gate));
    add_routes(impl.router, service, {limits, &impl.gate->counters(), !impl.options.api_key.empty()});
}

HttpServer::~HttpServer() = default;

int HttpServer::bind() { return impl_->gate->listen(impl_->options.host, impl_->options.port); }
void HttpServer::run() { impl_->gate->run(); }
void HttpServer::stop() { impl_->gate->stop(); }
const GateCounters& HttpServer::counters() const { return impl_->gate->counters(); }

RawReply HttpServer::handle(RawRequest& request) {
    drop_expect(request.bytes);
    BufferStream stream(request);
    bool closed = false;
    const bool ok = impl_->http.process(stream, request.last, closed);
    return {stream.take(), !ok || closed || request.last};
}

}  // namespace marginmerge::server
