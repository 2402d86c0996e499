#include "lab/lab.h"

#include <fmt/core.h>

#include <memory>

#include "lab/resources.h"
#include "lab_commands.h"

namespace marginmerge::cli {

namespace {

struct LabFlags {
    Common common;
    lab::LabOptions job;
    std::uint64_t seed = 42;
};

void print(const lab::LabReport& r, const LabFlags& o) {
    if (o.common.json) {
        nlohmann::json j = {{"report", r.html.string()},
                            {"datasets", r.datasets},
                            {"computed", r.computed},
                            {"reused", r.reused},
                            {"seconds", r.seconds}};
        for (const auto& s : r.studies)
            for (const auto& f : s.findings) {
                auto one = f.to_json();
                one["study"] = s.id;
                j["findings"].push_back(std::move(one));
            }
        fmt::print("{}\n", j.dump(2));
        return;
    }
    for (const auto& s : r.studies) {
        fmt::print("{}\n", s.title);
        for (const auto& f : s.findings) fmt::print("  {:<14} {}\n", to_string(f.verdict), f.statement);
    }
    fmt::print("\n{} runs computed, {} taken from the store, {:.0f} s; see {}\n", r.computed, r.reused, r.seconds,
               r.html.string());
}

}  // namespace

void register_lab(CLI::App& app) {
    auto o = std::make_shared<LabFlags>();
    CLI::App* command = app.add_subcommand("lab", "The paper's tables and figures on any data");
    std::string studies;
    for (const auto& name : lab::study_names()) studies += (studies.empty() ? "" : "|") + name;
    command->add_option("studies", o->job.studies, "all, study files (.json), or: " + studies)->required();
    command->add_option("-o,--output", o->job.output, "Folder for tables, figures and report.html")->required();
    command->add_flag("--quick", o->job.quick, "Small data and few seeds: minutes instead of an hour");
    command->add_option("--data", o->job.data,
                        "Folder (docs.safetensors … or ps.pt, qs.pt, meta.json), folder:train|bank|zero-shot, or a "
                        "dataset file; repeat. "
                        "Default: synthetic families");
    command->add_flag("--synthetic", o->job.synthetic, "The synthetic families beside --data");
    command->add_option("--docs", o->job.documents, "A dataset file by file: documents");
    command->add_option("--queries", o->job.queries, "… queries");
    command->add_option("--qrels", o->job.qrels, "… relevance; without it the full index is the judge");
    command->add_option("--encoder", o->job.encoder,
                        "Encoder of all --data: they are then fitted together, as in the paper");
    CLI::Option* seed = command->add_option("--seed", o->seed, "First seed (default: the studies' own, 42, 43, 44)");
    command->add_option("--store", o->job.store, "Folder of finished runs (default: OUTPUT/store)");
    command->add_flag("--any-build", o->job.any_build, "Take over stored runs of other builds of this version");
    command->footer(
        "A run that was stopped continues where it was. Examples:\n"
        "  marginmerge lab all --quick -o lab\n"
        "  marginmerge lab matched factorial --data caches/ArxivQA --data caches/DocVQA:bank --encoder colqwen2.5 -o "
        "lab\n"
        "  marginmerge lab my_study.json --docs docs.safetensors --queries log.safetensors -o lab");
    add_common(*command, o->common);
    command->callback([o, seed] {
        if (seed->count() > 0) o->job.seed = o->seed;
        o->job.threads = o->common.threads;
        o->job.progress = progress_bar(o->common);
        print(lab::run_lab(o->job), *o);
    });
}

}  // namespace marginmerge::cli
