#pragma once

#include <string>
#include <vector>

#include "marginmerge/data/multi_vector_set.h"
#include "marginmerge/jobs/inspect.h"

namespace marginmerge {

/// Scans the values of a memory-mapped set (all documents, or an even sample of `sample` of them
/// when positive) and fills in the report; what is wrong goes to `problems`.
VectorsReport scan_vectors(const MultiVectorSet& set, const std::string& source, std::size_t sample,
                           std::size_t threads, const Progress& progress, std::vector<std::string>& problems);

}  // namespace marginmerge
