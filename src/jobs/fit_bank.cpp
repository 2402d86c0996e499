#include "core/clock.h"
#include "jobs/fit_context.h"
#include "kernels/convert.h"
#include "marginmerge/bank/build_bank.h"
#include "merge/registry.h"

namespace marginmerge {

void fit_bank(FitContext& context) {
    const auto start = Clock::now();
    const Recipe& recipe = context.model.recipe;
    const RepresentativeRule& rule = representative_rule(recipe.representative);
    if (!rule.needs_prototypes && !anchor_rule(recipe.anchors).needs_prototypes) return;
    // The training side of every dataset; the paper's bank includes its validation queries, which are
    // never judged by anything but checkpoints.
    std::size_t tokens = 0;
    const std::size_t d = context.corpora.front().documents.dim();
    for (const auto& corpus : context.corpora) {
        for (const auto* side : {&corpus.train_queries, &corpus.validation_queries}) {
            for (const auto q : *side) tokens += corpus.queries.vectors_of(q);
        }
    }
    Matrix all(tokens, d);
    std::vector<std::int64_t> offsets{0};
    std::size_t at = 0;
    for (const auto& corpus : context.corpora) {
        for (const auto* side : {&corpus.train_queries, &corpus.validation_queries}) {
            for (const auto q : *side) {
                to_float(corpus.queries.vectors(q), all.row(at));
                at += corpus.queries.vectors_of(q);
                offsets.push_back(static_cast<std::int64_t>(at));
                context.model.bank.query_ids.push_back(corpus.queries.id(q));
            }
        }
    }
    BankOptions options;
    options.prototypes = context.options.prototypes;
    options.threads = context.options.threads;
    options.cluster = context.options.cluster;
    BankReport report;
    auto ids = std::move(context.model.bank.query_ids);
    context.model.bank = build_bank(all, offsets, options, context.options.progress, &report);
    context.model.bank.query_ids = std::move(ids);
    context.provenance["bank"] = {{"queries", report.queries},
                                  {"tokens", report.tokens},
                                  {"inertia", report.inertia},
                                  {"prototypes", context.model.bank.size()},
                                  {"seed", options.seed}};
    context.report.seconds_bank = seconds_since(start);
}

}  // namespace marginmerge
