#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "marginmerge/core/cluster.h"
#include "marginmerge/core/matrix.h"
#include "marginmerge/core/progress.h"
#include "marginmerge/jobs/presets.h"
#include "marginmerge/merge/recipe.h"

namespace marginmerge {

/// One contiguous part of a corpus, for compressing it on several machines.
struct Shard {
    std::size_t index = 1;  ///< 1 to count
    std::size_t count = 1;  ///< 1: everything
};

struct CompressOptions {
    std::filesystem::path documents;  ///< a multi-vector file
    std::filesystem::path output;
    std::filesystem::path model;  ///< empty: none, for recipes that need none
    RecipeChoice recipe;
    ScalarType type = ScalarType::f16;
    Shard shard;
    std::size_t threads = 0;      ///< 0: all cores; the output does not depend on it
    std::size_t chunk_bytes = 0;  ///< source bytes between two checkpoints; 0: by the size of the corpus
    Cluster* cluster = nullptr;   ///< processes that share the work; only the first reports
};

struct CompressReport {
    std::size_t pages = 0;
    std::size_t resumed_pages = 0;  ///< taken over from an interrupted run
    std::size_t vectors_in = 0, vectors_out = 0;
    std::size_t bytes_in = 0, bytes_out = 0;  ///< of vectors
    double seconds = 0;
    std::string kernel;
    Recipe recipe;
    std::vector<std::string> notes;
};

/// Compresses every page of a file with bounded memory. While it runs, finished parts are kept in
/// the folder OUTPUT.partial; started again after an interruption with the same inputs and settings it
/// goes on from there, and the output is byte for byte that of an uninterrupted run.
CompressReport compress(const CompressOptions& options, const Progress& progress = {});

/// Joins all shards of one run (in any order) into the file that an unsharded run writes.
CompressReport join_shards(const std::vector<std::filesystem::path>& shards, const std::filesystem::path& output);

}  // namespace marginmerge
