#include "marginmerge/jobs/synth.h"

#include <fmt/core.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
#include "core/fail.h"
#include "usage.h"

namespace marginmerge::cli {

namespace {

struct SynthFlags {
    Common common;
    SynthOptions job;
    std::string output, type = "f16";
};

void print(const SynthReport& r, const SynthFlags& o) {
    if (o.common.json) {
        const nlohmann::json j = {{"output", o.output},
                                  {"kind", o.job.kind},
                                  {"documents", r.documents},
                                  {"queries", r.queries},
                                  {"train_queries", r.train_queries},
                                  {"test_queries", r.test_queries},
                                  {"vectors", r.vectors},
                                  {"dim", r.dim},
                                  {"redundancy", r.redundancy},
                                  {"redundancy_asked", r.redundancy_asked},
                                  {"sample_ndcg", r.sample_ndcg},
                                  {"seconds", r.seconds}};
        fmt::print("{}\n", j.dump(2));
        return;
    }
    fmt::print("{}: {} documents, {} vectors ({:.0f} a document) of {} dimensions\n", o.output, r.documents, r.vectors,
               static_cast<double>(r.vectors) / static_cast<double>(r.documents), r.dim);
    fmt::print("  redundancy  {:.1f} vectors a direction (asked for {:.1f})\n", r.redundancy, r.redundancy_asked);
    fmt::print("  queries     {} ({} train, {} test), nDCG@5 about {:.2f} with every vector kept\n", r.queries,
               r.train_queries, r.test_queries, r.sample_ndcg);
    fmt::print("  time        {:.1f} s\n", r.seconds);
}

}  // namespace

void register_synth(CLI::App& app) {
    auto options = std::make_shared<SynthFlags>();
    CLI::App* command = app.add_subcommand("synth", "Make a corpus with a chosen redundancy");
    std::string kinds;
    for (const SynthKind& kind : synth_kinds()) kinds += (kinds.empty() ? "" : "|") + std::string(kind.name);
    SynthOptions& job = options->job;
    command->add_option("-o,--output", options->output, "Folder to write")->required();
    command->add_option("--kind", job.kind, "Content to imitate: " + kinds)->capture_default_str();
    command->add_option("--docs", job.documents, "Documents")->capture_default_str();
    command->add_option("--queries", job.queries, "Queries")->capture_default_str();
    command->add_option("--vectors", job.vectors, "Mean vectors a document instead of the kind's");
    command->add_option("--redundancy", job.redundancy, "Vectors / effective rank instead of the kind's")
        ->check(above_zero());
    command->add_option("--dim", job.dim, "Dimensions, 16 to 4096")->capture_default_str();
    command->add_option("--difficulty", job.difficulty, "nDCG@5 of the full index to aim at")->capture_default_str();
    command->add_option("--seed", job.seed, "Seed")->capture_default_str();
    command->add_option("--dtype", options->type, "f16 or f32")->capture_default_str();
    command->footer(
        "Writes docs.safetensors, queries.safetensors, qrels.tsv and their train_/test_ parts.\n"
        "Examples:\n"
        "  marginmerge synth -o corpus --kind natural --docs 500 --queries 200\n"
        "  marginmerge synth -o corpus --kind TAT-DQA --docs 50 --queries 50 --seed 7\n"
        "  marginmerge synth -o corpus --vectors 1030 --redundancy 20 --docs 20000 --queries 0");
    add_common(*command, options->common);
    command->callback([options] {
        if (options->type != "f16" && options->type != "f32")
            fail(ErrorCode::invalid_argument, "--dtype: expected f16 or f32, found '{}'", options->type);
        options->job.type = options->type == "f16" ? ScalarType::f16 : ScalarType::f32;
        options->job.output = options->output;
        options->job.threads = options->common.threads;
        print(synthesise(options->job, progress_bar(options->common)), *options);
    });
}

}  // namespace marginmerge::cli
