#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "marginmerge/core/matrix.h"

namespace marginmerge::server {

struct EncodedText {
    Matrix vectors;                   ///< [m,d], one for each token
    std::vector<std::string> tokens;  ///< how to show each token to people; may be empty
};

/// Turns a text query into vectors. Called from several threads at once.
class TextEncoder {
public:
    virtual ~TextEncoder() = default;
    /// Throws ApiError(502, "encoder_failed") when the encoder cannot be reached or makes no sense.
    virtual EncodedText encode(const std::string& text) = 0;
    /// One line for people, for example the address of the endpoint.
    virtual std::string description() const = 0;
};

struct EndpointOptions {
    std::string url;      ///< http[s]://host[:port][/path]; the path is /pooling when absent
    std::string model;    ///< sent as "model" when not empty
    std::string task;     ///< sent as "task" when not empty (vLLM: token_embed)
    std::string prefix;   ///< put before every query, for encoders trained with one
    std::string api_key;  ///< sent as a bearer token when not empty
    double timeout_seconds = 20;
};

/// A token-embedding server such as vLLM's pooling API. Request: POST {"input": [TEXT], "model": …}.
/// Response: {"data": [{"data": [[…], …]}]}; "embedding" or "embeddings" in place of the inner
/// "data" and a flat list {"embeddings": [[[…]]]} are understood as well. Rows are scaled to unit
/// length when the server did not do so. Throws Error(invalid_argument) for a URL that is none.
std::unique_ptr<TextEncoder> make_endpoint_encoder(const EndpointOptions& options);

/// An encoder card run in this process (docs/encoders.md); `models` is where its files may lie as well.
/// Throws Error(unsupported) in a build without encoder.
std::unique_ptr<TextEncoder> make_card_encoder(const std::filesystem::path& card, const std::filesystem::path& models);

}  // namespace marginmerge::server
