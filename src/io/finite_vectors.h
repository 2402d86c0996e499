#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "marginmerge/data/multi_vector_set.h"

namespace marginmerge {

/// Refuses numbers that are not finite, naming `source`, document and row. Error(corrupt). Reads every vector once, at
/// the speed of memory.
void check_finite(const MultiVectorSet& set, const std::string& source, std::size_t threads = 0);

/// read_multi_vectors with that check: for queries, and for documents that are read whole anyway.
MultiVectorSet read_finite_vectors(const std::filesystem::path& path, std::size_t threads = 0);

}  // namespace marginmerge
