#include "marginmerge/jobs/evaluate.h"

#include <fmt/core.h>

#include <memory>

#include "cluster.h"
#include "command.h"
#include "core/fail.h"
#include "io/atomic_file.h"
#include "io/output_path.h"
#include "search_flags.h"
#include "usage.h"

namespace marginmerge::cli {

namespace {

void print_row(const std::string& name, double ndcg, const std::string& rest, std::size_t width) {
    fmt::print("{:<{}}  {:.4f}  {}\n", name, width, ndcg, rest);
}

double per_page(std::uint64_t total, std::size_t pages) {
    return pages > 0 ? static_cast<double>(total) / static_cast<double>(pages) : 0;
}

void print_report(const EvaluateReport& r) {
    std::size_t width = 5;
    for (const auto& f : r.indexes) width = std::max(width, f.name.size());
    fmt::print("{} queries{}, {} pages, {} kernels, {} threads\n\n", r.queries,
               r.labels ? "" : fmt::format(" without labels (the full index's first {} count as relevant)", r.top),
               r.full.pages, r.kernel, r.threads);
    fmt::print(
        "{:<{}}  nDCG@{:<2} of full  difference [95%]              flips [95%]                KB/page   kept  code  "
        "ms\n",
        "index", width, r.k);
    print_row("full", r.full_quality.ndcg,
              fmt::format("{:>6.1f}%  {:<29} {:<26} {:>7.2f} {:>5.1f}%  {:<4}  {:.2f}", 100.0, "", "0",
                          per_page(r.full.vector_bytes, r.full.pages) / 1024, 100.0, to_string(r.full.code),
                          r.full_search_ms),
              width);
    for (const auto& f : r.indexes) {
        const double kept = f.stats.source_vectors > 0 ? 100 * static_cast<double>(f.stats.vectors) /
                                                             static_cast<double>(f.stats.source_vectors)
                                                       : 0;
        print_row(f.name, f.quality.ndcg,
                  fmt::format("{:>6.1f}%  {:<29} {:<26} {:>7.2f} {:>5.1f}%  {:<4}  {:.2f}", 100 * f.retention,
                              fmt::format("{:+.4f} [{:+.4f}, {:+.4f}]{}", f.ndcg_difference.mean, f.ndcg_difference.low,
                                          f.ndcg_difference.high, f.ndcg_difference.supported ? " *" : ""),
                              fmt::format("{:.4f} [{:.4f}, {:.4f}]", f.fidelity.flip_rate(), f.flips.low, f.flips.high),
                              per_page(f.stats.vector_bytes, f.stats.pages) / 1024, kept, to_string(f.stats.code),
                              f.search_ms),
                  width);
    }
    fmt::print("\n{:<{}}  recall@1  @5      @10     MRR     reversals  margin err  same first  overlap@{}\n", "", width,
               r.top);
    const Quality& q = r.full_quality;
    fmt::print("{:<{}}  {:.4f}    {:.4f}  {:.4f}  {:.4f}\n", "full", width, q.recall_1, q.recall_5, q.recall_10,
               q.reciprocal_rank);
    for (const auto& f : r.indexes)
        fmt::print("{:<{}}  {:.4f}    {:.4f}  {:.4f}  {:.4f}  {:.4f}     {:.4f}      {:>5.1f}%      {:.1f}%\n", f.name,
                   width, f.quality.recall_1, f.quality.recall_5, f.quality.recall_10, f.quality.reciprocal_rank,
                   f.fidelity.reversal_rate(), f.fidelity.mean_margin_error(), 100 * f.overlap_1, 100 * f.overlap_top);
    fmt::print("\n* supported: the interval excludes zero and the difference is at least 0.005\n");
}

void print_notes(const EvaluateReport& r) {
    if (r.skipped > 0) fmt::print(stderr, "note: {} queries have no relevant page and were left out\n", r.skipped);
    if (r.unknown_queries > 0)
        fmt::print(stderr, "note: {} judged queries are not in the query file\n", r.unknown_queries);
    for (const auto& f : r.indexes) {
        if (f.missing > 0)
            fmt::print(stderr, "note: {} lacks {} of the full documents; they count as not found\n", f.name, f.missing);
        if (f.search_recall < 1)
            fmt::print(stderr, "note: {}: the first pass kept {:.2f}% of the exact top {}\n", f.name,
                       100 * f.search_recall, r.top);
    }
}

}  // namespace

void register_evaluate(CLI::App& app) {
    struct Options {
        Common common;
        EvaluateOptions job;
        SearchFlags flags;
        std::vector<std::string> indexes;
        std::string report, per_query;
    };
    auto o = std::make_shared<Options>();
    CLI::App* command =
        app.add_subcommand("evaluate", "Quality, flips, bytes and speed of an index against the full documents");
    command->add_option("--full", o->job.full, "Documents before compression")->required();
    command->add_option("--index", o->indexes, "Index to judge; repeat to compare several")->required();
    command->add_option("--queries", o->job.queries, "Multi-vector file of queries")->required();
    command->add_option("--qrels", o->job.qrels, "Relevance: BEIR, TREC or query<TAB>doc");
    command->add_flag("--no-labels", o->job.no_labels, "Judge against the full index alone");
    command->add_option("-k", o->job.k, "Cut of nDCG")->capture_default_str()->check(at_least_one);
    command->add_option("--top", o->job.top, "Cut of the overlap; what --no-labels takes as relevant")
        ->capture_default_str()
        ->check(at_least_one);
    command->add_option("--report", o->report, "Write an HTML report here");
    command->add_option("--per-query", o->per_query, "Write figures for each query here (.csv or .json)");
    command->add_option("--runs", o->job.runs,
                        "Write TREC runs of the full documents and every index into this folder");
    command->add_option("--timed-queries", o->job.timed_queries, "Queries searched one by one for the time; 0: none")
        ->capture_default_str();
    add_first_pass_flags(*command, o->flags);
    command->footer(
        "Examples:\n"
        "  marginmerge evaluate --full docs.safetensors --index small.safetensors --queries q.safetensors --qrels "
        "qrels.tsv\n"
        "  marginmerge evaluate --full docs.safetensors --index a.safetensors --index b/ --queries q.safetensors "
        "--no-labels "
        "--report report.html");
    add_common(*command, o->common);
    command->callback([o] {
        const bool csv = o->per_query.ends_with(".csv");
        if (!o->per_query.empty() && !csv && !o->per_query.ends_with(".json"))
            fail(ErrorCode::invalid_argument, "--per-query: expected a name ending in .csv or .json, found '{}'",
                 o->per_query);
        if (!o->job.no_labels && o->job.qrels.empty())
            fail(ErrorCode::invalid_argument, "--qrels: expected relevance judgements; --no-labels does without");
        o->job.indexes.assign(o->indexes.begin(), o->indexes.end());
        std::vector<std::filesystem::path> inputs = o->job.indexes;
        inputs.insert(inputs.end(), {o->job.full, o->job.queries, o->job.qrels});
        if (!o->report.empty()) check_output(o->report, inputs);
        if (!o->per_query.empty()) check_output(o->per_query, inputs);
        o->job.search = to_options(o->flags);
        o->job.cluster = cluster();
        o->job.threads = cluster_threads(o->common.threads);
        o->job.progress = progress_bar(o->common);
        const EvaluateReport report = evaluate_job(o->job);
        if (o->job.cluster != nullptr && !o->job.cluster->leads()) return;
        if (!o->report.empty()) write_text_file(o->report, evaluate_html(report));
        if (!o->per_query.empty()) write_text_file(o->per_query, csv ? evaluate_csv(report) : evaluate_json(report));
        if (o->common.json)
            fmt::print("{}", evaluate_json(report));
        else
            print_report(report);
        if (!o->common.quiet) print_notes(report);
    });
}

}  // namespace marginmerge::cli
