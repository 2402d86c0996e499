#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io/vector_source.h"
#include "marginmerge/data/judgements.h"

namespace marginmerge {

/// What meta.json of a cache folder says, as far as we understand it.
struct CacheMeta {
    std::vector<std::string> document_ids;  ///< empty: decimal index
    std::vector<std::string> query_ids;     ///< empty: decimal index
    Judgements judgements;                  ///< from gold indices or ids; empty when it has none
};

/// True for a folder with ps.pt (documents) or qs.pt (queries).
bool is_cache_folder(const std::filesystem::path& path);

/// The documents, or with options.queries the queries, of a cache folder, named by its meta.json.
std::unique_ptr<VectorSource> open_cache_folder(const std::filesystem::path& folder, const SourceOptions& options);

/// The relevance in a cache folder's meta.json; an error when there is none.
Judgements read_cache_judgements(const std::filesystem::path& folder);

/// Reads meta.json's text. `documents` and `queries` are the numbers in ps.pt and qs.pt, 0 unknown.
CacheMeta parse_cache_meta(std::string_view text, std::size_t documents, std::size_t queries,
                           const std::string& source);

}  // namespace marginmerge
