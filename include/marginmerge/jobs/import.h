#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "marginmerge/core/matrix.h"
#include "marginmerge/core/progress.h"
#include "marginmerge/data/multi_vector_set.h"

namespace marginmerge {

struct ImportOptions {
    std::vector<std::filesystem::path> sources;  ///< files or cache folders, concatenated in this order
    std::filesystem::path output;                ///< the multi-vector file to write
    ScalarType type = ScalarType::f16;           ///< how vectors are stored
    bool keep_norms = false;                     ///< leave vectors as long as they are
    bool queries = false;                        ///< of a cache folder take qs.pt
    bool drop_empty = false;                     ///< leave out documents without a vector instead of failing
    std::filesystem::path offsets;               ///< .npy of offsets or lengths for a 2-D array (one source only)
    std::filesystem::path ids;                   ///< ids of all documents: text lines, a JSON list or .npy
    PatchGrid grid;                              ///< for documents whose source gives none
    std::filesystem::path qrels_out;             ///< where to write the judgements of a cache folder
};

struct ImportReport {
    struct Source {
        std::string path;
        std::string form;  ///< what was recognised in it
        std::size_t documents = 0;
    };
    std::vector<Source> sources;
    std::size_t documents = 0;
    std::uint64_t vectors = 0;
    std::size_t dim = 0;
    ScalarType type = ScalarType::f16;
    std::uint64_t zero_rows_dropped = 0;
    std::uint64_t not_unit = 0;      ///< vectors whose norm is not 1 within rounding of their type
    bool normalised = true;          ///< those were normalised
    std::size_t empty_dropped = 0;   ///< documents left out
    std::size_t grids_dropped = 0;   ///< documents whose grid no longer fits because zero rows lay within
    std::uint64_t bytes = 0;         ///< of the file written
    std::size_t judged_queries = 0;  ///< with judgements, when those were written
};

/// Any supported source to a multi-vector file: keeps order, drops zero rows, normalises, refuses
/// NaN, infinities, duplicate ids and mixed dimensions. Holds one block of rows in memory.
ImportReport import_vectors(const ImportOptions& options, const Progress& progress = {});

}  // namespace marginmerge
