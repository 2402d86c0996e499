#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "encode/encoder.h"
#include "jobs/encode.h"

namespace marginmerge {

/// One page of metadata, a line of pages.jsonl.
struct PageRecord {
    std::string id;
    std::string source;
    std::size_t page = 0;  ///< from 1
    std::string title;
    double width = 0;
    double height = 0;
    std::string image;  ///< relative to the assets folder; empty: none
    std::string text;   ///< the same for its text; "text_file" in the line
};
std::string to_json_line(const PageRecord& record);

/// Some pages of one file, or the pages of some small files: what is done and kept as one piece.
struct WorkItem {
    SourceFile file;
    std::size_t first = 0;
    std::size_t count = 0;
};
using WorkUnit = std::vector<WorkItem>;

/// What a unit gave.
struct UnitResult {
    std::vector<PageRecord> pages;
    std::vector<EncodedPage> vectors;
    std::vector<SkippedPage> skipped;
    std::uint64_t tokens = 0;
};

/// Finished units on disk, one file each, named by a hash of everything that went into them.
class PartStore {
public:
    /// `fingerprint` covers the card and every option that changes the result.
    PartStore(std::filesystem::path folder, std::string fingerprint, bool fresh);
    std::filesystem::path path_of(const WorkUnit& unit) const;
    bool has(const WorkUnit& unit) const;
    void put(const WorkUnit& unit, const UnitResult& result, std::size_t dim, ScalarType type) const;

    struct Part {
        MultiVectorSet set;
        std::vector<PageRecord> pages;
        std::vector<SkippedPage> skipped;
    };
    Part get(const WorkUnit& unit) const;
    void remove() const;

private:
    std::filesystem::path folder_;
    std::string fingerprint_;
};

}  // namespace marginmerge
