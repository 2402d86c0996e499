#include <algorithm>
#include <cmath>
#include <tuple>

#include "core/clock.h"
#include "core/parallel.h"
#include "jobs/judged_queries.h"
#include "learn/alignment.h"
#include "learn/label_trial.h"
#include "learn/memory.h"
#include "merge/registry.h"

namespace marginmerge {

namespace {

constexpr double usual_share = 0.005;  // of pairs may change their order with the default preset
constexpr double memory_pays = 2;      // nDCG@5 for the share of pairs: on compressed pages it changes more of them
constexpr std::size_t trial_folds = 5;
constexpr std::size_t least_judged = 20;      // queries
constexpr std::size_t most_dimensions = 512;  // of a change

using Queries = std::span<const JudgedQuery* const>;

// Lengths relative to the usual one, which is returned.
double centre_lengths(std::vector<JudgedQuery>& queries) {
    double sum = 0, count = 0;
    for (const JudgedQuery& q : queries) {
        for (std::size_t i = q.contested; i < q.pages(); ++i) sum += q.lengths[i];
        count += static_cast<double>(q.pages() - q.contested);
    }
    const double usual = sum / count;
    for (JudgedQuery& q : queries)
        for (float& length : q.lengths) length -= static_cast<float>(usual);
    return std::exp(usual);
}

// Every query judged by what was learned from the other folds: f(seen, unseen) adds to the trial.
template <class OneFold>
void for_folds(Queries queries, const OneFold& f) {
    for (std::size_t fold = 0; fold < trial_folds; ++fold) {
        std::vector<std::size_t> seen, unseen;
        for (std::size_t i = 0; i < queries.size(); ++i) (i % trial_folds == fold ? unseen : seen).push_back(i);
        f(seen, unseen);
    }
}

template <class T>
std::vector<const T*> chosen(std::span<const T* const> all, std::span<const std::size_t> which) {
    std::vector<const T*> out;
    for (const auto i : which) out.push_back(all[i]);
    return out;
}

template <class T>
std::vector<const T*> addresses(const std::vector<T>& all) {
    std::vector<const T*> out(all.size());
    std::transform(all.begin(), all.end(), out.begin(), [](const T& x) { return &x; });
    return out;
}

// Strengths that gain most together while they change no more pairs than they may; 0 for what does not help.
struct LabelChoice {
    std::size_t memory = 0, alignment = 0;
};

LabelChoice choose(const LabelTrial& memory, const LabelTrial& alignment, double most_flips) {
    const LabelTrial nothing({0});
    const auto keeps = [&](std::size_t i) { return memory.helps(i) && memory.pays(i, memory_pays); };
    LabelChoice best;
    std::tie(best.memory, best.alignment) = best_together(memory, alignment, most_flips);
    // What does not help leaves its pairs to the other.
    if (!keeps(best.memory)) best = {0, best_together(nothing, alignment, most_flips).second};
    if (alignment.helps(best.alignment)) return best;
    const std::size_t alone = best_together(memory, nothing, most_flips).first;
    return {keeps(alone) ? alone : best.memory, 0};
}

// Reports what was chosen, or where nothing was what came closest.
void settle(const LabelTrial& trial, std::size_t chosen, double most_flips, FitLabelGain& report,
            nlohmann::json& provenance) {
    const std::size_t shown = chosen != 0 ? chosen : best_together(trial, LabelTrial({0}), most_flips).first;
    report.queries = trial.queries();
    report.full_ndcg = trial.ndcg(0);
    report.ndcg = trial.ndcg(shown);
    report.error = trial.standard_error(shown);
    report.flips = trial.flips(shown);
    report.strength = trial.strengths()[shown];
    report.kept = chosen != 0;
    provenance = {{"most_flips", most_flips},       {"queries", report.queries},      {"folds", trial_folds},
                  {"strength", report.strength},    {"full_ndcg5", report.full_ndcg}, {"ndcg5", report.ndcg},
                  {"standard_error", report.error}, {"flips", report.flips},          {"kept", report.kept}};
}

// What pages were asked before, at several lengths. Losses are those of an alignment.
LabelTrial try_memory(Queries queries, const MemorySettings& settings, const AlignmentSettings& like) {
    std::vector<AskedQuery> asked(queries.size());
    parallel_for(queries.size(), like.threads,
                 [&](std::size_t i) { asked[i] = asked_of_pages(*queries[i], settings); });
    const std::vector<const AskedQuery*> of = addresses(asked);
    LabelTrial trial({0, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9});
    for_folds(queries, [&](std::span<const std::size_t> seen, std::span<const std::size_t> unseen) {
        const Memory memory = learn_memory(chosen<AskedQuery>(of, seen), settings);
        const double temperature = like.temperature * score_spread(chosen<JudgedQuery>(queries, seen));
        for (const auto& of_query :
             judge_memory(chosen<JudgedQuery>(queries, unseen), memory, trial.strengths(), temperature, like.threads))
            trial.add(of_query);
    });
    return trial;
}

LabelTrial try_alignment(Queries queries, const AlignmentSettings& settings) {
    std::vector<double> shares{0, 2};
    while (shares.back() > 0.025) shares.push_back(0.85 * shares.back());
    LabelTrial trial(shares);
    for_folds(queries, [&](std::span<const std::size_t> seen, std::span<const std::size_t> unseen) {
        const std::vector<const JudgedQuery*> known = chosen<JudgedQuery>(queries, seen);
        const Alignment alignment = learn_alignment(known, settings);
        const double temperature = settings.temperature * score_spread(known);
        for (const auto& of_query :
             judge_alignment(chosen<JudgedQuery>(queries, unseen), alignment, shares, temperature, settings.threads))
            trial.add(of_query);
    });
    return trial;
}

void keep_memory(FitContext& context, const MemorySettings& settings) {
    const std::vector<AskedQuery> asked = asked_queries(context, settings);
    FitLabelGain& report = context.report.memory;
    Memory& memory = context.model.memory;
    memory = learn_memory(addresses(asked), settings);
    context.provenance["memory"]["kept"] = report.kept = !memory.empty();
    if (!report.kept) return;
    memory.strength = static_cast<float>(report.strength);
    context.model.recipe.align = true;
    report.pages = memory.pages.size();
    context.provenance["memory"]["pages"] = report.pages;
    context.provenance["memory"]["tokens"] = memory.tokens.rows();
}

void keep_alignment(FitContext& context, Queries queries, const AlignmentSettings& settings, double usual_length) {
    FitLabelGain& report = context.report.alignment;
    Alignment& alignment = context.model.alignment;
    alignment = share_of(learn_alignment(queries, settings), report.strength);
    alignment.usual_length = static_cast<float>(usual_length);
    report.length_power = alignment.length_power;
    context.model.recipe.align = true;
}

}  // namespace

void fit_judgements(FitContext& context) {
    const bool usual = representative_rule(context.preset.representative).needs_probes;
    const double most_flips = context.options.align.value_or(usual ? usual_share : 0);
    if (most_flips == 0) return;
    const auto clock = Clock::now();
    std::vector<JudgedQuery> judged = judged_queries(context);
    if (judged.size() < least_judged) return;
    const double usual_length = centre_lengths(judged);
    const std::vector<const JudgedQuery*> queries = addresses(judged);

    const MemorySettings memory;
    AlignmentSettings alignment;
    alignment.threads = context.options.threads;
    alignment.change = judged.front().tokens.cols() <= most_dimensions;
    const bool remembers =
        context.options.remember && representative_rule(context.model.recipe.representative).needs_probes;
    const LabelTrial of_memory = remembers ? try_memory(queries, memory, alignment) : LabelTrial({0});
    const LabelTrial of_alignment = try_alignment(queries, alignment);
    LabelChoice chosen = choose(of_memory, of_alignment, most_flips);
    // What is asked for beyond the usual may be more than so few queries can teach.
    if (chosen.memory + chosen.alignment == 0)
        chosen = choose(of_memory, of_alignment, std::min(most_flips, usual_share));

    FitReport& report = context.report;
    if (remembers) settle(of_memory, chosen.memory, most_flips, report.memory, context.provenance["memory"]);
    settle(of_alignment, chosen.alignment, most_flips, report.alignment, context.provenance["alignment"]);
    if (report.memory.kept) keep_memory(context, memory);
    if (report.alignment.kept) keep_alignment(context, queries, alignment, usual_length);
    context.report.seconds_training += seconds_since(clock);
}

}  // namespace marginmerge
