#include "marginmerge/jobs/search.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>

#include "command.h"
#include "io/output_path.h"
#include "search_flags.h"
#include "usage.h"

namespace marginmerge::cli {

void register_search(CLI::App& app) {
    struct Options {
        Common common;
        SearchJobOptions job;
        SearchFlags flags;
        std::size_t k = 10;
        double keep = 1;
        bool full = false;
        std::string output;
    };
    auto o = std::make_shared<Options>();
    CLI::App* command = app.add_subcommand("search", "The best pages for every query, by exact MaxSim");
    command->add_option("INDEX", o->job.index, "An index folder or any multi-vector file")->required();
    command->add_option("--queries", o->job.queries, "Multi-vector file of queries")->required();
    command->add_option("-k", o->k, "Results a query; may exceed the number of pages")
        ->capture_default_str()
        ->check(at_least_one);
    command->add_option("-o,--output", o->output, "Write the results here instead of printing them");
    command->add_option("--filter", o->flags.filters,
                        "Only pages whose metadata pass, e.g. 'year>=2020 and source=a.pdf'; repeat to narrow");
    add_first_pass_flags(*command, o->flags);
    command->add_flag("--recall", o->job.measure_recall, "Search exactly as well and say what the first pass lost");
    command->add_option("--keep", o->keep, "Use only the first vectors of each page: this share of the original count")
        ->capture_default_str();
    command->add_flag("--full", o->full, "Score with the full vectors the index keeps");
    command->footer(
        "Examples:\n"
        "  marginmerge search index.safetensors --queries queries.safetensors -k 10 -o results.run\n"
        "  marginmerge search pages/ --queries queries.safetensors --filter 'year>=2020' --json\n"
        "Results are a TREC run (query Q0 page rank score tag); --json gives one JSON document.");
    add_common(*command, o->common);
    command->callback([o] {
        o->job.search = to_options(o->flags);
        o->job.search.k = o->k;
        o->job.search.keep = o->keep;
        o->job.search.full = o->full;
        o->job.search.threads = o->common.threads;
        if (!o->output.empty()) check_output(o->output, {o->job.index, o->job.queries});
        const SearchJobReport report = search_job(o->job);
        const std::string text = o->common.json ? search_json(report) : trec_run_text(report);
        if (o->output.empty())
            std::fwrite(text.data(), 1, text.size(), stdout);
        else
            write_results(o->output, text);
        if (o->common.quiet) return;
        const bool nothing =
            std::all_of(report.hits.begin(), report.hits.end(), [](const auto& h) { return h.empty(); });
        if (nothing && !o->job.search.filter.empty() && report.index.pages > 0)
            fmt::print(stderr, "marginmerge: no page passes the filter\n");
        const auto n = static_cast<double>(report.queries.size());
        fmt::print(stderr, "{} queries over {} pages ({} vectors, {}): {:.3f} ms a query, {} kernels{}\n",
                   report.queries.size(), report.index.pages, report.index.vectors, to_string(report.index.code),
                   n > 0 ? 1e3 * report.seconds / n : 0, report.kernel,
                   report.recall
                       ? fmt::format("; the first pass kept {:.2f}% of the exact top {}", 100 * *report.recall, o->k)
                       : "");
    });
}

}  // namespace marginmerge::cli
