#include <fmt/core.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
#include "core/fail.h"
#include "marginmerge/jobs/index_jobs.h"

namespace marginmerge::cli {

namespace {

using nlohmann::ordered_json;

void print_json(const ordered_json& value) {
    fmt::print("{}\n", value.dump(1, ' ', false, ordered_json::error_handler_t::replace));
}

void register_add(CLI::App& parent) {
    struct Options {
        Common common;
        IndexAddJobOptions job;
    };
    auto o = std::make_shared<Options>();
    CLI::App* command = parent.add_subcommand("add", "Add the pages of a file; makes the index when there is none");
    command->add_option("INDEX", o->job.index, "Index folder")->required();
    command->add_option("FILE", o->job.pages, "Compressed or other multi-vector file")->required();
    command->add_option("--metadata", o->job.metadata, "JSON lines, each an object with the page's id under \"id\"");
    command->add_option("--code", o->job.code, "How a new index stores vectors: f16 (default), f32, int8 or bits")
        ->check(CLI::IsMember({"f16", "f32", "int8", "bits"}));
    command->add_option("--keep-full", o->job.full, "Documents before compression, kept on disk for re-ranking");
    command->add_option("--example-queries", o->job.example_queries, "Queries stored with the index to try it out");
    command->add_flag("--replace", o->job.replace, "Pages whose id exists take the old page's place");
    command->add_option("--lock-timeout", o->job.lock_timeout, "Seconds to wait for another writer")
        ->capture_default_str();
    command->footer("Example:\n  marginmerge index add pages/ small.safetensors --metadata pages.jsonl --code int8");
    add_common(*command, o->common);
    command->callback([o] {
        o->job.threads = o->common.threads;
        o->job.progress = progress_bar(o->common);
        const AddReport r = index_add_job(o->job);
        if (o->common.json)
            print_json({{"added", r.added}, {"replaced", r.replaced}, {"generation", r.generation}});
        else
            fmt::print("{} pages added, {} of them in place of older ones; generation {}\n", r.added, r.replaced,
                       r.generation);
    });
}

void register_delete(CLI::App& parent) {
    struct Options {
        Common common;
        IndexDeleteJobOptions job;
    };
    auto o = std::make_shared<Options>();
    CLI::App* command = parent.add_subcommand("delete", "Delete pages by id; compact frees their bytes");
    command->add_option("INDEX", o->job.index, "Index folder")->required();
    command->add_option("ID", o->job.ids, "Page ids");
    command->add_option("--ids", o->job.ids_file, "File with one page id a line");
    command->add_flag("--ignore-missing", o->job.ignore_missing, "Unknown ids are counted instead of refused");
    command->add_option("--lock-timeout", o->job.lock_timeout, "Seconds to wait for another writer")
        ->capture_default_str();
    command->footer("Example:\n  marginmerge index delete pages/ page-17 page-18");
    add_common(*command, o->common);
    command->callback([o] {
        const DeleteReport r = index_delete_job(o->job);
        if (o->common.json)
            print_json({{"deleted", r.deleted}, {"missing", r.missing}, {"generation", r.generation}});
        else
            fmt::print("{} pages deleted, {} not found; generation {}\n", r.deleted, r.missing, r.generation);
    });
}

void register_compact(CLI::App& parent) {
    struct Options {
        Common common;
        IndexCompactJobOptions job;
    };
    auto o = std::make_shared<Options>();
    CLI::App* command = parent.add_subcommand("compact", "One segment of all live pages, without what was deleted");
    command->add_option("INDEX", o->job.index, "Index folder")->required();
    command->add_option("--code", o->job.code, "Store the vectors in this coarser code from now on: f16, int8 or bits")
        ->check(CLI::IsMember({"f16", "int8", "bits"}));
    command->add_option("--lock-timeout", o->job.lock_timeout, "Seconds to wait for another writer")
        ->capture_default_str();
    command->footer("Example:\n  marginmerge index compact pages/");
    add_common(*command, o->common);
    command->callback([o] {
        o->job.progress = progress_bar(o->common);
        const CompactReport r = index_compact_job(o->job);
        if (o->common.json)
            print_json({{"pages", r.pages},
                        {"segments_before", r.segments_before},
                        {"bytes_before", r.bytes_before},
                        {"bytes_after", r.bytes_after},
                        {"generation", r.generation}});
        else
            fmt::print("{} pages in one segment instead of {}; {} bytes instead of {}; generation {}\n", r.pages,
                       r.segments_before, r.bytes_after, r.bytes_before, r.generation);
    });
}

void register_verify(CLI::App& parent) {
    struct Options {
        Common common;
        std::string index;
    };
    auto o = std::make_shared<Options>();
    CLI::App* command = parent.add_subcommand("verify", "Read every byte: checksums, formats, ids, finite values");
    command->add_option("INDEX", o->index, "Index folder or multi-vector file")->required();
    command->footer("Example:\n  marginmerge index verify pages/");
    add_common(*command, o->common);
    command->callback([o] {
        const VerifyReport r = verify_index(o->index, progress_bar(o->common));
        if (o->common.json)
            print_json({{"sound", r.problems.empty()},
                        {"files", r.files},
                        {"bytes", r.bytes},
                        {"pages", r.pages},
                        {"problems", r.problems},
                        {"leftovers", r.leftovers}});
        else if (r.problems.empty())
            fmt::print("sound: {} pages in {} files, {} bytes\n", r.pages, r.files, r.bytes);
        if (!o->common.quiet && !r.leftovers.empty())
            fmt::print(stderr,
                       "note: {} files of an interrupted writer; the next add, delete or compact removes them\n",
                       r.leftovers.size());
        if (r.problems.empty()) return;
        for (std::size_t i = 1; i < r.problems.size(); ++i) fmt::print(stderr, "marginmerge: {}\n", r.problems[i]);
        fail(ErrorCode::corrupt, "{}", r.problems.front());
    });
}

}  // namespace

void register_index(CLI::App& app) {
    CLI::App* command = app.add_subcommand("index", "Add pages to an index folder, delete, compact, verify");
    command->require_subcommand(1);
    command->footer("Example:\n  marginmerge index add pages/ small.safetensors");
    register_add(*command);
    register_delete(*command);
    register_compact(*command);
    register_verify(*command);
}

}  // namespace marginmerge::cli
