#include "lab/output.h"

#include <fmt/core.h>

#include "core/fail.h"
#include "io/atomic_file.h"
#include "io/folders.h"
#include "kernels/maxsim.h"
#include "lab/aggregate.h"
#include "lab/run_store.h"
#include "lab/statistics.h"
#include "marginmerge/core/version.h"

namespace marginmerge::lab {

namespace fs = std::filesystem;

namespace {

std::string runs_csv(const std::string& study, const std::vector<RunRecord>& runs) {
    std::string out =
        "study,dataset,method,keep,vectors_fixed,code,seed,left_out,queries,ndcg5,full_ndcg5,retention,flips,reversals,"
        "margin_error,"
        "winner_coverage,vectors_per_page,bytes_per_page,skipped,run\n";
    for (const auto& r : runs) {
        const RunResult& x = *r.result;
        const double ndcg = mean(x.ndcg), full = mean(x.full);
        const auto coverage = x.extra.find("winner_coverage");
        out += fmt::format("{},{},{},{:g},{},{},{},{},{},", csv_field(study), csv_field(r.dataset), csv_field(r.method),
                           r.settings.keep, r.settings.vectors, to_string(r.settings.code), r.settings.seed,
                           r.settings.leave_out ? 1 : 0, x.ndcg.size());
        out += fmt::format("{:.6f},{:.6f},{:.6f},{:.6f},{:.6f},{:.6f},{},{:.3f},{:.1f},{},{}\n", ndcg, full,
                           full > 0 ? ndcg / full : 0, rate(x.flips, x.pairs), rate(x.reversals, x.pairs),
                           x.margin_error, coverage == x.extra.end() ? "" : fmt::format("{:.6f}", coverage->second),
                           x.vectors, x.bytes, csv_field(x.skipped), r.key);
    }
    return out;
}

nlohmann::json runs_json(const std::vector<RunRecord>& runs) {
    auto list = nlohmann::json::array();
    for (const auto& r : runs) {
        nlohmann::json one = {{"dataset", r.dataset},
                              {"method", r.method},
                              {"keep", r.settings.keep},
                              {"vectors_fixed", r.settings.vectors},
                              {"code", to_string(r.settings.code)},
                              {"seed", r.settings.seed},
                              {"subsample", r.settings.subsample},
                              {"trained_for_keep", r.settings.train_keep},
                              {"left_out", r.settings.leave_out},
                              {"run", r.key}};
        one["result"] = r.result->to_json();
        list.push_back(std::move(one));
    }
    return list;
}

std::string interval_text(const Finding& f) {
    if (f.verdict == Finding::Verdict::untested) return "";
    if (f.interval.low == f.interval.high) return fmt::format("{:.4f}", f.interval.mean);
    return fmt::format("{:+.4f} [{:+.4f}, {:+.4f}]", f.interval.mean, f.interval.low, f.interval.high);
}

}  // namespace

nlohmann::json provenance(const Workbench& bench, bool quick) {
    auto datasets = nlohmann::json::array();
    for (const auto& d : bench.datasets()) {
        nlohmann::json one = {{"name", d->name()},
                              {"fingerprint", d->fingerprint},
                              {"documents", d->documents.size()},
                              {"vectors", d->documents.total_vectors()},
                              {"dim", d->documents.dim()},
                              {"train_queries", d->train.size()},
                              {"test_queries", d->test.size()},
                              {"split", d->split},
                              {"labels", d->labels},
                              {"encoder", d->source.encoder},
                              {"content", d->source.content},
                              {"redundancy", d->redundancy},
                              {"full_ndcg5", mean(d->full_ndcg)}};
        constexpr std::array roles = {"train", "bank", "zero-shot"};
        one["role"] = roles[static_cast<std::size_t>(d->source.role)];
        if (!d->source.synthetic.is_null()) one["synthetic"] = d->source.synthetic;
        datasets.push_back(std::move(one));
    }
    return {{"tool", std::string("marginmerge ") + version()},
            {"build", build_hash()},
            {"kernel", kernel_name()},
            {"quick", quick},
            {"datasets", datasets}};
}

void write_study(const fs::path& folder, const StudyOutput& study, const std::vector<RunRecord>& runs,
                 const nlohmann::json& provenance) {
    make_folder(folder);
    write_text_file(folder / "runs.csv", runs_csv(study.id, runs));
    auto findings = nlohmann::json::array();
    for (const auto& f : study.findings) findings.push_back(f.to_json());
    const nlohmann::json all = {{"study", study.id},      {"title", study.title}, {"provenance", provenance},
                                {"findings", findings},   {"notes", study.notes}, {"data", study.data},
                                {"runs", runs_json(runs)}};
    write_text_file(folder / "study.json", all.dump(1) + "\n");
    for (const auto& t : study.tables) {
        write_text_file(folder / (t.id + ".md"), to_markdown(t));
        write_text_file(folder / (t.id + ".tex"), to_latex(t));
        write_text_file(folder / (t.id + ".csv"), to_csv(t));
    }
    for (const auto& f : study.figures) write_text_file(folder / (f.id + ".svg"), f.svg);
    for (const auto& [name, text] : study.files) write_text_file(folder / name, text);
}

std::string findings_csv(const std::vector<StudyOutput>& studies) {
    std::string out = "study,id,verdict,mean,low,high,quantity,statement,note\n";
    for (const auto& s : studies)
        for (const auto& f : s.findings)
            out += fmt::format("{},{},{},{:.6f},{:.6f},{:.6f},{},{},{}\n", s.id, f.id, to_string(f.verdict),
                               f.interval.mean, f.interval.low, f.interval.high, csv_field(f.quantity),
                               csv_field(f.statement), csv_field(f.note));
    return out;
}

std::string findings_markdown(const std::vector<StudyOutput>& studies) {
    std::string out = "| study | finding | verdict | interval | quantity |\n|---|---|---|---|---|\n";
    for (const auto& s : studies)
        for (const auto& f : s.findings)
            out += fmt::format("| {} | {} | {} | {} | {}{} |\n", s.id, f.statement, to_string(f.verdict),
                               interval_text(f), f.quantity, f.note.empty() ? "" : "; " + f.note);
    return out;
}

}  // namespace marginmerge::lab
