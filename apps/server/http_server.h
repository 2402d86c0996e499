#pragma once

#include <memory>
#include <string>

#include "gate.h"
#include "server_limits.h"

namespace marginmerge::server {

class Service;

struct HttpOptions {
    std::string host = "127.0.0.1";
    int port = 8080;          ///< 0: any free one
    std::string api_key;      ///< required on any address but loopback
    std::size_t workers = 0;  ///< 0: two for each core, at least four
    Limits limits;
};

/// The service on a socket: the gate gathers requests, cpp-httplib parses and formats them, a
/// router finds the handler.
class HttpServer {
public:
    /// Throws Error(invalid_argument) for an address other than loopback without a key.
    HttpServer(Service& service, HttpOptions options);
    ~HttpServer();

    /// Binds; returns the port.
    int bind();
    /// Serves until stop(); finishes running requests before it returns.
    void run();
    void stop();
    const GateCounters& counters() const;

    /// One request without a socket; for tests and the fuzzer.
    RawReply handle(RawRequest& request);

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

/// Compares in time that depends only on the length of `given`.
bool same_secret(std::string_view expected, std::string_view given);

/// Whether only this machine can reach the address.
bool is_loopback(const std::string& host);

}  // namespace marginmerge::server
