#pragma once

#include <deque>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "jobs/fit_data.h"
#include "jobs/fit_store.h"
#include "learn/validation.h"
#include "marginmerge/jobs/fit.h"
#include "marginmerge/merge/model.h"

namespace marginmerge {

/// How many of the full index's best documents count as relevant where nothing is judged.
constexpr std::size_t teacher_top = 10;

/// A recipe by name and what training does for it.
struct FitPreset {
    std::string name;
    std::string summary;
    std::string anchors;
    std::string fill;
    std::string representative;
    std::string objective = "full";
    bool from_uniform = false;  ///< start at the plain mean, learn the base's constants, stop by fidelity
};

const FitPreset& fit_preset(const std::string& name);

/// What a corpus looks like to validation: some documents, the validation queries, the full scores.
struct ValidationPool {
    std::vector<std::size_t> documents;  ///< positions, ascending
    std::vector<std::size_t> queries;
    Matrix full_scores;                 ///< [queries, documents]
    std::vector<RelevantSet> relevant;  ///< by judgements, or by the full index where there are none
};

/// Everything the parts of a fit share.
struct FitContext {
    const FitOptions& options;
    const FitPreset& preset;
    std::vector<FitCorpus> corpora;
    std::vector<std::vector<PreparedQuery>> queries;  ///< of each corpus, all of them, by position
    std::vector<ValidationPool> pools;                ///< of each corpus; empty for bank and zero-shot
    Model model;
    FitReport report;
    std::string fingerprint;  ///< of data and options
    nlohmann::json provenance;
};

/// Whether this process writes files: the only one, or the first of several.
inline bool leads(const FitOptions& options) { return options.cluster == nullptr || options.cluster->leads(); }

/// Positives first, by falling grade, then full score: what a query's examples are made of.
struct MinedExample {
    std::size_t query = 0;
    std::vector<ScoredDocument> positives;
    std::vector<int> grades;
    std::vector<ScoredDocument> negatives;
};

/// Hard negatives of every training query of a corpus, from the store or by a scan.
std::vector<MinedExample> mined_examples(FitContext& context, std::size_t corpus, const FitStore& store);

/// Prototypes from the training-side queries, when the recipe needs any.
void fit_bank(FitContext& context);

/// Validation documents and their full scores for every training corpus.
void make_pools(FitContext& context);

/// Trains the network (and the base, for presets that say so) into context.model.
void fit_learned(FitContext& context, const FitStore& store);

/// Probes, ridge and shared parts of `fitted` into context.model; a fixed recipe where that is better.
void fit_fitted(FitContext& context);

/// What judgements say about single pages (memory) and about all alike (alignment) into context.model, where
/// cross-validation shows that it helps.
void fit_judgements(FitContext& context);

/// Compresses a pool's documents with this model and recipe and scores its queries.
ValidationFigures judge_recipe(const FitContext& context, const Model& model, const Recipe& recipe);

/// Holds the fitted recipe against the fixed ones on the validation queries; keeps the best.
void compare_recipes(FitContext& context);

}  // namespace marginmerge
