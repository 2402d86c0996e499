#include "routes.h"

#include <fmt/format.h>
#include <httplib.h>

#include <charconv>
#include <fstream>
#include <nlohmann/json.hpp>

#include "api_error.h"
#include "bodies.h"
#include "query_string.h"
#include "service.h"
#include "web_files.h"

namespace marginmerge::server {

namespace {

using Request = httplib::Request;
using Response = httplib::Response;
using Json = nlohmann::ordered_json;

void send(Response& response, const Json& value, int status = 200) {
    response.status = status;
    response.set_header("Cache-Control", "no-store");
    response.set_content(value.dump(-1, ' ', false, Json::error_handler_t::replace), "application/json");
}

BodyKind kind_of(const Request& request) { return body_kind(request.get_header_value("Content-Type"), request.body); }

void require_json(const Request& request) {
    if (kind_of(request) != BodyKind::json) throw ApiError(415, "unsupported_media_type", "send application/json");
}

std::size_t number(const Parameters& parameters, const char* name, std::size_t fallback, std::size_t limit) {
    const auto found = parameters.lower_bound(name);  // the first of several
    if (found == parameters.end() || found->first != name) return fallback;
    const std::string& text = found->second;
    std::size_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) {
        throw ApiError(400, "invalid_argument", std::string(name) + ": expected a whole number");
    }
    if (value > limit) throw ApiError(400, "limit_exceeded", std::string(name) + ": at most " + std::to_string(limit));
    return value;
}

void send_asset(const Request& request, Response& response, const Asset& asset, std::size_t limit) {
    std::error_code error;
    const auto size = std::filesystem::file_size(asset.path, error);
    std::ifstream in(asset.path, std::ios::binary);
    if (error || !in || size > limit) throw ApiError(404, "asset_not_found", "the page's file cannot be read");
    const auto written = std::filesystem::last_write_time(asset.path, error).time_since_epoch().count();
    const std::string tag = fmt::format("\"{}-{}\"", size, written);
    response.set_header("ETag", tag);
    response.set_header("Cache-Control", "private, max-age=60");
    // An SVG or text of a stranger must not run scripts here when opened by itself.
    response.set_header("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; sandbox");
    if (request.get_header_value("If-None-Match") == tag) {
        response.status = 304;
        return;
    }
    std::string bytes(static_cast<std::size_t>(size), '\0');
    in.read(bytes.data(), static_cast<std::streamsize>(size));
    bytes.resize(static_cast<std::size_t>(in.gcount()));
    response.set_content(bytes, asset.content_type);
}

std::string metrics_text(const Service& service, const GateCounters& gate) {
    const auto snapshot = service.snapshot();
    const IndexStats stats = snapshot->index->stats();
    std::string out = service.metrics().text();
    const auto gauge = [&](const char* name, const char* help, auto value) {
        out += metric_line(name, "gauge", help, static_cast<double>(value));
    };
    const auto counter = [&](const char* name, const char* help, auto value) {
        out += metric_line(name, "counter", help, static_cast<double>(value));
    };
    gauge("marginmerge_index_pages", "Pages that can be found.", stats.pages);
    gauge("marginmerge_index_vectors", "Stored vectors of these pages.", stats.vectors);
    gauge("marginmerge_index_source_vectors", "Vectors these pages had before compression.", stats.source_vectors);
    gauge("marginmerge_index_bytes", "Bytes of the index's files.", stats.bytes);
    gauge("marginmerge_index_generation", "Rises by one with every change of the index.", stats.generation);
    gauge("marginmerge_index_segments", "Segment files.", stats.segments);
    gauge("marginmerge_ready", "1 while the server wants requests.", service.ready() ? 1 : 0);
    gauge("marginmerge_connections", "Open connections.", gate.open.load());
    gauge("marginmerge_requests_waiting", "Complete requests without a worker.", gate.waiting.load());
    gauge("marginmerge_requests_running", "Requests with a worker.", gate.running.load());
    counter("marginmerge_connections_total", "Connections accepted.", gate.accepted.load());
    counter("marginmerge_refused_total", "Requests turned away before a worker saw them.", gate.refused.load());
    counter("marginmerge_slow_clients_total", "Clients cut off for being too slow.", gate.timed_out.load());
    return out;
}

void add_page(Router& router, bool has_key) {
    for (const WebFile& file : web_files()) {
        router.add({"GET", std::string(file.path),
                    [&file, has_key](const Request& request, Response& response, const PathValues&) {
                        response.set_header(
                            "Content-Security-Policy",
                            "default-src 'self'; img-src 'self' blob: data:; style-src 'self' 'unsafe-inline'; "
                            "frame-ancestors 'none'; base-uri 'none'; form-action 'self'");
                        response.set_header("Referrer-Policy", "no-referrer");
                        response.set_header("Cache-Control", "no-cache");
                        response.set_header("ETag", std::string(file.tag));
                        if (has_key && file.path == "/") response.set_header("X-Marginmerge-Key", "required");
                        if (request.get_header_value("If-None-Match") == file.tag) {
                            response.status = 304;
                            return;
                        }
                        response.set_content(file.content.data(), file.content.size(), std::string(file.type));
                    },
                    true});
    }
}

void add_search(Router& router, Service& service, const Limits& limits) {
    router.add(
        {"POST", "/v1/search", [&service, limits](const Request& request, Response& response, const PathValues&) {
             send(response,
                  service.search(parse_search(kind_of(request), request.body, parse_query(request.target), limits)));
         }});
    router.add(
        {"POST", "/v1/explain", [&service, limits](const Request& request, Response& response, const PathValues&) {
             send(response,
                  service.explain(parse_explain(kind_of(request), request.body, parse_query(request.target), limits)));
         }});
    router.add(
        {"POST", "/v1/encode", [&service, limits](const Request& request, Response& response, const PathValues&) {
             SearchRequest parsed = parse_search(kind_of(request), request.body, {}, limits);
             send(response, service.encode(parsed.query));
         }});
    router.add({"GET", "/v1/examples", [&service](const Request& request, Response& response, const PathValues&) {
                    const Parameters query = parse_query(request.target);
                    send(response,
                         service.examples(number(query, "offset", 0, SIZE_MAX), number(query, "limit", 100, 1000)));
                }});
}

void add_pages(Router& router, Service& service, const Limits& limits) {
    router.add({"GET", "/v1/pages", [&service](const Request& request, Response& response, const PathValues&) {
                    const Parameters query = parse_query(request.target);
                    const auto given = query.lower_bound("filter");
                    const std::string text = given != query.end() && given->first == "filter" ? given->second : "";
                    const Filter filter = text.empty()          ? Filter()
                                          : text.front() == '{' ? Filter::parse_json(text)
                                                                : Filter::parse(text);
                    send(response,
                         service.pages(number(query, "offset", 0, SIZE_MAX), number(query, "limit", 50, 500), filter));
                }});
    router.add({"POST", "/v1/pages", [&service, limits](const Request& request, Response& response, const PathValues&) {
                    send(response,
                         service.add(parse_add(kind_of(request), request.body, parse_query(request.target), limits)),
                         201);
                }});
    router.add(
        {"DELETE", "/v1/pages", [&service, limits](const Request& request, Response& response, const PathValues&) {
             require_json(request);
             send(response, service.remove(parse_ids(request.body, limits), false));
         }});
    router.add({"GET", "/v1/pages/{id}", [&service](const Request&, Response& response, const PathValues& values) {
                    send(response, service.page(values.at(0)));
                }});
    router.add({"DELETE", "/v1/pages/{id}", [&service](const Request&, Response& response, const PathValues& values) {
                    send(response, service.remove({values.at(0)}, true));
                }});
    for (const bool image : {true, false}) {
        router.add({"GET", image ? "/v1/pages/{id}/image" : "/v1/pages/{id}/text",
                    [&service, limits, image](const Request& request, Response& response, const PathValues& values) {
                        send_asset(request, response, service.asset(values.at(0), image), limits.asset_bytes);
                    }});
    }
}

}  // namespace

void add_routes(Router& router, Service& service, const RouteOptions& options) {
    add_page(router, options.has_key);
    add_search(router, service, options.limits);
    add_pages(router, service, options.limits);
    router.add({"GET", "/v1/stats", [&service](const Request&, Response& response, const PathValues&) {
                    send(response, service.stats());
                }});
    router.add({"GET", "/v1/overview", [&service](const Request&, Response& response, const PathValues&) {
                    send(response, service.overview());
                }});
    router.add({"POST", "/v1/reload", [&service](const Request&, Response& response, const PathValues&) {
                    send(response, service.reload());
                }});
    router.add({"GET", "/healthz",
                [](const Request&, Response& response, const PathValues&) {
                    send(response, Json{{"status", "ok"}});
                },
                true});
    router.add({"GET", "/readyz",
                [&service](const Request&, Response& response, const PathValues&) {
                    if (!service.ready()) throw ApiError(503, "not_ready", "the server is stopping");
                    send(response, Json{{"status", "ready"}});
                },
                true});
    const GateCounters* counters = options.counters;
    router.add({"GET", "/metrics", [&service, counters](const Request&, Response& response, const PathValues&) {
                    response.set_content(metrics_text(service, *counters), "text/plain; version=0.0.4; charset=utf-8");
                }});
    router.add({"GET", "/openapi.json",
                [](const Request&, Response& response, const PathValues&) {
                    response.set_content(std::string(openapi_document()), "application/json");
                },
                true});
}

}  // namespace marginmerge::server
