#include "lab/advise.h"

#include <fmt/core.h>

#include <memory>

#include "lab_commands.h"
#include "usage.h"

namespace marginmerge::cli {

namespace {

struct AdviseFlags {
    Common common;
    lab::AdviseOptions job;
};

void print(const lab::Advice& a, const AdviseFlags& o) {
    if (o.common.json) {
        fmt::print("{}", lab::advice_json(a));
        return;
    }
    fmt::print("{} queries {}, {} documents, {}\n\n", a.queries,
               a.labels ? "with labels" : "without labels (the full index is the judge)", a.documents, a.method);
    fmt::print("{:>6}  {:<5} {:>9}  {:>9}  {:>6}  {:>6}\n", "kept", "code", "KB/page", "of full", "bound", "flips");
    for (std::size_t i = 0; i < a.points.size(); ++i) {
        const auto& p = a.points[i];
        fmt::print("{:>5.1f}%  {:<5} {:>9.2f}  {:>8.1f}%  {:>5.1f}%  {:.4f}  {}\n", 100 * p.keep, to_string(p.code),
                   p.bytes_per_page / 1024, 100 * p.retention.mean, 100 * p.retention.low, p.flips,
                   a.best && *a.best == i ? "<- smallest"
                   : p.passes             ? "passes"
                   : p.tested             ? "fails"
                                          : "");
    }
    for (const auto& note : a.notes) fmt::print("note: {}\n", note);
    if (!a.best) {
        fmt::print("\nno index reaches {:g}% with {:g}% confidence\n", 100 * a.target, 100 * a.confidence);
        return;
    }
    const auto& best = a.points[*a.best];
    fmt::print(
        "\n{:g}% of the vectors as {}: {:.2f} KB a page instead of {:.2f} (F16), nDCG@{} at least {:.1f}% of the full "
        "index's with {:g}% confidence\n",
        100 * best.keep, to_string(best.code), best.bytes_per_page / 1024, a.full_bytes / 1024, o.job.k,
        100 * best.retention.low, 100 * a.confidence);
    const std::string documents = o.job.documents.string(), queries = o.job.queries.string();
    if (best.keep < 1) {
        if (o.job.model.empty() && a.method.starts_with("fit"))
            fmt::print("  marginmerge fit --docs {} --queries {}{} -o model.safetensors\n", documents, queries,
                       o.job.qrels.empty() ? "" : " --qrels " + o.job.qrels.string());
        const std::string model = !o.job.model.empty()          ? " -m " + o.job.model.string()
                                  : a.method.starts_with("fit") ? " -m model.safetensors"
                                                                : "";
        fmt::print("  marginmerge compress {}{} --keep {:g} -o small.safetensors\n", documents, model, best.keep);
    }
    fmt::print("  marginmerge index add index/ {} --code {}\n", best.keep < 1 ? "small.safetensors" : documents,
               to_string(best.code));
}

}  // namespace

void register_advise(CLI::App& app) {
    auto o = std::make_shared<AdviseFlags>();
    CLI::App* command = app.add_subcommand("advise", "The smallest index that keeps the quality you ask for");
    command->add_option("--docs", o->job.documents, "Documents: a multi-vector file")->required();
    command->add_option("--queries", o->job.queries, "Your queries: a multi-vector file")->required();
    command->add_option("--qrels", o->job.qrels, "Relevance; without it the full index is the judge");
    command->add_option("--target", o->job.target, "Share of the full index's nDCG to keep")
        ->capture_default_str()
        ->check(above_zero(1));
    command->add_option("--confidence", o->job.confidence, "That the target is met")->capture_default_str();
    command->add_option("-m,--model", o->job.model,
                        "A model fitted on other queries; default: fitted here, on the other half of the queries");
    command
        ->add_option("--preset", o->job.preset,
                     "Preset of fit; auto: default with 40 queries or more, fixed (no training) below")
        ->capture_default_str();
    command->add_option("--keep", o->job.keeps, "Shares to try")
        ->delimiter(',')
        ->capture_default_str()
        ->check(above_zero(1));
    command->add_option("--code", o->job.codes, "Storage codes to try: f32,f16,int8,bits")
        ->delimiter(',')
        ->capture_default_str();
    command->add_option("-k", o->job.k, "Cut of nDCG")->capture_default_str()->check(at_least_one);
    command->add_option("--sample", o->job.sample, "Most documents to look at; 0: all")->capture_default_str();
    command->add_option("--seed", o->job.seed, "Seed")->capture_default_str();
    command->add_option("-o,--output", o->job.output, "Folder for advice.json, advice.csv and frontier.svg");
    command->footer(
        "Examples:\n"
        "  marginmerge advise --docs docs.safetensors --queries log.safetensors --target 0.98\n"
        "  marginmerge advise --docs docs.safetensors --queries q.safetensors --qrels qrels.tsv --target 0.95 --code "
        "f16,int8 -o advice");
    add_common(*command, o->common);
    command->callback([o] {
        o->job.threads = o->common.threads;
        o->job.progress = progress_bar(o->common);
        print(lab::advise(o->job), *o);
    });
}

}  // namespace marginmerge::cli
