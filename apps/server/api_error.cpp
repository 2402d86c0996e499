#include "api_error.h"

#include <new>
#include <nlohmann/json.hpp>

namespace marginmerge::server {

ApiError to_api_error(const std::exception_ptr& error) {
    try {
        std::rethrow_exception(error);
    } catch (const ApiError& e) {
        return e;
    } catch (const Error& e) {
        switch (e.code()) {
            case ErrorCode::invalid_argument: return {400, "invalid_argument", e.what()};
            case ErrorCode::not_found: return {404, "not_found", e.what()};
            case ErrorCode::unsupported: return {400, "unsupported", e.what()};
            case ErrorCode::corrupt: return {500, "corrupt", e.what()};
            case ErrorCode::io: return {500, "io", e.what()};
            case ErrorCode::internal: break;
        }
        return {500, "internal", e.what()};
    } catch (const std::bad_alloc&) {
        return {503, "overloaded", "not enough memory for this request"};
    } catch (const std::exception&) {
        return {500, "internal", "internal error"};
    }
}

std::string error_body(int status, std::string_view code, std::string_view message) {
    const nlohmann::json body{{"error", {{"code", code}, {"message", message}, {"status", status}}}};
    return body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

const char* reason_phrase(int status) {
    switch (status) {
        case 200: return "OK";
        case 201: return "Created";
        case 304: return "Not Modified";
        case 400: return "Bad Request";
        case 401: return "Unauthorized";
        case 403: return "Forbidden";
        case 404: return "Not Found";
        case 405: return "Method Not Allowed";
        case 408: return "Request Timeout";
        case 409: return "Conflict";
        case 411: return "Length Required";
        case 413: return "Payload Too Large";
        case 414: return "URI Too Long";
        case 415: return "Unsupported Media Type";
        case 431: return "Request Header Fields Too Large";
        case 501: return "Not Implemented";
        case 502: return "Bad Gateway";
        case 503: return "Service Unavailable";
        case 504: return "Gateway Timeout";
        default: return "Internal Server Error";
    }
}

}  // namespace marginmerge::server
