#pragma once

#include <memory>
#include <string>
#include <vector>

#include "export/rest.h"

namespace marginmerge {

struct HttpOptions {
    std::string url;                   ///< http(s)://[user:password@]host[:port][/prefix][?parameters]
    std::vector<std::string> headers;  ///< "Name: value", sent with every request
    double timeout = 120;              ///< seconds for an answer
};

/// One connection to a server. Error(invalid_argument) for a URL or header that makes no sense; ask() throws
/// Error(io) when the server cannot be reached or says nothing.
std::unique_ptr<RestServer> connect_http(const HttpOptions& options);

/// The URL without a password, for messages.
std::string printable_url(const std::string& url);

}  // namespace marginmerge
