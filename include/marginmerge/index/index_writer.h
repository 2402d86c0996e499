#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "marginmerge/core/progress.h"
#include "marginmerge/data/multi_vector_set.h"
#include "marginmerge/index/index.h"

namespace marginmerge {

struct AddOptions {
    std::optional<VectorCode> code{};      ///< of a new index (f16 when not said); must match that of an old one
    bool replace = false;                  ///< pages whose id exists take the old page's place; otherwise an error
    const MultiVectorSet* full = nullptr;  ///< pages before compression, found by id, kept for re-ranking
    const MultiVectorSet* example_queries = nullptr;  ///< stored with the index, in place of earlier ones
    std::size_t threads = 0;
    Progress progress{};
};

struct AddReport {
    std::size_t added = 0;
    std::size_t replaced = 0;
    std::uint64_t generation = 0;
};

struct DeleteOptions {
    bool ignore_missing = false;  ///< unknown ids are counted instead of being an error
};

struct DeleteReport {
    std::size_t deleted = 0;
    std::size_t missing = 0;
    std::uint64_t generation = 0;
};

struct CompactOptions {
    std::optional<VectorCode> code{};  ///< store the vectors in this code from now on; never a finer one
    Progress progress{};
};

struct CompactReport {
    std::size_t pages = 0;
    std::size_t segments_before = 0;
    std::uint64_t bytes_before = 0;
    std::uint64_t bytes_after = 0;
    std::uint64_t generation = 0;
};

/// The one writer of an index folder: holds an exclusive lock on it from construction to
/// destruction. Each operation becomes visible and durable at one instant, the rename of the
/// manifest; a process killed at any time leaves the index as it was before or after.
class IndexWriter {
public:
    struct Options {
        bool create = true;       ///< make the folder when there is none
        double lock_timeout = 0;  ///< seconds to wait for another writer before Error(io)
    };
    explicit IndexWriter(const std::filesystem::path& folder, Options options);
    explicit IndexWriter(const std::filesystem::path& folder) : IndexWriter(folder, Options()) {}
    ~IndexWriter();
    IndexWriter(const IndexWriter&) = delete;
    IndexWriter& operator=(const IndexWriter&) = delete;

    /// Adds all pages as one segment. `metadata`: one JSON object (or "") for each page, or empty.
    AddReport add(const MultiVectorSet& pages, std::span<const std::string> metadata, const AddOptions& options = {});
    DeleteReport remove(std::span<const std::string> ids, const DeleteOptions& options = {});
    /// One segment of all live pages, without tombstones.
    CompactReport compact(const CompactOptions& options = {});

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

struct VerifyReport {
    std::size_t files = 0;
    std::uint64_t bytes = 0;
    std::size_t pages = 0;
    std::vector<std::string> problems;   ///< empty: sound
    std::vector<std::string> leftovers;  ///< files of a writer that was killed; the next writer removes them
};

/// Reads every byte of an index: checksums, file formats, counts, unique ids, finite values.
VerifyReport verify_index(const std::filesystem::path& path, const Progress& progress = {});

/// Metadata for the pages of a set from JSON lines: each line an object with the page's id under
/// "id" (or "_id"), or {"id": …, "metadata": {…}}. Pages without a line get "". A line for a page
/// that is not in the set is an error, as are duplicates. `source` names the file in messages.
std::vector<std::string> parse_metadata_lines(std::string_view text, const MultiVectorSet& pages,
                                              const std::string& source);

}  // namespace marginmerge
