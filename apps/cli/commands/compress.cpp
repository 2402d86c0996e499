#include "marginmerge/jobs/compress.h"

#include <fmt/core.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cluster.h"
#include "command.h"
#include "core/fail.h"
#include "jobs/recipe_json.h"
#include "recipe_options.h"

namespace marginmerge::cli {

namespace {

struct CompressFlags {
    Common common;
    CompressOptions job;
    std::vector<std::string> inputs;
    std::string model, output, type = "f16", shard;
    bool join = false;
};

Shard parse_shard(const std::string& text) {
    Shard shard;
    char rest = 0;
    unsigned long index = 0, count = 0;
    if (std::sscanf(text.c_str(), "%lu/%lu%c", &index, &count, &rest) != 2)
        fail(ErrorCode::invalid_argument, "--shard: expected I/N, for example 1/4, found '{}'", text);
    shard.index = index;
    shard.count = count;
    return shard;
}

nlohmann::json to_json(const CompressReport& r, const std::string& output) {
    return {{"output", output},
            {"pages", r.pages},
            {"resumed_pages", r.resumed_pages},
            {"vectors_in", r.vectors_in},
            {"vectors_out", r.vectors_out},
            {"bytes_in", r.bytes_in},
            {"bytes_out", r.bytes_out},
            {"seconds", r.seconds},
            {"pages_per_second", r.seconds > 0 ? static_cast<double>(r.pages) / r.seconds : 0},
            {"kernel", r.kernel},
            {"recipe", recipe_to_json(r.recipe)},
            {"notes", r.notes}};
}

void print(const CompressReport& r, const CompressFlags& options) {
    if (options.common.json) {
        fmt::print("{}\n", to_json(r, options.output).dump(2));
        return;
    }
    const auto share = [](std::size_t part, std::size_t whole) {
        return whole > 0 ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 0.0;
    };
    fmt::print("{}: {} pages\n", options.output, r.pages);
    fmt::print("  vectors  {} -> {}  ({:.2f}%)\n", r.vectors_in, r.vectors_out, share(r.vectors_out, r.vectors_in));
    if (r.bytes_in > 0)
        fmt::print("  bytes    {} -> {}  ({:.2f}%)\n", r.bytes_in, r.bytes_out, share(r.bytes_out, r.bytes_in));
    fmt::print("  recipe   {}\n", describe(r.recipe));
    fmt::print("  time     {:.2f} s, {:.1f} pages/s, kernel {}\n", r.seconds,
               r.seconds > 0 ? static_cast<double>(r.pages) / r.seconds : 0.0, r.kernel);
    if (options.common.quiet) return;
    for (const auto& note : r.notes) fmt::print(stderr, "note: {}\n", note);
}

void run(CompressFlags& o) {
    o.job.output = o.output;
    if (o.join) {
        if (started_in_parallel()) fail(ErrorCode::invalid_argument, "--join: one process does this; start it alone");
        print(join_shards({o.inputs.begin(), o.inputs.end()}, o.output), o);
        return;
    }
    if (o.inputs.size() != 1)
        fail(ErrorCode::invalid_argument, "compress: expected one DOCS file, found {}; --join takes several",
             o.inputs.size());
    if (o.type != "f16" && o.type != "f32")
        fail(ErrorCode::invalid_argument, "--dtype: expected f16 or f32, found '{}'", o.type);
    o.job.documents = o.inputs.front();
    o.job.model = o.model;
    o.job.type = o.type == "f16" ? ScalarType::f16 : ScalarType::f32;
    if (!o.shard.empty()) o.job.shard = parse_shard(o.shard);
    o.job.cluster = cluster();
    o.job.threads = cluster_threads(o.common.threads);
    const CompressReport report = compress(o.job, progress_bar(o.common));
    if (o.job.cluster == nullptr || o.job.cluster->leads()) print(report, o);
}

}  // namespace

void register_compress(CLI::App& app) {
    auto options = std::make_shared<CompressFlags>();
    CLI::App* command = app.add_subcommand("compress", "Shrink every document of a multi-vector file");
    command->add_option("DOCS", options->inputs, "The multi-vector file to compress (with --join: its shards)")
        ->required();
    command->add_option("-o,--output", options->output, "The compressed file to write")->required();
    command->add_option("-m,--model", options->model, "Model file from 'fit'; some recipes need none");
    add_recipe_options(*command, options->job.recipe);
    command->add_option("--dtype", options->type, "Storage of the result: f16 or f32")->capture_default_str();
    command->add_option("--shard", options->shard, "Compress part I of N only, written I/N (1/4 is the first quarter)");
    command->add_flag("--join", options->join, "Join all shards of a run into one file");
    command->footer(
        "Interrupted, it goes on where it stopped when started again; the result is the same file.\n"
        "Examples:\n"
        "  marginmerge compress docs.safetensors --keep 0.05 -o index.safetensors\n"
        "  marginmerge compress docs.safetensors -m model.safetensors --keep 0.1 -o index.safetensors\n"
        "  marginmerge compress docs.safetensors --representative ward --vectors 64 -o index.safetensors\n"
        "  marginmerge compress docs.safetensors --shard 2/8 -o part2.safetensors\n"
        "  marginmerge compress --join part*.safetensors -o index.safetensors\n"
        "  mpirun -n 8 marginmerge compress docs.safetensors -m model.safetensors -o index.safetensors");
    add_common(*command, options->common);
    command->callback([options] { run(*options); });
}

}  // namespace marginmerge::cli
