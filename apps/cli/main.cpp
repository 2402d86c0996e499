// The command line: parses, then makes one library call per command.
#include <fmt/core.h>

#include <cstdio>
#include <exception>

#include "command.h"
#include "marginmerge/core/error.h"
#include "marginmerge/core/version.h"

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
    register_synth(app);
    register_export(app);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        if (error.get_exit_code() == 0) return app.exit(error);
        const auto used = app.get_subcommands();
        fmt::print(stderr, "marginmerge: {}; see 'marginmerge {}--help'\n", error.what(),
                   used.empty() ? "" : used.front()->get_name() + " ");
        return wrong_usage;
    }
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        return run(argc, argv);
    } catch (const marginmerge::Error& error) {
        fmt::print(stderr, "marginmerge: {}\n", error.what());
        return error.code() == marginmerge::ErrorCode::invalid_argument ? wrong_usage : failed;
    } catch (const std::bad_alloc&) {
        fmt::print(stderr, "marginmerge: out of memory\n");
    } catch (const std::exception& error) {
        fmt::print(stderr, "marginmerge: internal error: {}\n", error.what());
    }
    return failed;
}
