#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include "core/clock.h"
#include "core/parallel.h"
#include "core/random.h"
#include "jobs/fit_context.h"
#include "kernels/convert.h"
#include "kernels/products.h"
#include "learn/fitted_parts.h"
#include "learn/mining.h"
#include "learn/probes.h"
#include "marginmerge/jobs/presets.h"
#include "merge/construct.h"

namespace marginmerge {

namespace {

constexpr std::size_t folds = 3;
constexpr std::size_t least_queries = 2 * folds;
constexpr std::size_t trial_sample = 96;      // pages from which a trial learns what pages share
constexpr std::size_t trial_documents = 160;  // pages on which it is judged
constexpr std::size_t final_sample = 256;
constexpr double ridge_without_queries = 0.01;
constexpr std::array ridges = {0.0015, 0.004, 0.012};
constexpr double ridge_tolerance = 0.02;    // so much more error than the best may a firmer ridge have
constexpr std::size_t answer_sample = 600;  // pages among which the answers to each query are looked up
constexpr std::size_t answer_pages = 4;     // the best of them for a query
constexpr std::size_t trial_mapped = 2500;  // corpus vectors among a trial's probes
constexpr std::size_t no_fold = std::numeric_limits<std::size_t>::max();

// A page of one of the corpora.
struct PageRef {
    std::size_t corpus;
    std::size_t document;
};

// A fixed random choice of training-side documents, evenly from the corpora that train.
std::vector<PageRef> choose_pages(const FitContext& context, std::size_t count, std::uint64_t stream) {
    std::vector<PageRef> all;
    for (std::size_t c = 0; c < context.corpora.size(); ++c) {
        if (context.corpora[c].role != DataRole::train) continue;
        for (const auto i : context.corpora[c].training_documents) all.push_back({c, i});
    }
    Random random(mix_seed(42, stream));
    random.shuffle(std::span(all));
    all.resize(std::min(count, all.size()));
    return all;
}

// A training-side query of a corpus; `fold` says in which trial it is judged (bank-only ones never are).
struct QueryRef {
    std::size_t corpus;
    std::size_t query;
    std::size_t fold;
};

std::vector<QueryRef> training_queries(const FitContext& context) {
    std::vector<QueryRef> all;
    for (std::size_t c = 0; c < context.corpora.size(); ++c) {
        const FitCorpus& corpus = context.corpora[c];
        if (corpus.pseudo || corpus.role == DataRole::zero_shot) continue;
        std::vector<std::size_t> queries = corpus.own_queries();
        Random random(mix_seed(42, 77 + c));
        random.shuffle(std::span(queries));
        for (std::size_t i = 0; i < queries.size(); ++i) {
            all.push_back({c, queries[i], corpus.role == DataRole::train ? i % folds : folds});
        }
    }
    return all;
}

// Which pages of a sample the full index ranks highest for each query; from them comes what answers look like.
class Answers {
public:
    Answers(const FitContext& context, std::span<const QueryRef> queries) : context_(context), best_(queries.size()) {
        std::vector<std::vector<std::size_t>> documents(context.corpora.size());
        for (const PageRef& page : choose_pages(context, answer_sample, 7))
            documents[page.corpus].push_back(page.document);
        for (auto& sample : documents) std::sort(sample.begin(), sample.end());
        for (std::size_t c = 0; c < documents.size(); ++c) {
            std::vector<const PreparedQuery*> prepared;
            std::vector<std::size_t> which;
            for (std::size_t q = 0; q < queries.size(); ++q) {
                if (queries[q].corpus != c) continue;
                prepared.push_back(&context.queries[c][queries[q].query]);
                which.push_back(q);
            }
            if (documents[c].empty() || prepared.empty()) continue;
            MiningOptions options;
            options.negatives = answer_pages;
            options.threads = context.options.threads;
            options.chunk = answer_sample;
            const std::vector<std::vector<std::size_t>> none(prepared.size());
            const auto mined = mine_hard_negatives(context.corpora[c].documents, documents[c], prepared, none, options);
            for (std::size_t i = 0; i < which.size(); ++i)
                for (const ScoredDocument& page : mined[i].top) best_[which[i]].push_back(page.document);
        }
    }

    // Appends the tokens of query q and, for every page kept, what answers them there.
    void append(std::size_t q, const QueryRef& ref, QueryTokens& out, std::size_t& at) const {
        const FitCorpus& corpus = context_.corpora[ref.corpus];
        const Matrix tokens = to_float(corpus.queries.vectors(ref.query));
        for (const auto document : best_[q]) {
            std::copy_n(tokens.data(), tokens.size(), out.answered.row(at));
            find_answers(tokens, to_float(corpus.documents.vectors(document)),
                         out.answers.view().middle_rows(at, tokens.rows()));
            at += tokens.rows();
        }
    }

    std::size_t pages_of(std::size_t q) const { return best_[q].size(); }

private:
    const FitContext& context_;
    std::vector<std::vector<std::size_t>> best_;
};

// Probes from the queries outside `left_out` (no_fold: none is left out), corpus vectors from the largest corpus that
// trains. A trial makes do with fewer of those.
ProbeSet probes_without(const FitContext& context, std::span<const QueryRef> queries, const Answers& answers,
                        std::size_t left_out) {
    const std::size_t d = context.corpora.front().documents.dim();
    const auto used = [&](const QueryRef& q) { return q.fold != left_out || q.fold == folds; };
    std::size_t rows = 0, pairs = 0;
    for (std::size_t q = 0; q < queries.size(); ++q) {
        if (!used(queries[q])) continue;
        const std::size_t count = context.corpora[queries[q].corpus].queries.vectors_of(queries[q].query);
        rows += count;
        pairs += count * answers.pages_of(q);
    }
    QueryTokens known{Matrix(rows, d), Matrix(pairs, d), Matrix(pairs, d)};
    std::size_t row = 0, pair = 0;
    for (std::size_t q = 0; q < queries.size(); ++q) {
        if (!used(queries[q])) continue;
        const VectorsView v = context.corpora[queries[q].corpus].queries.vectors(queries[q].query);
        to_float(v, known.tokens.row(row));
        row += v.rows;
        answers.append(q, queries[q], known, pair);
    }
    ProbeOptions options;
    if (context.options.probes > 0) {
        options.tokens = std::max<std::size_t>(1, context.options.probes / 3);
        options.mapped = context.options.probes - options.tokens;
    }
    if (left_out != no_fold) options.mapped = std::min(options.mapped, trial_mapped);
    options.seed = context.options.seed;
    options.threads = context.options.threads;
    std::size_t largest = 0, best = 0;
    for (std::size_t c = 0; c < context.corpora.size(); ++c) {
        const auto& corpus = context.corpora[c];
        if (corpus.role == DataRole::train && corpus.training_documents.size() > best) {
            best = corpus.training_documents.size();
            largest = c;
        }
    }
    return make_probes(known, context.corpora[largest].documents, context.corpora[largest].training_documents, options);
}

std::vector<FitStart> make_starts(const FitContext& context, std::span<const PageRef> pages, const ProbeSet& probes,
                                  const Matrix& metric, const FittedSettings& settings) {
    std::vector<FitStart> starts(pages.size());
    parallel_for(pages.size(), context.options.threads, [&](std::size_t i) {
        const Matrix v = to_float(context.corpora[pages[i].corpus].documents.vectors(pages[i].document));
        make_fit_start(v, context.model.recipe.budget.count(v.rows()), probes.tokens, metric, settings, starts[i]);
    });
    return starts;
}

// Scores of one way of compressing, for the queries of every corpus against its trial pages.
struct FoldScores {
    explicit FoldScores(const std::vector<Matrix>& full) {
        for (const Matrix& m : full) scores.emplace_back(m.rows(), m.cols());
    }
    std::vector<Matrix> scores;
    ValidationFigures figures(const std::vector<Matrix>& full) const {
        std::vector<ValidationFigures> all;
        for (std::size_t c = 0; c < full.size(); ++c) {
            if (full[c].rows() == 0 || full[c].cols() == 0) continue;
            all.push_back(validation_figures(full[c], scores[c], top_as_relevant(full[c], teacher_top)));
        }
        return average_figures(all);
    }
};

class Trials {
public:
    Trials(FitContext& context, std::vector<QueryRef> queries)
        : context_(context), queries_(std::move(queries)), pages_(choose_pages(context, trial_documents, 5)) {
        const std::size_t corpora = context.corpora.size();
        column_.resize(pages_.size());
        row_.assign(queries_.size(), 0);
        std::vector<std::vector<std::size_t>> documents(corpora);
        std::vector<std::vector<const PreparedQuery*>> judged(corpora);
        for (std::size_t i = 0; i < pages_.size(); ++i) {
            column_[i] = documents[pages_[i].corpus].size();
            documents[pages_[i].corpus].push_back(pages_[i].document);
        }
        for (std::size_t i = 0; i < queries_.size(); ++i) {
            if (queries_[i].fold == folds) continue;
            row_[i] = judged[queries_[i].corpus].size();
            judged[queries_[i].corpus].push_back(&context.queries[queries_[i].corpus][queries_[i].query]);
        }
        for (std::size_t c = 0; c < corpora; ++c) {
            full_.push_back(score_documents(context.corpora[c].documents, documents[c], judged[c],
                                            context.options.threads, context.options.cluster));
        }
    }

    const std::vector<Matrix>& full() const { return full_; }

    // Scores page i's representatives with the queries of one fold (folds: of all).
    void score(std::size_t i, ConstMatrix representatives, std::size_t fold, FoldScores& out) const {
        for (std::size_t q = 0; q < queries_.size(); ++q) {
            if (queries_[q].corpus != pages_[i].corpus || queries_[q].fold == folds) continue;
            if (fold != folds && queries_[q].fold != fold) continue;
            out.scores[pages_[i].corpus](row_[q], column_[i]) =
                maxsim(context_.queries[queries_[q].corpus][queries_[q].query], representatives);
        }
    }

    ValidationFigures fixed(const Recipe& recipe) const {
        FoldScores scores(full_);
        std::vector<PageWorkspace> workspaces(resolve_threads(context_.options.threads));
        std::vector<CompressedPage> pages(workspaces.size());
        parallel_for_workers(pages_.size(), context_.options.threads, [&](std::size_t i, std::size_t worker) {
            const MultiVectorSet& documents = context_.corpora[pages_[i].corpus].documents;
            const Matrix v = to_float(documents.vectors(pages_[i].document));
            compress_page({v, documents.grid(pages_[i].document), mix_seed(recipe.seed, pages_[i].document)},
                          context_.model, recipe, workspaces[worker], pages[worker]);
            score(i, pages[worker].representatives, folds, scores);
        });
        return scores.figures(full_);
    }

    // Every ridge, each query judged by a fit that has not seen it. The second figure is with unit norms.
    std::vector<std::pair<ValidationFigures, ValidationFigures>> fitted(FittedLearning learning,
                                                                        const Answers& answers) {
        const auto sample = choose_pages(context_, trial_sample, 6);
        std::vector<FoldScores> free(ridges.size(), FoldScores(full_)), unit = free;
        for (std::size_t fold = 0; fold < folds; ++fold) {
            const ProbeSet probes = probes_without(context_, queries_, answers, fold);
            const Matrix metric = fitted_metric(probes, learning);
            const auto starts = make_starts(context_, sample, probes, metric, learning.settings);
            const auto trial = make_starts(context_, pages_, probes, metric, learning.settings);
            for (std::size_t r = 0; r < ridges.size(); ++r) {
                if (context_.options.progress) {
                    context_.options.progress(
                        {"validate", "trials", fold * ridges.size() + r, folds * ridges.size(), ""});
                }
                learning.settings.ridge = ridges[r];
                const FittedParts parts = learn_fitted_parts(probes, metric, starts, learning);
                std::vector<FitWorkspace> workspaces(resolve_threads(context_.options.threads));
                parallel_for_workers(pages_.size(), context_.options.threads, [&](std::size_t i, std::size_t worker) {
                    Matrix x;
                    fit_page(trial[i], probes, parts, learning.settings, workspaces[worker], x);
                    score(i, x, fold, free[r]);
                    normalise_rows(x);
                    score(i, x, fold, unit[r]);
                });
            }
        }
        std::vector<std::pair<ValidationFigures, ValidationFigures>> figures;
        for (std::size_t r = 0; r < ridges.size(); ++r)
            figures.emplace_back(free[r].figures(full_), unit[r].figures(full_));
        return figures;
    }

private:
    FitContext& context_;
    std::vector<QueryRef> queries_;
    std::vector<PageRef> pages_;
    std::vector<std::size_t> column_, row_;
    std::vector<Matrix> full_;
};

Recipe fixed_recipe(const FitContext& context, const char* preset) {
    Recipe recipe = preset_recipe(preset);
    if (context.model.bank.empty() && recipe.anchors == "coverage") recipe.anchors = "kcenter";
    recipe.budget.keep = context.model.recipe.budget.keep;
    recipe.budget.vectors = context.model.recipe.budget.vectors;
    recipe.unit_norm = context.model.recipe.unit_norm;
    recipe.seed = context.model.recipe.seed;
    return recipe;
}

// The model itself, from all queries.
void finish_fitted(FitContext& context, std::span<const QueryRef> queries, const Answers& answers,
                   const FittedLearning& learning) {
    context.model.probes = probes_without(context, queries, answers, no_fold);
    Matrix metric = fitted_metric(context.model.probes, learning);
    const auto sample = choose_pages(context, final_sample, 6);
    const auto starts = make_starts(context, sample, context.model.probes, metric, learning.settings);
    context.model.fitted = learn_fitted_parts(context.model.probes, std::move(metric), starts, learning);
    context.model.settings = to_json(learning.settings);
}

}  // namespace

void fit_fitted(FitContext& context) {
    const auto clock = Clock::now();
    const auto queries = training_queries(context);
    const std::size_t judged = static_cast<std::size_t>(
        std::count_if(queries.begin(), queries.end(), [](const QueryRef& q) { return q.fold < folds; }));
    const Answers answers(context, queries);
    FittedLearning learning;
    learning.threads = context.options.threads;
    learning.settings.sharpen = context.options.sharpen.value_or(learning.settings.sharpen);
    if (judged < least_queries) {
        // Too few to judge anything by: the documents' own vectors are the probes, held more firmly.
        learning.settings.ridge = ridge_without_queries;
        finish_fitted(context, queries, answers, learning);
        return;
    }
    Trials trials(context, queries);
    const auto figures = trials.fitted(learning, answers);
    const bool unit = context.model.recipe.unit_norm;
    // By the error of scores: it moves less by chance than the flips of so few pages. The firmest ridge of those that
    // err about as little as the best: it keeps strong answers better.
    const auto error_of = [&](std::size_t r) { return unit ? figures[r].second.error : figures[r].first.error; };
    double least = error_of(0);
    for (std::size_t r = 1; r < figures.size(); ++r) least = std::min(least, error_of(r));
    std::size_t best = figures.size() - 1;
    while (error_of(best) > (1 + ridge_tolerance) * least) --best;
    learning.settings.ridge = ridges[best];

    auto& rows = context.report.candidates;
    const auto add = [&](const std::string& name, const ValidationFigures& f) {
        rows.push_back({name, f.ndcg, f.flips, f.error, false});
    };
    add("fitted", unit ? figures[best].second : figures[best].first);
    std::vector<std::pair<std::string, Recipe>> fixed;
    for (const char* preset : {"compact", "pooling", "centroid"}) {
        const Recipe recipe = fixed_recipe(context, preset);
        fixed.emplace_back(recipe.representative, recipe);
        add(recipe.representative, trials.fixed(recipe));
    }
    std::size_t winner = 0;
    for (std::size_t i = 1; i < rows.size(); ++i) {
        if (rows[i].flips < rows[winner].flips) winner = i;
    }
    rows[winner].chosen = true;
    add(unit ? "fitted, free norms" : "fitted, unit norms", unit ? figures[best].first : figures[best].second);
    context.report.full_ndcg = 1;
    auto json_rows = nlohmann::json::array();
    for (const auto& row : rows)
        json_rows.push_back({{"name", row.name}, {"ndcg5", row.ndcg}, {"flips", row.flips}, {"error", row.error}});
    auto json_ridges = nlohmann::json::array();
    for (std::size_t r = 0; r < figures.size(); ++r) {
        json_ridges.push_back(
            {{"ridge", ridges[r]}, {"flips", figures[r].first.flips}, {"error", figures[r].first.error}});
    }
    context.provenance["cross_validation"] = {{"folds", folds},
                                              {"judge", "full index, its best ten"},
                                              {"documents", trial_documents},
                                              {"rows", json_rows},
                                              {"ridges", json_ridges},
                                              {"queries", judged}};
    if (winner != 0 && context.options.compare) {
        context.model.recipe = fixed[winner - 1].second;
        context.report.fell_back =
            fmt::format("fitted flips {:.4f} of the pairs in cross-validation, {} {:.4f}: {} is kept", rows[0].flips,
                        rows[winner].name, rows[winner].flips, rows[winner].name);
        return;
    }
    finish_fitted(context, queries, answers, learning);
    context.report.seconds_training = seconds_since(clock);
}

}  // namespace marginmerge
