#include <algorithm>
#include <cmath>
#include <map>

#include "core/clock.h"
#include "core/fail.h"
#include "core/parallel.h"
#include "core/random.h"
#include "jobs/fit_context.h"
#include "kernels/convert.h"
#include "learn/mining.h"
#include "learn/trainer.h"
#include "merge/construct.h"
#include "merge/registry.h"

namespace marginmerge {

namespace {

constexpr std::size_t hard_negatives = 8;

// The key of a scan: which documents, which queries, which of them are relevant.
std::string mining_key(const FitContext& context, std::size_t c) {
    const FitCorpus& corpus = context.corpora[c];
    Sha256 sha;
    const auto number = [&](std::uint64_t x) { sha.update(std::as_bytes(std::span(&x, 1))); };
    number(hard_negatives);
    if (const Cluster* cluster = context.options.cluster) {  // a scan is then that of a part
        number(cluster->rank());
        number(cluster->size());
    }
    for (const auto i : corpus.training_documents) sha.update(std::as_bytes(std::span(corpus.page_hashes[i])));
    for (const auto q : corpus.train_queries) {
        number(q);
        sha.update(std::as_bytes(std::span(corpus.query_hashes[q])));
        for (const auto d : corpus.labels[q].documents) number(d);
        number(~std::uint64_t{0});
    }
    return to_hex(sha.finish());
}

}  // namespace

std::vector<MinedExample> mined_examples(FitContext& context, std::size_t c, const FitStore& store) {
    const FitCorpus& corpus = context.corpora[c];
    std::vector<const PreparedQuery*> queries;
    std::vector<std::vector<std::size_t>> positives;
    for (const auto q : corpus.train_queries) {
        queries.push_back(&context.queries[c][q]);
        positives.push_back(corpus.labels[q].documents);
    }
    const std::string key = mining_key(context, c);
    MiningOptions options;
    options.negatives = hard_negatives + 1;  // one more: the teacher's positive of an unjudged query
    // The more documents are looked at together, the fewer are scored: up to 64 MB of bounds.
    options.chunk = std::max(options.chunk, (std::size_t{1} << 24) / std::max<std::size_t>(1, queries.size()));
    options.threads = context.options.threads;
    options.progress = context.options.progress;
    options.cluster = context.options.cluster;
    auto last = Clock::now();
    options.save = [&](const MiningState& state) {
        if (seconds_since(last) < context.options.checkpoint_seconds) return;
        store.save_mining(key, state);
        last = Clock::now();
    };
    MiningState state;
    if (auto saved = store.load_mining(key)) {
        state = std::move(*saved);
        const Slice part = slice_of(corpus.training_documents.size(), options.cluster);
        context.report.resumed = context.report.resumed || state.next < part.end - part.begin;
    }
    const auto mined =
        mine_hard_negatives(corpus.documents, corpus.training_documents, queries, positives, options, state);
    if (!store.temporary() && options.cluster == nullptr)
        store.save_mining(key, {corpus.training_documents.size(), mined});

    std::vector<MinedExample> examples;
    for (std::size_t i = 0; i < mined.size(); ++i) {
        MinedExample example;
        example.query = corpus.train_queries[i];
        const QueryLabels& labels = corpus.labels[example.query];
        auto top = mined[i].top;
        if (labels.documents.empty()) {
            if (top.empty()) continue;
            example.positives.push_back(top.front());
            example.grades.push_back(1);
            top.erase(top.begin());
        } else {
            std::vector<std::size_t> order(labels.documents.size());
            for (std::size_t j = 0; j < order.size(); ++j) order[j] = j;
            std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
                if (labels.grades[a] != labels.grades[b]) return labels.grades[a] > labels.grades[b];
                return mined[i].positive_scores[a] > mined[i].positive_scores[b];
            });
            for (const auto j : order) {
                if (!std::isfinite(mined[i].positive_scores[j])) continue;  // not on the training side
                example.positives.push_back({labels.documents[j], mined[i].positive_scores[j]});
                example.grades.push_back(labels.grades[j]);
            }
            if (example.positives.empty()) continue;
        }
        top.resize(std::min(top.size(), hard_negatives));
        if (top.empty()) continue;
        example.negatives = std::move(top);
        examples.push_back(std::move(example));
    }
    return examples;
}

namespace {

// Clusters and features of the documents that training or validation will look at.
class PageTable {
public:
    PageTable(FitContext& context, const Recipe& recipe) : context_(context), recipe_(recipe) {
        positions_.resize(context.corpora.size());
        clusters_.resize(context.corpora.size());
        pages_.resize(context.corpora.size());
    }
    void want(std::size_t corpus, std::size_t document) { positions_[corpus].push_back(document); }

    void build() {
        for (std::size_t c = 0; c < positions_.size(); ++c) {
            auto& wanted = positions_[c];
            std::sort(wanted.begin(), wanted.end());
            wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
            clusters_[c].resize(wanted.size());
            const MultiVectorSet& documents = context_.corpora[c].documents;
            std::vector<PageWorkspace> workspaces(resolve_threads(context_.options.threads));
            std::vector<Matrix> floats(workspaces.size());
            parallel_for_workers(wanted.size(), context_.options.threads, [&](std::size_t i, std::size_t worker) {
                const VectorsView stored = documents.vectors(wanted[i]);
                Matrix& v = floats[worker];
                v.reshape(stored.rows, stored.dim);
                to_float(stored, v.data());
                const PageInput page{v, documents.grid(wanted[i]), mix_seed(recipe_.seed, wanted[i])};
                build_clusters(page, context_.model, recipe_, workspaces[worker], clusters_[c][i]);
            });
        }
    }

    // Means and unbiased deviations over the training side, floored.
    FeatureScaling scaling() const {
        std::array<double, feature_count> sum{}, square{};
        double count = 0;
        for (const auto& corpus : clusters_) {
            for (const auto& page : corpus) {
                for (std::size_t i = 0; i < page.features.rows(); ++i) {
                    for (std::size_t f = 0; f < feature_count; ++f) sum[f] += page.features(i, f);
                }
                count += static_cast<double>(page.features.rows());
            }
        }
        std::array<double, feature_count> mean;
        for (std::size_t f = 0; f < feature_count; ++f) mean[f] = sum[f] / count;
        for (const auto& corpus : clusters_) {
            for (const auto& page : corpus) {
                for (std::size_t i = 0; i < page.features.rows(); ++i) {
                    for (std::size_t f = 0; f < feature_count; ++f) {
                        const double gap = page.features(i, f) - mean[f];
                        square[f] += gap * gap;
                    }
                }
            }
        }
        FeatureScaling scaling;
        for (std::size_t f = 0; f < feature_count; ++f) {
            scaling.mean[f] = static_cast<float>(mean[f]);
            scaling.deviation[f] = static_cast<float>(std::max(1e-6, std::sqrt(square[f] / std::max(1.0, count - 1))));
        }
        return scaling;
    }

    void finish(const FeatureScaling& scaling) {
        for (std::size_t c = 0; c < positions_.size(); ++c) {
            pages_[c].resize(clusters_[c].size());
            parallel_for(clusters_[c].size(), context_.options.threads, [&](std::size_t i) {
                pages_[c][i] = make_training_page(context_.corpora[c].documents.vectors(positions_[c][i]),
                                                  clusters_[c][i], scaling, recipe_.constants.epsilon);
                clusters_[c][i] = {};
            });
        }
    }

    const TrainingPage* page(std::size_t corpus, std::size_t document) const {
        const auto& p = positions_[corpus];
        return &pages_[corpus][static_cast<std::size_t>(std::lower_bound(p.begin(), p.end(), document) - p.begin())];
    }

private:
    FitContext& context_;
    const Recipe& recipe_;
    std::vector<std::vector<std::size_t>> positions_;
    std::vector<std::vector<PageClusters>> clusters_;
    std::vector<std::vector<TrainingPage>> pages_;
};

nlohmann::json curve_json(const TrainerState& state) {
    auto curve = nlohmann::json::array();
    for (const auto& e : state.curve) {
        curve.push_back({{"epoch", e.epoch},
                         {"loss", e.loss.total},
                         {"margin", e.loss.margin},
                         {"rank", e.loss.rank},
                         {"list", e.loss.list},
                         {"score", e.loss.score},
                         {"weight", e.loss.weight},
                         {"entropy", e.loss.entropy},
                         {"anchor", e.loss.anchor},
                         {"ndcg5", e.validation.ndcg},
                         {"flips", e.validation.flips},
                         {"error", e.validation.error}});
    }
    return curve;
}

}  // namespace

void fit_learned(FitContext& context, const FitStore& store) {
    const FitOptions& options = context.options;
    Recipe& recipe = context.model.recipe;
    const bool small_log = context.preset.from_uniform;

    auto clock = Clock::now();
    std::vector<std::vector<MinedExample>> mined(context.corpora.size());
    for (std::size_t c = 0; c < context.corpora.size(); ++c) {
        if (context.corpora[c].role == DataRole::train) mined[c] = mined_examples(context, c, store);
    }
    make_pools(context);
    context.report.seconds_mining = seconds_since(clock);

    clock = Clock::now();
    PageTable table(context, recipe);
    for (std::size_t c = 0; c < mined.size(); ++c) {
        for (const auto& example : mined[c]) {
            for (const auto& s : example.positives) table.want(c, s.document);
            for (const auto& s : example.negatives) table.want(c, s.document);
        }
        for (const auto d : context.pools[c].documents) table.want(c, d);
    }
    table.build();
    context.model.scaling = table.scaling();
    table.finish(*context.model.scaling);
    context.report.seconds_clusters = seconds_since(clock);

    clock = Clock::now();
    std::vector<TrainingExample> examples;
    for (std::size_t c = 0; c < mined.size(); ++c) {
        for (const auto& m : mined[c]) {
            TrainingExample example;
            example.query = &context.queries[c][m.query];
            // The paper's queries have one relevant page each; where there are several, its presets take
            // the best and ours use all, weighted by gain.
            const std::size_t positives = small_log ? m.positives.size() : 1;
            double sum = 0;
            for (std::size_t i = 0; i < positives; ++i) sum += std::exp2(m.grades[i]) - 1;
            for (std::size_t i = 0; i < positives; ++i) {
                example.pages.push_back(table.page(c, m.positives[i].document));
                example.full_scores.push_back(m.positives[i].score);
                example.positive_weight.push_back((std::exp2(m.grades[i]) - 1) / sum);
            }
            for (const auto& s : m.negatives) {
                example.pages.push_back(table.page(c, s.document));
                example.full_scores.push_back(s.score);
            }
            examples.push_back(std::move(example));
        }
    }
    if (examples.empty())
        fail(ErrorCode::invalid_argument, "fit: expected at least one query with documents to rank, found none");

    std::vector<ValidationSide> sides;
    for (std::size_t c = 0; c < context.pools.size(); ++c) {
        const ValidationPool& pool = context.pools[c];
        if (pool.queries.empty()) continue;
        ValidationSide side;
        for (const auto d : pool.documents) side.pages.push_back(table.page(c, d));
        for (const auto q : pool.queries) side.queries.push_back(&context.queries[c][q]);
        side.full_scores = pool.full_scores;
        side.relevant = pool.relevant;
        sides.push_back(std::move(side));
    }

    TrainerOptions trainer;
    trainer.objective = objective_named(context.preset.objective);
    trainer.clip = recipe.constants.residual_clip;
    trainer.seed = options.seed;
    trainer.threads = options.threads;
    trainer.progress = options.progress;
    TrainerState state;
    state.parameters.network = initial_network(options.seed, small_log ? 0 : 1);
    state.parameters.base[0] = static_cast<float>(1 / recipe.constants.tau_a);
    state.parameters.base[1] = static_cast<float>(recipe.constants.p);
    if (small_log) {
        trainer.epochs = 60;
        trainer.patience = 8;
        trainer.rule = CheckpointRule::fidelity;
        trainer.optimiser.learning_rate = 2e-3;
        trainer.optimiser.base_rate = 2e-2;
        state.parameters.base[0] = state.parameters.base[1] = Parameters::least_base;
        state.parameters.base[2] = options.unit_norm ? 1.0F : 1.5F;
    }
    if (options.epochs) trainer.epochs = *options.epochs;
    if (options.learning_rate) trainer.optimiser.learning_rate = *options.learning_rate;
    if (auto saved = store.load_training(context.fingerprint)) {
        state = std::move(*saved);
        context.report.resumed = true;
    }
    auto last = Clock::now();
    train(trainer, examples, sides, state, [&](const TrainerState& now) {
        if (seconds_since(last) < options.checkpoint_seconds) return;
        if (leads(context.options)) store.save_training(context.fingerprint, now);
        last = Clock::now();
    });
    context.model.network = state.best.network;
    recipe.constants.tau_a = 1.0 / state.best.base[0];
    recipe.constants.p = state.best.base[1];
    if (small_log) context.model.settings = nlohmann::json{{"learned", {{"norm_power", state.best.base[2]}}}}.dump();
    context.report.epochs = state.epoch;
    context.report.best_epoch = state.best_epoch;
    context.provenance["training"] = {{"curve", curve_json(state)},
                                      {"best_epoch", state.best_epoch},
                                      {"examples", examples.size()},
                                      {"objective", context.preset.objective},
                                      {"learning_rate", trainer.optimiser.learning_rate},
                                      {"weight_decay", trainer.optimiser.weight_decay},
                                      {"epochs", trainer.epochs},
                                      {"patience", trainer.patience}};
    context.report.seconds_training = seconds_since(clock);
}

}  // namespace marginmerge
