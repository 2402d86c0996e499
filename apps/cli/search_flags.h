#pragma once

#include <string>
#include <vector>

#include "command.h"
#include "marginmerge/index/index.h"

namespace marginmerge::cli {

/// The flags of two-stage search, shared by search and evaluate.
struct SearchFlags {
    std::vector<std::string> filters;
    std::string first_pass = "none";
    std::size_t candidates = 0;
    std::size_t prefix = 0;
    std::size_t rerank = 0;
};

inline void add_first_pass_flags(CLI::App& command, SearchFlags& flags) {
    command
        .add_option("--first-pass", flags.first_pass,
                    "Cheap pass over all pages before exact scores: none, prefix or bits")
        ->check(CLI::IsMember({"none", "prefix", "bits"}))
        ->capture_default_str();
    command.add_option("--candidates", flags.candidates, "Pages the first pass lets through; 0: max(8 k, 200)");
    command.add_option("--prefix", flags.prefix, "Vectors a page in a prefix pass; 0: a quarter of them, at least 4");
    command.add_option("--rerank", flags.rerank,
                       "Score this many best pages again with the full vectors the index keeps");
}

inline SearchOptions to_options(const SearchFlags& flags) {
    SearchOptions options;
    options.first_pass = parse_first_pass(flags.first_pass);
    options.candidates = flags.candidates;
    options.prefix = flags.prefix;
    options.rerank = flags.rerank;
    for (const auto& text : flags.filters) options.filter = options.filter & Filter::parse(text);
    return options;
}

}  // namespace marginmerge::cli
