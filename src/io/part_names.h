#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace marginmerge {

/// What people call the parts of a collection in .npz files, torch dicts and JSON lines.
namespace part_names {

inline constexpr std::array<std::string_view, 8> vectors{"vectors",        "embeddings", "embedding", "multi_vector",
                                                         "doc_embeddings", "doc_embeds", "embs",      "vecs"};
inline constexpr std::array<std::string_view, 6> offsets{"offsets", "lengths", "doclens", "doc_lens", "lens", "sizes"};
inline constexpr std::array<std::string_view, 11> ids{"ids",   "id",   "_id",       "doc_ids",  "docids", "doc_id",
                                                      "docid", "qids", "query_ids", "query_id", "names"};
inline constexpr std::array<std::string_view, 3> grid{"grid", "grids", "patch_grid"};

template <std::size_t N>
bool is(const std::array<std::string_view, N>& names, std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace part_names

}  // namespace marginmerge
