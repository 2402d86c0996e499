#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

namespace marginmerge::cli {

/// What CLI::Option::check takes: the fault of a value, or nothing.
using Check = std::function<std::string(const std::string&)>;

/// Numbers above 0 and at most `most`; neither nan nor inf.
Check above_zero(double most);
Check above_zero();

/// Whole numbers from 1.
std::string at_least_one(const std::string& text);

/// Gives every unsigned option of every command a check: whole numbers from 0 to 2^32 (seeds and sizes in bytes: any).
void check_whole_numbers(CLI::App& app);

/// 'marginmerge help [COMMAND]'.
void register_help(CLI::App& app);

/// One line about what was wrong with the command line, with the word that was not understood.
std::string usage_message(const CLI::App& app, const CLI::ParseError& error);

}  // namespace marginmerge::cli
