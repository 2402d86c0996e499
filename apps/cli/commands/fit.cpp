#include "marginmerge/jobs/fit.h"

#include <fmt/core.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "cluster.h"
#include "command.h"
#include "core/fail.h"
#include "usage.h"

namespace marginmerge::cli {

namespace {

struct FitFlags {
    Common common;
    FitOptions fit;
    FitSource single;
    std::string documents, queries, qrels, output, exclude, evaluation, cache;
    std::vector<std::string> data;
    std::string anchors, fill, representative;
    double keep = 0, learning_rate = 0, align = 0, sharpen = 0;
    std::size_t epochs = 0;
    bool no_compare = false, no_memory = false;
};

nlohmann::json to_json(const FitLabelGain& g) {
    return {{"queries", g.queries}, {"full_ndcg5", g.full_ndcg}, {"ndcg5", g.ndcg}, {"standard_error", g.error},
            {"flips", g.flips},     {"strength", g.strength},    {"kept", g.kept}};
}

nlohmann::json to_json(const FitReport& r, const std::string& output) {
    nlohmann::json j{{"model", output},
                     {"recipe",
                      {{"anchors", r.recipe.anchors},
                       {"fill", r.recipe.fill},
                       {"representative", r.recipe.representative},
                       {"keep", r.recipe.budget.keep},
                       {"unit_norm", r.recipe.unit_norm}}},
                     {"documents", r.documents},
                     {"train_queries", r.train_queries},
                     {"validation_queries", r.validation_queries},
                     {"pseudo_queries", r.pseudo_queries},
                     {"unjudged_queries", r.unjudged_queries},
                     {"missing_judgements", r.missing_judgements},
                     {"epochs", r.epochs},
                     {"best_epoch", r.best_epoch},
                     {"resumed", r.resumed},
                     {"full_ndcg5", r.full_ndcg},
                     {"fell_back", r.fell_back},
                     {"seconds",
                      {{"loading", r.seconds_loading},
                       {"bank", r.seconds_bank},
                       {"mining", r.seconds_mining},
                       {"clusters", r.seconds_clusters},
                       {"training", r.seconds_training},
                       {"total", r.seconds_total}}}};
    j["candidates"] = nlohmann::json::array();
    for (const auto& c : r.candidates) {
        j["candidates"].push_back(
            {{"name", c.name}, {"ndcg5", c.ndcg}, {"flips", c.flips}, {"error", c.error}, {"chosen", c.chosen}});
    }
    if (r.memory.queries > 0) {
        j["memory"] = to_json(r.memory);
        j["memory"]["pages"] = r.memory.pages;
    }
    if (r.alignment.queries > 0) {
        j["alignment"] = to_json(r.alignment);
        j["alignment"]["length_power"] = r.alignment.length_power;
    }
    if (!r.settings.empty()) j["settings"] = nlohmann::json::parse(r.settings);
    j["provenance"] = nlohmann::json::parse(r.provenance);
    return j;
}

// `what` is done with the judged queries.
void print(const FitLabelGain& g, const char* what) {
    fmt::print("    {}: ", what);
    if (!g.kept && g.flips == 0) {
        fmt::print("gains nothing; left out\n");
    } else if (!g.kept) {
        fmt::print("changes nDCG@5 by {:+.4f} +- {:.4f}; left out\n", g.ndcg - g.full_ndcg, g.error);
    } else {
        fmt::print("nDCG@5 {:.4f} instead of {:.4f} (+- {:.4f}), {:.2f}% of pairs change their order\n", g.ndcg,
                   g.full_ndcg, g.error, g.flips * 100);
    }
}

void print_labels(const FitReport& r) {
    if (r.alignment.queries == 0) return;
    fmt::print("  {} judged queries, cross-validated on the full index (--align 0 leaves the order to it):\n",
               r.alignment.queries);
    if (r.memory.kept) {
        print(r.memory, fmt::format("{} pages remember what they were asked", r.memory.pages).c_str());
    } else if (r.memory.queries > 0) {
        print(r.memory, "pages that remember what they were asked");
    }
    print(r.alignment, "all pages aligned with them");
}

void print(const FitReport& r, const std::string& output) {
    fmt::print("{}: {} for {}% of the vectors, from {} documents and {} queries ({} for validation)\n", output,
               r.recipe.representative, r.recipe.budget.keep * 100, r.documents, r.train_queries + r.validation_queries,
               r.validation_queries);
    if (r.pseudo_queries > 0)
        fmt::print("  no queries given: {} pseudo-queries drawn from the documents\n", r.pseudo_queries);
    if (r.unjudged_queries > 0)
        fmt::print("  {} queries without judgements: the full index was their teacher\n", r.unjudged_queries);
    if (r.missing_judgements > 0)
        fmt::print("  {} judgements name documents that are not in the file\n", r.missing_judgements);
    if (r.resumed) fmt::print("  continued an interrupted run\n");
    if (r.epochs > 0) fmt::print("  {} epochs, the best was {}\n", r.epochs, r.best_epoch);
    if (!r.candidates.empty()) {
        fmt::print("  validation (full index nDCG@5 {:.4f}):\n", r.full_ndcg);
        for (const auto& c : r.candidates) {
            fmt::print("  {} {:<24} nDCG@5 {:.4f}  flips {:.4f}  score error {:.4f}\n", c.chosen ? '*' : ' ', c.name,
                       c.ndcg, c.flips, c.error);
        }
    }
    if (!r.fell_back.empty()) fmt::print("  {}\n", r.fell_back);
    print_labels(r);
    fmt::print("  {:.2f} s: loading {:.2f}, bank {:.2f}, mining {:.2f}, clusters {:.2f}, training {:.2f}\n",
               r.seconds_total, r.seconds_loading, r.seconds_bank, r.seconds_mining, r.seconds_clusters,
               r.seconds_training);
}

// The bar, and a line for every epoch that outlives it.
Progress with_epochs(const Common& common) {
    Progress bar = progress_bar(common);
    if (common.quiet) return bar;
    return [bar](const ProgressUpdate& update) {
        if (update.phase == "train" && !update.detail.empty()) {
            fmt::print(stderr, "epoch {:>2}/{}  {}\n", update.done, update.total, update.detail);
        } else if (bar) {
            bar(update);
        }
    };
}

void run(FitFlags& o, const CLI::App& command) {
    if (!o.documents.empty()) {
        FitSource source;
        source.documents = o.documents;
        source.queries = o.queries;
        source.qrels = o.qrels;
        o.fit.sources.push_back(std::move(source));
    } else if (!o.queries.empty() || !o.qrels.empty()) {
        fail(ErrorCode::invalid_argument, "fit: expected --docs to go with --queries and --qrels, found none");
    }
    for (const auto& folder : o.data) o.fit.sources.push_back(source_from_folder(folder));
    if (o.fit.sources.empty())
        fail(ErrorCode::invalid_argument, "fit: expected --docs FILE or --data DIR, found neither");
    const auto given = [&](const char* name) { return command.get_option(name)->count() > 0; };
    if (given("--anchors")) o.fit.anchors = o.anchors;
    if (given("--fill")) o.fit.fill = o.fill;
    if (given("--representative")) o.fit.representative = o.representative;
    if (given("--keep")) o.fit.keep = o.keep;
    if (given("--align")) o.fit.align = o.align;
    if (given("--sharpen")) o.fit.sharpen = o.sharpen;
    if (given("--epochs")) o.fit.epochs = o.epochs;
    if (given("--lr")) o.fit.learning_rate = o.learning_rate;
    o.fit.output = o.output;
    o.fit.exclude_queries = o.exclude;
    o.fit.evaluation_documents = o.evaluation;
    o.fit.cache = o.cache;
    o.fit.compare = !o.no_compare;
    o.fit.remember = !o.no_memory;
    o.fit.cluster = cluster();
    o.fit.threads = cluster_threads(o.common.threads);
    const bool leads = o.fit.cluster == nullptr || o.fit.cluster->leads();
    if (leads) o.fit.progress = with_epochs(o.common);
    const FitReport report = fit(o.fit);
    if (!leads) return;
    if (o.common.json) {
        fmt::print("{}\n", to_json(report, o.output).dump(2));
    } else {
        print(report, o.output);
    }
}

}  // namespace

void register_fit(CLI::App& app) {
    auto o = std::make_shared<FitFlags>();
    CLI::App* command = app.add_subcommand("fit", "Learn from queries how to compress: prototypes, probes, network");
    command->add_option("--docs", o->documents, "Documents, a multi-vector file");
    command->add_option("--queries", o->queries, "Queries; without any, pseudo-queries are drawn from the documents");
    command->add_option("--qrels", o->qrels, "Judgements; without any, the full index is the teacher");
    command->add_option("--data", o->data,
                        "A folder with docs, train_queries and train_qrels; DIR:train, DIR:bank or DIR:zero-shot");
    command->add_option("-o,--output", o->output, "The model file to write")->required();
    std::string names;
    for (const auto& [name, summary] : fit_presets()) names += fmt::format("\n    {}: {}", name, summary);
    command->add_option("--preset", o->fit.preset, "What to fit:" + names)->capture_default_str();
    command->add_option("--anchors", o->anchors, "Anchor rule instead of the preset's");
    command->add_option("--fill", o->fill, "Fill rule instead of the preset's");
    command->add_option("--representative", o->representative, "Representative instead of the preset's");
    command->add_option("--keep", o->keep, "Share of vectors to fit for (0.05)");
    command->add_option("--prototypes", o->fit.prototypes, "Prototypes in the bank")->capture_default_str();
    command->add_option("--probes", o->fit.probes, "Most probes kept for fitted representatives");
    command->add_option("--epochs", o->epochs, "Most epochs");
    command->add_option("--lr", o->learning_rate, "Learning rate, at most 1")->check(above_zero(1));
    command->add_option("--seed", o->fit.seed, "Seed of training")->capture_default_str();
    command->add_option("--hold-out", o->fit.hold_out, "Share of documents set aside for evaluation (the paper: 0.3)")
        ->capture_default_str();
    command->add_option("--validation", o->fit.validation, "Share of queries kept for validation")
        ->capture_default_str();
    command->add_option("--exclude-queries", o->exclude,
                        "Evaluation queries (file or list of ids) that must not be used");
    command->add_option("--evaluation-docs", o->evaluation,
                        "Evaluation documents that must not be among the training ones");
    command->add_option("--cache", o->cache, "Folder that keeps mined negatives between runs");
    command->add_flag("--no-labels", o->fit.no_labels, "Ignore judgements: the full index is the teacher");
    command->add_option("--sharpen", o->sharpen,
                        "Lift unusually strong answers by this part of what makes them unusual;\n"
                        "0: aim at the full index alone (0.5 with the default preset)");
    command->add_option("--align", o->align,
                        "Let judgements change the order of at most this share of pairs; 0: of none\n"
                        "(0.005 with the default preset, 0 with the others)");
    command->add_flag("--no-memory", o->no_memory, "Pages do not remember what judged queries asked of them");
    command->add_flag("--unit-norm", o->fit.unit_norm, "Fit for engines that only know cosine");
    command->add_flag("--no-compare", o->no_compare, "Keep the result even where a fixed representative is better");
    command->footer(
        "Examples:\n"
        "  marginmerge fit --docs docs.safetensors --queries log.safetensors --qrels qrels.tsv -o model.safetensors\n"
        "  marginmerge fit --data corpora/a --data corpora/b:bank --preset paper -o paper.safetensors\n"
        "  marginmerge fit --docs docs.safetensors -o model.safetensors        no queries at all\n"
        "A preset that trains continues after a kill when the same command is given again; the others are short.");
    add_common(*command, o->common);
    command->callback([o, command] { run(*o, *command); });
}

}  // namespace marginmerge::cli
