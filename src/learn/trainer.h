#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "learn/adamw.h"
#include "learn/objectives.h"
#include "learn/validation.h"
#include "marginmerge/core/progress.h"

namespace marginmerge {

/// How a checkpoint is chosen.
enum class CheckpointRule {
    ndcg,      ///< the paper's: nDCG@5, flips on a tie
    fidelity,  ///< the score error against the full index: steadier when validation queries are few
};

struct TrainerOptions {
    Objective objective;
    AdamWOptions optimiser;
    std::size_t epochs = 5;      ///< at most
    std::size_t patience = 2;    ///< epochs without improvement before stopping
    std::size_t accumulate = 4;  ///< queries an update; what is left over at an epoch's end is dropped
    CheckpointRule rule = CheckpointRule::ndcg;
    double clip = 5;          ///< H, of the residual
    std::uint64_t seed = 42;  ///< of the order of examples
    std::size_t threads = 0;
    Progress progress;  ///< phase "train", unit "epochs"; detail holds losses and figures
};

/// One line of the training curve. Epoch 0 is the start, before any update.
struct EpochRecord {
    std::size_t epoch = 0;
    LossTerms loss;  ///< mean over the epoch's queries
    ValidationFigures validation;
};

/// Everything needed to go on after an interruption.
struct TrainerState {
    Parameters parameters;
    AdamWState optimiser;
    Parameters best;
    ValidationFigures best_figures;
    std::size_t best_epoch = 0;
    std::size_t epoch = 0;  ///< finished epochs
    std::size_t idle = 0;   ///< epochs since the best one
    bool started = false;   ///< the start has been judged
    std::vector<EpochRecord> curve;
};

/// The documents and queries validation looks at.
struct ValidationSide {
    std::vector<const TrainingPage*> pages;
    std::vector<const PreparedQuery*> queries;
    Matrix full_scores;  ///< [queries, pages]
    std::vector<RelevantSet> relevant;
};

/// Compresses the validation pages of every side (one a dataset) with these parameters and compares with
/// the full scores; figures are averaged with the number of queries.
ValidationFigures judge_parameters(std::span<const ValidationSide> sides, const Parameters& parameters, double clip,
                                   std::size_t threads);

/// Trains until the epochs or the patience are used up; `state.best` is the result. `save` is called
/// after every epoch with what a resumed run needs.
void train(const TrainerOptions& options, std::span<const TrainingExample> examples,
           std::span<const ValidationSide> validation, TrainerState& state,
           const std::function<void(const TrainerState&)>& save = {});

/// Start of the network: uniform in +-1/sqrt(fan-in) for weights and biases, the output layer scaled
/// by `output_scale` (1: the usual start; 0: the residual begins at exactly zero).
Network initial_network(std::uint64_t seed, double output_scale);

}  // namespace marginmerge
