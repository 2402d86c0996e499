#include <fmt/core.h>
#include <unistd.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
#include "core/fail.h"
#ifdef MARGINMERGE_HAS_ENCODE
#include "jobs/encode.h"
#endif

namespace marginmerge::cli {

namespace {

struct EncodeFlags {
    Common common;
    std::vector<std::string> sources;
    std::string queries, card, models, output, assets, shard;
    std::string type;
    std::size_t pca = 0;
    std::uint32_t image_side = 1100;
    double most_pixels = 100;
    double page_seconds = 120;
    bool no_images = false, strict = false, fresh = false, in_process = false;
};

#ifdef MARGINMERGE_HAS_ENCODE

ScalarType scalar(const std::string& name, ScalarType fallback) {
    if (name == "f32") return ScalarType::f32;
    if (name == "f16") return ScalarType::f16;
    if (name == "bf16") return ScalarType::bf16;
    return fallback;
}

void parse_shard(const std::string& text, EncodeOptions& options) {
    if (text.empty()) return;
    unsigned long index = 0, count = 0;
    int used = 0;
    if (std::sscanf(text.c_str(), "%lu/%lu%n", &index, &count, &used) != 2 || used != static_cast<int>(text.size()) ||
        index == 0 || index > count)
        fail(ErrorCode::invalid_argument, "--shard: expected I/N with I from 1 to N, found '{}'", text);
    options.shard = index - 1;
    options.shards = count;
}

void print(const EncodeReport& report, const EncodeFlags& options, const char* what) {
    if (options.common.json) {
        nlohmann::ordered_json skipped = nlohmann::ordered_json::array();
        for (const auto& s : report.skipped)
            skipped.push_back({{"source", s.source}, {"page", s.page}, {"reason", s.reason}});
        const nlohmann::ordered_json json = {{"output", options.output},
                                             {what, report.pages},
                                             {"files", report.files},
                                             {"reused", report.reused_pages},
                                             {"vectors", report.vectors},
                                             {"dim", report.dim},
                                             {"tokens", report.tokens},
                                             {"seconds", report.seconds},
                                             {"pca_kept", report.pca_kept},
                                             {"encoder", report.card.string()},
                                             {"assets", report.assets.string()},
                                             {"runtime", report.runtime},
                                             {"skipped", skipped}};
        fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
        return;
    }
    for (const auto& s : report.skipped) {
        if (s.page > 0)
            fmt::print(stderr, "marginmerge: skipped {} page {}: {}\n", s.source, s.page, s.reason);
        else
            fmt::print(stderr, "marginmerge: skipped {}: {}\n", s.source, s.reason);
    }
    fmt::print("{}: {} {}, {} vectors of {} dimensions, {:.1f} s\n", options.output, report.pages, what, report.vectors,
               report.dim, report.seconds);
    if (report.reused_pages > 0) fmt::print("{} pages were there from an interrupted run\n", report.reused_pages);
    if (!report.assets.empty()) fmt::print("page images and text: {}\n", report.assets.string());
    if (report.pca_kept > 0)
        fmt::print("the projection keeps {:.1f}% of the squared norm; encode queries with --encoder {}\n",
                   100 * report.pca_kept, report.card.string());
    if (!report.skipped.empty()) fmt::print("{} skipped\n", report.skipped.size());
}

void run(const EncodeFlags& o) {
    if (o.sources.empty() == o.queries.empty())
        fail(ErrorCode::invalid_argument, "encode: expected documents or --queries, found {}",
             o.sources.empty() ? "neither" : "both");
    if (!o.queries.empty()) {
        EncodeQueriesOptions job;
        job.queries = o.queries;
        job.card = o.card;
        job.models = o.models;
        job.output = o.output;
        job.type = scalar(o.type, ScalarType::f32);
        job.threads = o.common.threads;
        print(encode_queries(job, progress_bar(o.common)), o, "queries");
        return;
    }
    EncodeOptions job;
    job.sources.assign(o.sources.begin(), o.sources.end());
    job.card = o.card;
    job.models = o.models;
    job.output = o.output;
    job.assets = o.assets;
    job.type = scalar(o.type, ScalarType::f16);
    job.page_images = !o.no_images;
    job.image_side = o.image_side;
    job.pca = o.pca;
    job.strict = o.strict;
    job.fresh = o.fresh;
    job.threads = o.common.threads;
    // Files are read by a process of their own: a PDF that crashes its reader costs one file, not the run.
    job.reader.limits.image.most_pixels = static_cast<std::uint64_t>(o.most_pixels * 1e6);
    job.reader.seconds = o.page_seconds;
    if (!o.in_process)
        job.reader.command = {"/proc/self/exe", "encode-reader", "--max-megapixels", std::to_string(o.most_pixels)};
    parse_shard(o.shard, job);
    const EncodeReport report = encode_documents(job, progress_bar(o.common));
    print(report, o, "pages");
    if (!report.skipped.empty())
        fail(ErrorCode::corrupt, "{} of {} were skipped", report.skipped.size(), report.skipped.size() + report.pages);
}

void read_pages(double megapixels) {
    constexpr std::uint64_t memory = std::uint64_t{6} << 30;
    SourceLimits limits;
    limits.image.most_pixels = static_cast<std::uint64_t>(megapixels * 1e6);
    serve_pages(STDIN_FILENO, STDOUT_FILENO, limits, memory);
}

#else

void read_pages(double) {}

void run(const EncodeFlags&) {
    fail(ErrorCode::unsupported,
         "this build has no encoder; run scripts/setup encode, scripts/fetch-encoder and rebuild");
}

#endif

}  // namespace

void register_encode(CLI::App& app) {
    auto o = std::make_shared<EncodeFlags>();
    CLI::App* command = app.add_subcommand("encode", "Documents, images and queries to vectors");
    command->add_option("SRC", o->sources, "PDF, PNG, JPEG, WebP, TIFF or text files, or folders of them");
    command->add_option("--queries", o->queries, "Encode queries instead: .tsv (id, text), .jsonl, or one a line");
    command->add_option("-e,--encoder", o->card, "Encoder card (a JSON file, or a folder with card.json)")->required();
    command->add_option("--models", o->models, "Folder to look in for files the card names");
    command->add_option("-o,--output", o->output, "Multi-vector file to write")->required();
    command->add_option("--assets", o->assets, "Folder for page images and text; default: output + .assets");
    command->add_option("--type", o->type, "Storage: f16 (documents), f32 (queries) or bf16")
        ->check(CLI::IsMember({"f32", "f16", "bf16"}));
    command->add_option("--pca", o->pca, "Fit a projection to so many dimensions; its card goes to the assets");
    command->add_option("--shard", o->shard, "I/N: only the I-th of N parts of the files");
    command->add_option("--image-size", o->image_side, "Longer side of kept page images, pixels")
        ->check(CLI::Range(64, 8192))
        ->capture_default_str();
    command->add_option("--max-megapixels", o->most_pixels, "Refuse larger images")
        ->check(CLI::Range(0.01, 4000.0))
        ->capture_default_str();
    command->add_option("--page-timeout", o->page_seconds, "Give a page up after so many seconds of reading")
        ->check(CLI::Range(0.1, 1e6))
        ->capture_default_str();
    command->add_flag("--in-process", o->in_process,
                      "Read files in this process: faster by little, but a crash ends the run");
    command->add_flag("--no-images", o->no_images, "Keep no page images");
    command->add_flag("--strict", o->strict, "Stop at the first page that cannot be encoded");
    command->add_flag("--fresh", o->fresh, "Forget what an interrupted run left behind");
    command->footer(
        "Pages get the ids file#page. What cannot be read is reported and skipped, and the exit status is 1.\n"
        "Examples:\n"
        "  marginmerge encode manuals/ --encoder minilm/card.json -o docs.safetensors\n"
        "  marginmerge encode --queries queries.tsv --encoder minilm/card.json -o queries.safetensors");
    add_common(*command, o->common);
    command->callback([o] { run(*o); });

    CLI::App* reader = app.add_subcommand("encode-reader", "The process that reads files for encode")->group("");
    reader->add_option("--max-megapixels", o->most_pixels);
    reader->callback([o] { read_pages(o->most_pixels); });
}

}  // namespace marginmerge::cli
