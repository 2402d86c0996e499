#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "marginmerge/jobs/presets.h"

namespace marginmerge {

struct ExplainOptions {
    std::filesystem::path documents;  ///< a multi-vector file
    std::string document;             ///< id of the page
    std::filesystem::path model;      ///< empty: none
    std::filesystem::path output;     ///< folder for the arrays; empty: only the report
    RecipeChoice recipe;
};

/// One stored vector and what it stands for.
struct ExplainedCluster {
    std::size_t anchor = 0;  ///< patch (kmeans: the start); of ward and tome the first member
    std::size_t patches = 0;
    double gain = 0;  ///< coverage gained by this pick, 0 when filled in
    double largest_weight = 0;
    double entropy = 0;  ///< of the weights, 0 to 1
};

struct ExplainReport {
    std::string document;
    std::size_t index = 0;  ///< position in the file
    std::size_t vectors = 0, dim = 0, kept = 0, prototypes = 0;
    double effective_rank = 0, redundancy = 0;
    std::size_t remembered = 0;  ///< tokens of judged queries that the page was to answer as well
    std::size_t reasoned = 0;    ///< anchors chosen by the rule; the others were filled in
    double anchor_coverage = 0;  ///< F(A), 0 to 1; 0 without prototypes
    double full_response = 0;    ///< weighted mean of the prototypes' best responses, whole page
    double kept_response = 0;    ///< the same for the representatives
    Recipe recipe;
    std::vector<ExplainedCluster> clusters;  ///< in stored order
    std::vector<std::string> files;          ///< written
};

/// Compresses one page and shows every step of it. Writes, as .npy: anchors, assign,
/// representatives, alpha; with prototypes also omega, responses, coverage, relevance, anchor_cos,
/// base_weight, features, greedy_gains; with a network also residual; and meta.json. Arrays have
/// the shapes of the paper: responses and coverage are [M,n].
ExplainReport explain(const ExplainOptions& options);

}  // namespace marginmerge
