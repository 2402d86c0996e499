#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace httplib {
struct Request;
struct Response;
}  // namespace httplib

namespace marginmerge::server {

/// What the path's {…} parts were, decoded, in order.
using PathValues = std::vector<std::string>;
using RouteHandler = std::function<void(const httplib::Request&, httplib::Response&, const PathValues&)>;

struct Route {
    std::string method;
    std::string path;  ///< as in the OpenAPI document: /v1/pages/{id}/image
    RouteHandler handle;
    bool open = false;  ///< answered without an API key
};

/// Finds the handler of a request by its path as sent, so that an id may hold an encoded slash.
class Router {
public:
    void add(Route route) { routes_.push_back(std::move(route)); }
    const std::vector<Route>& routes() const { return routes_; }

    /// The route, and its values in `values`. Throws ApiError 404 or 405.
    const Route& find(std::string_view method, std::string_view raw_path, PathValues& values) const;

private:
    std::vector<Route> routes_;
};

/// %41 to A. Throws ApiError(400) on a broken escape or a zero byte.
std::string percent_decode(std::string_view text);

}  // namespace marginmerge::server
