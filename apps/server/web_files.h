#pragma once

#include <span>
#include <string_view>

namespace marginmerge::server {

/// A file of the web page, built into the binary from web/.
struct WebFile {
    std::string_view path;  ///< "/" for index.html, "/app.js" and so on
    std::string_view type;
    std::string_view tag;  ///< ETag
    std::string_view content;
};

std::span<const WebFile> web_files();

/// docs/openapi/openapi.json
std::string_view openapi_document();

}  // namespace marginmerge::server
