#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "encode/projection.h"
#include "jobs/encode_parts.h"

namespace marginmerge {

/// How finished parts become one multi-vector file.
struct Merged {
    std::filesystem::path output;
    ScalarType type = ScalarType::f16;
    std::size_t dim = 0;                     ///< of the vectors written
    const Projection* projection = nullptr;  ///< applied on the way
    bool normalise = true;                   ///< after the projection
    std::map<std::string, std::string> metadata;
};

/// Streams the parts, in the order of the units, into the output file; `each` sees every part once.
void merge_parts(const std::vector<WorkUnit>& units, const PartStore& parts, const Merged& how,
                 const std::function<void(const PartStore::Part&)>& each);

/// A projection to `components` dimensions fitted on every vector of the parts.
Projection fit_projection(const std::vector<WorkUnit>& units, const PartStore& parts, std::size_t dim,
                          std::size_t components, double& kept);

/// Writes a file that may be lost in a crash (it is made again), replacing what is there.
void write_plain_file(const std::filesystem::path& path, std::string_view bytes);

}  // namespace marginmerge
