#include "marginmerge/jobs/export.h"

#include <fmt/core.h>

#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
#include "core/fail.h"

namespace marginmerge::cli {

namespace {

struct ExportFlags {
    Common common;
    ExportOptions job;
    std::string index, output, queries;
    std::vector<std::string> headers;
    std::size_t batch_mb = 8;
};

// "Name: value", or "@FILE" for a file of such lines, so that a key need not stand on the command line.
std::vector<std::string> read_headers(const std::vector<std::string>& given) {
    std::vector<std::string> headers;
    for (const auto& text : given) {
        if (text.empty() || text[0] != '@') {
            headers.push_back(text);
            continue;
        }
        std::ifstream in(text.substr(1));
        if (!in) fail(ErrorCode::not_found, "--header: expected a readable file, found '{}'", text.substr(1));
        for (std::string line; std::getline(in, line);) {
            while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
            if (!line.empty()) headers.push_back(line);
        }
    }
    return headers;
}

void print_json(const ExportReport& r) {
    nlohmann::ordered_json out = {{"target", r.target},   {"output", r.output},  {"pages", r.pages},
                                  {"vectors", r.vectors}, {"dimensions", r.dim}, {"bytes", r.bytes},
                                  {"seconds", r.seconds}, {"query", r.query_id}, {"uploaded", r.uploaded}};
    if (r.uploaded) {
        out["resumed_pages"] = r.resumed_pages;
        out["requests"] = r.requests;
        out["retried"] = r.retried;
    }
    if (r.unit_norm)
        out["unit_norm"] = {{"scaled", r.unit_norm->scaled},
                            {"queries", r.unit_norm->queries},
                            {"first_changed", r.unit_norm->first_changed},
                            {"list_changed", r.unit_norm->list_changed},
                            {"overlap", r.unit_norm->overlap}};
    out["notes"] = r.notes;
    fmt::print("{}\n", out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

void print_text(const ExportReport& r) {
    const double megabytes = static_cast<double>(r.bytes) / 1e6;
    fmt::print("{}: {} pages, {} vectors, {} dimensions, {:.1f} MB {} in {:.2f} s\n", r.output, r.pages, r.vectors,
               r.dim, megabytes, r.uploaded ? "sent" : "written", r.seconds);
    if (r.uploaded)
        fmt::print("  {} requests, {} sent again, {} pages were there already\n", r.requests, r.retried,
                   r.resumed_pages);
    if (r.unit_norm) {
        fmt::print("  unit norms: {} vectors scaled", r.unit_norm->scaled);
        if (r.unit_norm->queries > 0)
            fmt::print("; of {} queries {} get another best page, {} another top 10; {:.1f}% of the top 10 stay",
                       r.unit_norm->queries, r.unit_norm->first_changed, r.unit_norm->list_changed,
                       100 * r.unit_norm->overlap);
        else
            fmt::print("; what that costs is unknown without queries (--queries)");
        fmt::print("\n");
    }
    fmt::print("  {}/README.md says how to {}ask it\n", r.output, r.uploaded ? "" : "load and ");
}

}  // namespace

void register_export(CLI::App& app) {
    auto o = std::make_shared<ExportFlags>();
    CLI::App* command = app.add_subcommand("export", "An index in the form another engine loads, or straight into it");
    command->add_option("INDEX", o->index, "An index folder or any multi-vector file")->required();
    std::vector<std::string> names;
    std::string list, uploads;
    for (const auto& target : export_target_list()) {
        names.push_back(target.name);
        list += fmt::format("  {:<14} {}\n", target.name, target.summary);
        if (target.uploads) uploads += (uploads.empty() ? "" : ", ") + target.name;
    }
    command->add_option("--to", o->job.target, "The engine; see below")->required()->check(CLI::IsMember(names));
    command->add_option("-o,--output", o->output, "Folder to write: settings, data, loader, example query, README")
        ->required();
    command->add_option("--name", o->job.name, "Of the table, collection or class")->capture_default_str();
    command->add_option("--queries", o->queries,
                        "Multi-vector file that gives the example query; its queries also "
                        "measure what --unit-norm costs");
    command->add_option("--query", o->job.query, "Id of the example query; without it the first");
    command->add_flag("--ann", o->job.ann,
                      "The engine's approximate index instead of an exact scan (lancedb, vectorchord, qdrant)");
    command->add_flag("--unit-norm", o->job.unit_norm,
                      "Scale every vector to unit norm, for engines that only know "
                      "cosine; prints what that changes");
    command->add_option("--url", o->job.url, "Upload over HTTP instead of writing data files");
    command->add_option("--header", o->headers, "'Name: value' for every request, or @FILE with such lines; repeat");
    command->add_flag("--append", o->job.append, "Add to a table that already holds rows");
    command->add_option("--batch-mb", o->batch_mb, "Megabytes of a request")
        ->check(CLI::Range(1, 512))
        ->capture_default_str();
    command->add_option("--connections", o->job.connections, "Requests under way at once")
        ->check(CLI::Range(1, 64))
        ->capture_default_str();
    command->add_option("--retries", o->job.retries, "Times a request is sent again, pausing longer each time")
        ->check(CLI::Range(0, 100))
        ->capture_default_str();
    command->add_option("--timeout", o->job.timeout, "Seconds to wait for an answer")->capture_default_str();
    command->footer("Targets (--to):\n" + list + "Uploads (--url): " + (uploads.empty() ? "none" : uploads) +
                    ". An upload that was interrupted goes on where it stopped when\n"
                    "started again with the same folder.\n"
                    "Examples:\n"
                    "  marginmerge export index.safetensors --to parquet -o out/\n"
                    "  marginmerge export pages/ --to qdrant --url http://localhost:6333 -o out/\n"
                    "  marginmerge export pages/ --to lancedb --unit-norm --queries queries.safetensors -o out/");
    add_common(*command, o->common);
    command->callback([o] {
        o->job.index = o->index;
        o->job.output = o->output;
        o->job.queries = o->queries;
        o->job.headers = read_headers(o->headers);
        o->job.batch_bytes = o->batch_mb << 20;
        o->job.threads = o->common.threads;
        const ExportReport report = export_index(o->job, progress_bar(o->common));
        if (o->common.json)
            print_json(report);
        else
            print_text(report);
        if (o->common.quiet) return;
        for (const auto& note : report.notes) fmt::print(stderr, "note: {}\n", note);
    });
}

}  // namespace marginmerge::cli
