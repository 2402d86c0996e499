#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "marginmerge/core/progress.h"

namespace marginmerge::cli {

/// What every command shares. Commands print results to stdout; everything else goes to stderr.
struct Common {
    bool json = false;        ///< --json: one JSON document on stdout instead of text
    bool quiet = false;       ///< --quiet: no progress, no notes
    std::size_t threads = 0;  ///< --threads: 0 means all cores
};

/// Adds --json, --threads and --quiet to a command.
void add_common(CLI::App& command, Common& common);

/// A progress callback that draws a bar on a terminal and stays silent elsewhere.
Progress progress_bar(const Common& common);

/// Every command is one function that declares its options on a subcommand and registers what to
/// run through CLI::App::callback. Defined in commands/NAME.cpp, listed in main.cpp.
void register_bench(CLI::App& app);
void register_compress(CLI::App& app);
void register_import(CLI::App& app);
void register_fit(CLI::App& app);
void register_inspect(CLI::App& app);
void register_encode(CLI::App& app);
void register_serve(CLI::App& app);
void register_search(CLI::App& app);
void register_evaluate(CLI::App& app);
void register_index(CLI::App& app);
void register_export(CLI::App& app);
void register_explain(CLI::App& app);
void register_synth(CLI::App& app);

}  // namespace marginmerge::cli
