#include "marginmerge/jobs/bench.h"

#include <fmt/core.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
#include "core/fail.h"

namespace marginmerge::cli {

namespace {

struct BenchFlags {
    Common common;
    BenchOptions job;
    std::string what;
};

nlohmann::json to_json(const BenchReport& report) {
    const MachineLimits& m = report.machine;
    nlohmann::json rows = nlohmann::json::array();
    for (const BenchRow& r : report.rows)
        rows.push_back({{"what", r.what},
                        {"size", r.size},
                        {"threads", r.threads},
                        {"milliseconds", r.milliseconds},
                        {"rate", r.rate},
                        {"unit", r.unit},
                        {"share", r.share},
                        {"limit", r.limit}});
    return {{"machine",
             {{"cpu", m.cpu},
              {"kernel", m.kernel},
              {"cores", m.cores},
              {"fma_gflops", m.fma},
              {"int8_gops", m.int8},
              {"read_gb_per_second", m.read_one},
              {"read_all_threads_gb_per_second", m.read_all}}},
            {"rows", rows},
            {"notes", report.notes}};
}

void print(const BenchReport& report) {
    const MachineLimits& m = report.machine;
    fmt::print("{}, {} cores, kernel {}\n", m.cpu, m.cores, m.kernel);
    fmt::print(
        "one core: FMA {:.1f} GFLOP/s, int8 {:.1f} Gop/s, memory {:.1f} GB/s; all threads: memory {:.1f} GB/s\n\n",
        m.fma, m.int8, m.read_one, m.read_all);
    std::size_t what = 4;
    std::size_t size = 4;
    for (const BenchRow& r : report.rows) {
        what = std::max(what, r.what.size());
        size = std::max(size, r.size.size());
    }
    fmt::print("{:<{}}  {:<{}}  threads          ms              rate  share of\n", "what", what, "size", size);
    for (const BenchRow& r : report.rows) {
        const std::string rate = r.unit.empty() ? "" : fmt::format("{:.1f} {}", r.rate, r.unit);
        std::string share;
        if (r.share > 0)
            share = r.limit.starts_with("x ") ? fmt::format("{:.2f} {}", r.share, r.limit)
                                              : fmt::format("{:.0f}% {}", 100 * r.share, r.limit);
        fmt::print("{:<{}}  {:<{}}  {:>7}  {:>10.4f}  {:>16}  {}\n", r.what, what, r.size, size, r.threads,
                   r.milliseconds, rate, share);
    }
    fmt::print("\n");
    for (const std::string& note : report.notes) fmt::print("note: {}\n", note);
}

void run(const BenchFlags& o) {
    BenchOptions job = o.job;
    job.threads = o.common.threads;
    if (job.dim == 0 || job.tokens == 0 || job.vectors == 0 || job.dim > 4096 || job.tokens > 4096 ||
        job.vectors > 10'000)
        fail(ErrorCode::invalid_argument,
             "bench: expected --dim and --tokens from 1 to 4096 and --vectors from 1 to 10000, found {}, {}, {}",
             job.dim, job.tokens, job.vectors);
    if (!(job.keep > 0 && job.keep <= 1))
        fail(ErrorCode::invalid_argument, "--keep: expected more than 0 and at most 1, found {}", job.keep);
    const Progress progress = progress_bar(o.common);
    const BenchReport report = o.what == "kernels" ? bench_kernels(job, progress)
                               : o.what == "page"  ? bench_page(job, progress)
                                                   : bench_search(job, progress);
    if (o.common.json) {
        fmt::print("{}\n", to_json(report).dump(2));
    } else {
        print(report);
    }
}

}  // namespace

void register_bench(CLI::App& app) {
    auto options = std::make_shared<BenchFlags>();
    CLI::App* command = app.add_subcommand("bench", "How fast this machine runs it, beside what the machine allows");
    command->add_option("WHAT", options->what, "kernels, page (construction by stage) or search")
        ->required()
        ->check(CLI::IsMember({"kernels", "page", "search"}));
    command->add_option("--dim", options->job.dim, "Dimensions of a vector")->capture_default_str();
    command->add_option("--tokens", options->job.tokens, "Tokens of a query")->capture_default_str();
    command->add_option("--vectors", options->job.vectors, "Vectors of a page in searches")->capture_default_str();
    command->add_option("--max-pages", options->job.max_pages, "Largest search")->capture_default_str();
    command->add_option("--keep", options->job.keep, "Share of the vectors kept in constructions")
        ->capture_default_str();
    command->add_option("--seconds", options->job.seconds, "Time for one measurement")->capture_default_str();
    command->footer(
        "MARGINMERGE_KERNEL=SSE4 (for example) forces another instruction set.\n"
        "Examples:\n"
        "  marginmerge bench kernels\n"
        "  marginmerge bench page --json\n"
        "  marginmerge bench search --max-pages 1000000");
    add_common(*command, options->common);
    command->callback([options] { run(*options); });
}

}  // namespace marginmerge::cli
