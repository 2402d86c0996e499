#include <fmt/core.h>

#include <algorithm>

#include "core/parallel.h"
#include "core/random.h"
#include "core/share.h"
#include "jobs/fit_context.h"
#include "kernels/convert.h"
#include "learn/mining.h"
#include "marginmerge/jobs/presets.h"
#include "merge/construct.h"

namespace marginmerge {

namespace {

constexpr std::size_t pool_limit = 4000;  // documents a corpus contributes to validation

}  // namespace

void make_pools(FitContext& context) {
    if (!context.pools.empty()) return;
    context.pools.resize(context.corpora.size());
    for (std::size_t c = 0; c < context.corpora.size(); ++c) {
        const FitCorpus& corpus = context.corpora[c];
        ValidationPool& pool = context.pools[c];
        if (corpus.role != DataRole::train) continue;
        pool.queries = corpus.validation_queries;
        pool.documents = corpus.training_documents;
        if (pool.documents.size() > pool_limit) {
            // Every relevant document, and a fixed sample of the others.
            std::vector<std::size_t> kept;
            for (const auto q : pool.queries)
                kept.insert(kept.end(), corpus.labels[q].documents.begin(), corpus.labels[q].documents.end());
            Random random(mix_seed(42, c));
            while (kept.size() < pool_limit)
                kept.push_back(corpus.training_documents[random.below(corpus.training_documents.size())]);
            std::sort(kept.begin(), kept.end());
            kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
            pool.documents = std::move(kept);
        }
        std::vector<const PreparedQuery*> queries;
        for (const auto q : pool.queries) queries.push_back(&context.queries[c][q]);
        pool.full_scores = score_documents(corpus.documents, pool.documents, queries, context.options.threads,
                                           context.options.cluster);
        pool.relevant = top_as_relevant(pool.full_scores, teacher_top);
        for (std::size_t i = 0; i < pool.queries.size(); ++i) {
            const QueryLabels& labels = corpus.labels[pool.queries[i]];
            if (labels.documents.empty()) continue;
            pool.relevant[i] = {};
            for (std::size_t j = 0; j < labels.documents.size(); ++j) {
                const auto at = std::lower_bound(pool.documents.begin(), pool.documents.end(), labels.documents[j]);
                if (at == pool.documents.end() || *at != labels.documents[j]) continue;
                pool.relevant[i].columns.push_back(static_cast<std::size_t>(at - pool.documents.begin()));
                pool.relevant[i].grades.push_back(labels.grades[j]);
            }
        }
    }
}

ValidationFigures judge_recipe(const FitContext& context, const Model& model, const Recipe& recipe) {
    std::vector<ValidationFigures> figures;
    for (std::size_t c = 0; c < context.pools.size(); ++c) {
        const ValidationPool& pool = context.pools[c];
        if (pool.queries.empty()) continue;
        const MultiVectorSet& documents = context.corpora[c].documents;
        Matrix scores(pool.queries.size(), pool.documents.size());
        std::vector<PageWorkspace> workspaces(resolve_threads(context.options.threads));
        std::vector<CompressedPage> pages(workspaces.size());
        const auto body = [&](std::size_t i, std::size_t worker) {
            const std::size_t document = pool.documents[i];
            const Matrix v = to_float(documents.vectors(document));
            compress_page({v, documents.grid(document), mix_seed(recipe.seed, document)}, model, recipe,
                          workspaces[worker], pages[worker]);
            for (std::size_t q = 0; q < pool.queries.size(); ++q) {
                scores(q, i) = maxsim(context.queries[c][pool.queries[q]], ConstMatrix(pages[worker].representatives));
            }
        };
        const auto put = [&](std::size_t i, ByteWriter& out) {
            for (std::size_t q = 0; q < pool.queries.size(); ++q) out.put(scores(q, i));
        };
        const auto take = [&](std::size_t i, ByteReader& in) {
            for (std::size_t q = 0; q < pool.queries.size(); ++q) scores(q, i) = in.take<float>();
        };
        share_for(context.options.cluster, pool.documents.size(), context.options.threads, body, put, take);
        figures.push_back(validation_figures(pool.full_scores, scores, pool.relevant));
    }
    return average_figures(figures);
}

void compare_recipes(FitContext& context) {
    make_pools(context);
    const Recipe& fitted = context.model.recipe;
    struct Entry {
        std::string name;
        Recipe recipe;
    };
    std::vector<Entry> entries{{fitted.representative, fitted}};
    for (const char* name : {"compact", "pooling", "centroid"}) {
        Recipe recipe = preset_recipe(name);
        if (recipe.anchors == "coverage" && context.model.bank.empty()) recipe.anchors = "kcenter";
        recipe.budget = fitted.budget;
        recipe.unit_norm = fitted.unit_norm;
        recipe.seed = fitted.seed;
        if (recipe.representative == fitted.representative && recipe.anchors == fitted.anchors) continue;
        entries.push_back({recipe.representative, recipe});
    }
    std::size_t best = 0;
    for (std::size_t i = 0; i < entries.size(); ++i) {
        const ValidationFigures f = judge_recipe(context, context.model, entries[i].recipe);
        context.report.candidates.push_back({entries[i].name, f.ndcg, f.flips, f.error, false});
        context.report.full_ndcg = f.full_ndcg;
        if (f.flips < context.report.candidates[best].flips) best = i;
    }
    context.report.candidates[best].chosen = true;
    if (best != 0) {
        const auto& kept = context.report.candidates[best];
        context.report.fell_back =
            fmt::format("{} flips {:.4f} of the validation pairs, {} {:.4f}: {} is kept", entries[0].name,
                        context.report.candidates[0].flips, kept.name, kept.flips, kept.name);
        context.model.recipe = entries[best].recipe;
    }
    auto rows = nlohmann::json::array();
    for (const auto& row : context.report.candidates) {
        rows.push_back({{"name", row.name},
                        {"ndcg5", row.ndcg},
                        {"flips", row.flips},
                        {"error", row.error},
                        {"chosen", row.chosen}});
    }
    context.provenance["comparison"] = std::move(rows);
}

}  // namespace marginmerge
