#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "marginmerge/index/index_writer.h"

namespace marginmerge {

struct IndexAddJobOptions {
    std::filesystem::path index;            ///< folder, made when it does not exist
    std::filesystem::path pages;            ///< multi-vector or compressed file
    std::filesystem::path metadata;         ///< JSON lines; empty: none
    std::filesystem::path full;             ///< documents before compression, kept for re-ranking; empty: none
    std::filesystem::path example_queries;  ///< stored for the web page to offer; empty: none
    std::string code;                       ///< f32 | f16 | int8 | bits; empty: as in the index, f16 for a new one
    bool replace = false;
    double lock_timeout = 10;  ///< seconds to wait for another writer
    std::size_t threads = 0;
    Progress progress;
};

/// `marginmerge index add`: files in, one new segment.
AddReport index_add_job(const IndexAddJobOptions& options);

struct IndexDeleteJobOptions {
    std::filesystem::path index;
    std::vector<std::string> ids;
    std::filesystem::path ids_file;  ///< one id a line, in addition; empty: none
    bool ignore_missing = false;
    double lock_timeout = 10;
};

DeleteReport index_delete_job(const IndexDeleteJobOptions& options);

struct IndexCompactJobOptions {
    std::filesystem::path index;
    std::string code;  ///< empty: unchanged
    double lock_timeout = 10;
    Progress progress;
};

CompactReport index_compact_job(const IndexCompactJobOptions& options);

}  // namespace marginmerge
