#pragma once

#include <cstddef>

namespace marginmerge::server {

/// What one client may ask of the server. Every limit has an error code of its own, see docs/server.md.
struct Limits {
    std::size_t body_bytes = 64U << 20;       ///< largest request body
    std::size_t json_bytes = 16U << 20;       ///< largest JSON body (JSON needs many times its size in memory)
    std::size_t buffered_bytes = 512U << 20;  ///< all bodies being received together
    std::size_t head_bytes = 16U << 10;       ///< request line and headers
    std::size_t target_bytes = 2048;          ///< path and query string
    std::size_t connections = 1024;           ///< open at once
    std::size_t batch = 256;                  ///< queries in a request
    std::size_t query_vectors = 4096;         ///< vectors in a query
    std::size_t pages = 4096;                 ///< pages added or deleted in a request
    std::size_t k = 1000;                     ///< results for a query
    std::size_t text_bytes = 16U << 10;       ///< a text query
    std::size_t asset_bytes = 64U << 20;      ///< an image or text file of a page
    double search_seconds = 30;               ///< a request's work, from the moment a worker takes it
    double queue_seconds = 10;                ///< waiting for a worker before 503
    double head_seconds = 10;                 ///< from a request's first byte to the end of its headers
    double body_seconds = 10;                 ///< for a body, and one more second for each bytes_per_second of it
    double write_seconds = 10;                ///< for a response, in the same way
    double bytes_per_second = 64 << 10;       ///< slower clients are cut off
    double idle_seconds = 60;                 ///< keep-alive without a request
    double grace_seconds = 30;                ///< after a stop, for requests that have begun
};

}  // namespace marginmerge::server
