// The command line: parses, then makes one library call per command.
#include <fmt/core.h>

#include <cstdio>
#include <exception>
#include <iostream>

#include "cluster.h"
#include "command.h"
#include "core/fail.h"
#include "lab_commands.h"
#include "marginmerge/core/error.h"
#include "marginmerge/core/version.h"
#include "usage.h"

namespace {

// Exit statuses: 0 done, 1 failed, 2 wrong usage.
constexpr int failed = 1;
constexpr int wrong_usage = 2;

int run(int argc, char** argv) {
    CLI::App app{"Shrinks the multi-vector index of a late-interaction retriever and keeps its ranking.",
                 "marginmerge"};
    app.set_version_flag("--version", std::string("marginmerge ") + marginmerge::version());
    app.require_subcommand(1);
    app.get_formatter()->column_width(36);
    using namespace marginmerge::cli;
    register_compress(app);
    register_import(app);
    register_fit(app);
    register_inspect(app);
    register_bench(app);
    register_encode(app);
    register_serve(app);
    register_search(app);
    register_evaluate(app);
    register_index(app);
    register_explain(app);
#ifdef MARGINMERGE_HAS_LAB
    register_advise(app);
    register_lab(app);
#endif
    register_synth(app);
    register_export(app);
    register_help(app);
    check_whole_numbers(app);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        if (error.get_exit_code() == 0) return app.exit(error);
        let_the_first_speak();
        fmt::print(stderr, "marginmerge: {}\n", usage_message(app, error));
        return wrong_usage;
    }
    return 0;
}

constexpr const char* output_failed = "marginmerge: standard output: cannot write all results\n";

// Results may wait in a buffer until the end: a full disk shows only then.
bool printed_everything() {
    std::cout.flush();
    const bool flushed = std::fflush(stdout) == 0;
    return flushed && std::ferror(stdout) == 0 && std::cout.good();
}

// The error's one line and its exit status.
int report(const std::exception& error) {
    if (const auto* known = dynamic_cast<const marginmerge::Error*>(&error)) {
        fmt::print(stderr, "marginmerge: {}\n", known->what());
        return known->code() == marginmerge::ErrorCode::invalid_argument ? wrong_usage : failed;
    }
    if (std::ferror(stdout) != 0)  // fmt throws when a print fails
        fmt::print(stderr, "{}", output_failed);
    else if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr)
        fmt::print(stderr, "marginmerge: out of memory\n");
    else
        fmt::print(stderr, "marginmerge: internal error: {}\n", error.what());
    return failed;
}

// Started by mpirun: only some commands know how to share their work.
void check_parallel(int argc, char** argv) {
    const std::string command = argc > 1 ? argv[1] : "";
    if (!marginmerge::cli::started_in_parallel() || command.starts_with("-")) return;
    if (command != "compress" && command != "fit" && command != "evaluate")
        marginmerge::fail(marginmerge::ErrorCode::invalid_argument,
                          "mpirun: expected compress, fit or evaluate, found '{}'", command);
}

}  // namespace

int main(int argc, char** argv) {
    int status = failed;
    try {
        check_parallel(argc, argv);
        status = run(argc, argv);
        if (status == 0 && !printed_everything()) {
            fmt::print(stderr, "{}", output_failed);
            status = failed;
        }
    } catch (const std::exception& error) {
        marginmerge::cli::let_the_first_speak();
        status = report(error);
    }
    marginmerge::cli::leave_cluster(status);
    return status;
}
