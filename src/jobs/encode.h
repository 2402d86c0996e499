#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "encode/page_reader.h"
#include "marginmerge/core/matrix.h"
#include "marginmerge/core/progress.h"

namespace marginmerge {

struct EncodeOptions {
    std::vector<std::filesystem::path> sources;  ///< files and folders
    std::filesystem::path card;                  ///< encoder card
    std::filesystem::path models;                ///< where the card's files may be found as well
    std::filesystem::path output;                ///< the multi-vector file
    std::filesystem::path assets;                ///< page images and text; empty: output + ".assets"
    ScalarType type = ScalarType::f16;
    bool page_images = true;          ///< keep an image of every page
    std::uint32_t image_side = 1100;  ///< longer side of kept images, pixels
    std::size_t pca = 0;              ///< fit a projection to so many dimensions; 0: none
    std::size_t shard = 0;            ///< this shard, from 0
    std::size_t shards = 1;           ///< of so many
    bool strict = false;              ///< stop at the first page that cannot be encoded
    bool fresh = false;               ///< forget what an interrupted run left behind
    std::size_t threads = 0;
    ReaderOptions reader;  ///< limits, and the process that files are read in
};

/// A file or page that could not be encoded.
struct SkippedPage {
    std::string source;
    std::size_t page = 0;  ///< from 1; 0: the whole file
    std::string reason;
};

struct EncodeReport {
    std::size_t files = 0;
    std::size_t pages = 0;
    std::size_t reused_pages = 0;  ///< taken over from an interrupted run
    std::size_t vectors = 0;
    std::size_t dim = 0;
    std::uint64_t tokens = 0;  ///< that went through the graph in this run
    double seconds = 0;
    double pca_kept = 0;  ///< share of squared norm the projection keeps
    std::string runtime;
    std::filesystem::path card;  ///< the card queries are to be encoded with
    std::filesystem::path assets;
    std::vector<SkippedPage> skipped;
};

/// Documents to vectors. Work is kept in output + ".partial" until the end, so that an interrupted
/// run goes on where it stopped.
EncodeReport encode_documents(const EncodeOptions& options, const Progress& progress);

struct EncodeQueriesOptions {
    std::filesystem::path queries;  ///< .tsv (id, text), .jsonl (id or _id, text), else one a line
    std::filesystem::path card;
    std::filesystem::path models;
    std::filesystem::path output;
    ScalarType type = ScalarType::f32;
    std::size_t threads = 0;
};

/// Queries to vectors; the report counts them as pages.
EncodeReport encode_queries(const EncodeQueriesOptions& options, const Progress& progress);

}  // namespace marginmerge
