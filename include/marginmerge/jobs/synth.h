#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "marginmerge/core/matrix.h"
#include "marginmerge/core/progress.h"

namespace marginmerge {

/// Content to imitate: how many vectors a page has and how redundant they are (supplement, table of
/// redundancy multiplicity).
struct SynthKind {
    std::string_view name;
    std::string_view content;  ///< natural | scene | dense
    std::size_t vectors;
    double redundancy;  ///< n / effective rank
};

/// natural, scene and dense, then the paper's nine data sets.
std::span<const SynthKind> synth_kinds();

struct SynthOptions {
    std::filesystem::path output;  ///< folder
    std::string kind = "dense";    ///< a name of synth_kinds()
    std::size_t documents = 200;
    std::size_t queries = 100;
    std::size_t vectors = 0;  ///< mean vectors a page; 0: the kind's
    double redundancy = 0;    ///< 0: the kind's
    std::size_t dim = 128;
    double difficulty = 0.85;  ///< nDCG@5 of the full index to aim at
    std::uint64_t seed = 42;
    ScalarType type = ScalarType::f16;
    std::size_t threads = 0;  ///< 0: all cores; the output does not depend on it
};

struct SynthReport {
    std::size_t documents = 0, queries = 0, vectors = 0, dim = 0;
    std::size_t train_queries = 0, test_queries = 0;
    double redundancy = 0;  ///< measured over a sample of pages
    double redundancy_asked = 0;
    double sample_ndcg = 0;  ///< nDCG@5 of the full index on the calibration sample
    double seconds = 0;
};

/// Writes docs.safetensors, queries.safetensors and qrels.tsv, and the split train_/test_ files of
/// queries and judgements (30% of the documents belong to the test side). Pages have regions of
/// shared topics and of their own content; queries are noisy views of a few regions of their page
/// among words about other topics. Every query has one relevant page.
SynthReport synthesise(const SynthOptions& options, const Progress& progress = {});

}  // namespace marginmerge
