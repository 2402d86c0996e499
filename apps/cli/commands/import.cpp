#include <fmt/core.h>

#include <charconv>
#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
#include "core/fail.h"
#include "marginmerge/jobs/import.h"

namespace marginmerge::cli {

namespace {

struct ImportFlags {
    Common common;
    ImportOptions job;
    std::vector<std::string> sources;
    std::string output, dtype = "f16", offsets, ids, grid, qrels_out;
};

ScalarType scalar_type(const std::string& name) {
    return name == "f32" ? ScalarType::f32 : name == "bf16" ? ScalarType::bf16 : ScalarType::f16;
}

// "32x24": columns and rows.
PatchGrid parse_grid(const std::string& text) {
    PatchGrid grid;
    const char* end = text.data() + text.size();
    const auto first = std::from_chars(text.data(), end, grid.columns);
    const bool cross = first.ec == std::errc() && first.ptr != end && (*first.ptr == 'x' || *first.ptr == 'X');
    const auto second = cross ? std::from_chars(first.ptr + 1, end, grid.rows) : first;
    if (!cross || second.ec != std::errc() || second.ptr != end || !grid.known() || grid.columns > 65536 ||
        grid.rows > 65536)
        fail(ErrorCode::invalid_argument, "--grid: expected COLUMNSxROWS such as 32x32, found '{}'", text);
    return grid;
}

std::string size_text(std::uint64_t bytes) {
    const auto b = static_cast<double>(bytes);
    return b >= 1e9   ? fmt::format("{:.2f} GB", b / 1e9)
           : b >= 1e6 ? fmt::format("{:.1f} MB", b / 1e6)
                      : fmt::format("{:.1f} KB", b / 1e3);
}

void print_json(const ImportFlags& o, const ImportReport& r) {
    nlohmann::ordered_json out;
    out["output"] = o.output;
    out["documents"] = r.documents;
    out["vectors"] = r.vectors;
    out["dimensions"] = r.dim;
    out["dtype"] = to_string(r.type);
    out["zero_rows_dropped"] = r.zero_rows_dropped;
    out["not_unit"] = r.not_unit;
    out["normalised"] = r.normalised ? r.not_unit : 0;
    out["empty_dropped"] = r.empty_dropped;
    out["grids_dropped"] = r.grids_dropped;
    out["bytes"] = r.bytes;
    if (r.judged_queries > 0) out["judged_queries"] = r.judged_queries;
    for (const auto& s : r.sources)
        out["sources"].push_back({{"path", s.path}, {"form", s.form}, {"documents", s.documents}});
    fmt::print("{}\n", out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

void print_text(const ImportFlags& o, const ImportReport& r) {
    fmt::print("{}: {} documents, {} vectors, {} dimensions, {}, {}\n", o.output, r.documents, r.vectors, r.dim,
               to_string(r.type), size_text(r.bytes));
    constexpr std::size_t most = 10;
    for (std::size_t i = 0; i < std::min(most, r.sources.size()); ++i)
        fmt::print("  {}: {} ({})\n", r.sources[i].path, r.sources[i].documents, r.sources[i].form);
    if (r.sources.size() > most) fmt::print("  and {} sources more\n", r.sources.size() - most);
    if (r.zero_rows_dropped > 0) fmt::print("  dropped {} zero rows (padding)\n", r.zero_rows_dropped);
    if (r.empty_dropped > 0) fmt::print("  left out {} documents without a vector\n", r.empty_dropped);
    if (r.judged_queries > 0) fmt::print("  {}: judgements of {} queries\n", o.qrels_out, r.judged_queries);
}

void print_warnings(const ImportReport& r) {
    if (r.not_unit > 0)
        fmt::print(stderr, "marginmerge: warning: {} of {} vectors were not of unit norm{}\n", r.not_unit, r.vectors,
                   r.normalised ? " and have been normalised (--keep-norms leaves them)" : "; left as they are");
    if (r.grids_dropped > 0)
        fmt::print(stderr, "marginmerge: warning: {} documents lost their grid because zero rows lay inside it\n",
                   r.grids_dropped);
}

}  // namespace

void register_import(CLI::App& app) {
    auto o = std::make_shared<ImportFlags>();
    CLI::App* command = app.add_subcommand("import", "Any supported source to a multi-vector file");
    command
        ->add_option("SRC", o->sources,
                     "Files or cache folders: safetensors, .npy, .npz, torch .pt, Parquet, Arrow IPC, JSON "
                     "lines")
        ->required();
    command->add_option("-o,--output", o->output, "The multi-vector file to write")->required();
    command->add_option("--dtype", o->dtype, "How vectors are stored")
        ->check(CLI::IsMember({"f16", "f32", "bf16"}))
        ->capture_default_str();
    command->add_flag("--keep-norms", o->job.keep_norms, "Do not normalise vectors that are not of unit norm");
    command->add_flag("--queries", o->job.queries, "Of a cache folder, take the queries (qs.pt)");
    command->add_flag("--drop-empty", o->job.drop_empty, "Leave out documents without a vector instead of failing");
    command->add_option("--offsets", o->offsets, ".npy with offsets or lengths of the documents in a 2-D array");
    command->add_option("--ids", o->ids, "Ids of all documents in order: text lines, a JSON list or .npy");
    command->add_option("--grid", o->grid, "Patch grid COLUMNSxROWS of documents whose source gives none");
    command->add_option("--qrels-out", o->qrels_out, "Write the judgements in a cache folder's meta.json here");
    command->footer(
        "Examples:\n"
        "  marginmerge import pages.pt -o docs.safetensors\n"
        "  marginmerge import vectors.npy --offsets offsets.npy --ids ids.txt -o docs.safetensors\n"
        "  marginmerge import cache/ --queries --qrels-out qrels.tsv -o queries.safetensors\n"
        "  marginmerge import page-*.npy --grid 32x32 -o docs.safetensors");
    add_common(*command, o->common);
    command->callback([o] {
        o->job.sources.assign(o->sources.begin(), o->sources.end());
        o->job.output = o->output;
        o->job.type = scalar_type(o->dtype);
        o->job.offsets = o->offsets;
        o->job.ids = o->ids;
        o->job.qrels_out = o->qrels_out;
        if (!o->grid.empty()) o->job.grid = parse_grid(o->grid);
        const ImportReport report = import_vectors(o->job, progress_bar(o->common));
        if (!o->common.quiet) print_warnings(report);
        if (o->common.json) {
            print_json(*o, report);
        } else {
            print_text(*o, report);
        }
    });
}

}  // namespace marginmerge::cli
