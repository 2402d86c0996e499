#pragma once

#include <exception>
#include <string>
#include <string_view>

#include "marginmerge/core/error.h"

namespace marginmerge::server {

/// An answer that is not a result: an HTTP status, a stable code for programs, one line for people.
class ApiError : public std::runtime_error {
public:
    ApiError(int status, std::string code, const std::string& message)
        : std::runtime_error(message), status_(status), code_(std::move(code)) {}
    int status() const { return status_; }
    const std::string& code() const { return code_; }

private:
    int status_;
    std::string code_;
};

/// What the client is told about any exception: ApiError as it is, Error by its code, out of memory
/// and everything else as 500 without inner details.
ApiError to_api_error(const std::exception_ptr& error);

/// {"error": {"code": …, "message": …, "status": …}}
std::string error_body(int status, std::string_view code, std::string_view message);

/// "Not Found" for 404, and so on for every status we send.
const char* reason_phrase(int status);

}  // namespace marginmerge::server
