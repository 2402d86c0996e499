#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "server_limits.h"

namespace marginmerge::server {

/// What the gate must know of a request before it may pass: where its body ends and who sent it.
/// Views point into the text that was parsed.
struct RequestHead {
    std::string_view method;
    std::string_view target;     ///< as sent, still percent-encoded
    std::size_t head_bytes = 0;  ///< request line and headers with their last empty line
    std::size_t content_length = 0;
    bool expect_continue = false;  ///< the client waits for "100 Continue" before it sends the body
    std::string_view host;
    std::string_view origin;
    std::string_view content_type;
    std::string_view authorization;
    std::string_view api_key;  ///< X-API-Key
    std::string_view path() const { return target.substr(0, target.find('?')); }
};

/// Parses from the first byte of a request. Nothing when the headers are not complete yet. Throws
/// ApiError for what no server should guess about: malformed lines, several lengths, transfer
/// codings, compressed bodies, heads, targets and bodies past the limits.
std::optional<RequestHead> parse_request_head(std::string_view text, const Limits& limits);

}  // namespace marginmerge::server
