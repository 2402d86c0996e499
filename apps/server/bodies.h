#pragma once

#include <cstddef>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "marginmerge/core/matrix.h"
#include "marginmerge/data/multi_vector_set.h"
#include "marginmerge/index/index.h"
#include "server_limits.h"

namespace marginmerge::server {

/// Queries as a client sends them: exactly one of the three lists is filled.
struct QueryInput {
    std::vector<Matrix> vectors;
    std::vector<std::string> ids;       ///< names for `vectors`, may be empty
    std::vector<std::string> texts;     ///< for the encoder
    std::vector<std::string> examples;  ///< ids of example queries
    bool batch = false;                 ///< asked in the plural: answer in the plural
    std::size_t size() const { return vectors.size() + texts.size() + examples.size(); }
};

struct SearchRequest {
    QueryInput query;
    std::size_t k = 10;
    Filter filter;
    std::string view;  ///< "" or "index": as stored
    FirstPass first_pass = FirstPass::none;
    std::size_t candidates = 0;
    std::size_t prefix = 0;
    std::size_t rerank = 0;
    bool metadata = true;  ///< whether hits carry their page's metadata
};

struct ExplainRequest {
    QueryInput query;  ///< one query
    std::string id;
    std::string view;
    bool similarities = false;  ///< also every token against every representative, for a heat map
};

struct AddRequest {
    MultiVectorSet pages;
    std::vector<std::string> metadata;  ///< JSON texts, one for each page, or empty
    bool replace = false;
};

/// Query string of the request, for options beside a binary body.
using Parameters = std::multimap<std::string, std::string>;

enum class BodyKind { json, npy, safetensors };
/// By Content-Type, and by the first bytes for application/octet-stream. Throws ApiError(415).
BodyKind body_kind(std::string_view content_type, std::string_view body);

/// Parsers of hostile bytes: they throw ApiError(4xx) or Error and allocate in proportion to the body.
SearchRequest parse_search(BodyKind kind, std::string_view body, const Parameters& parameters, const Limits& limits);
ExplainRequest parse_explain(BodyKind kind, std::string_view body, const Parameters& parameters, const Limits& limits);
AddRequest parse_add(BodyKind kind, std::string_view body, const Parameters& parameters, const Limits& limits);
std::vector<std::string> parse_ids(std::string_view body, const Limits& limits);

/// Queries alone: a npy array [m,d] or [q,m,d] (zero rows are padding), one of our multi-vector
/// files, or a safetensors file with one 2-D tensor a query.
QueryInput parse_npy_queries(std::string_view body, const Limits& limits);
QueryInput parse_safetensors_queries(std::string_view body, const Limits& limits);

/// A multi-vector file from memory. The set owns a copy, so the body may go.
MultiVectorSet parse_multi_vectors(std::string_view body);

}  // namespace marginmerge::server
