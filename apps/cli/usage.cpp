#include "usage.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "core/fail.h"

namespace marginmerge::cli {

namespace {

constexpr std::uint64_t largest_count = std::uint64_t{1} << 32;

std::string fault_of_whole_number(const std::string& text, std::uint64_t most) {
    std::uint64_t value = 0;
    // CLI11 alone takes "-1" for 2^64 - 1.
    if (text.find('-') == text.npos && CLI::detail::lexical_cast(text, value) && value <= most) return {};
    return fmt::format("expected a whole number from 0 to {}, found '{}'", most, text);
}

// Everything is a count but seeds, which may be any number, and sizes in bytes.
std::uint64_t largest(const CLI::Option& option) {
    const bool any = option.check_name("--seed") || option.check_name("--max-body");
    return any ? std::numeric_limits<std::uint64_t>::max() : largest_count;
}

// Letters to add, drop or change to make one word of the other.
std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 0; i < a.size(); ++i) {
        std::size_t diagonal = std::exchange(row[0], i + 1);
        for (std::size_t j = 0; j < b.size(); ++j) {
            const std::size_t changed = diagonal + (a[i] == b[j] ? 0 : 1);
            diagonal = row[j + 1];
            row[j + 1] = std::min({changed, row[j] + 1, row[j + 1] + 1});
        }
    }
    return row.back();
}

// Those a user may call: encode's helper process is a command, too, but of no group.
std::vector<const CLI::App*> commands_of(const CLI::App& app) {
    return app.get_subcommands([](const CLI::App* command) { return !command->get_group().empty(); });
}

// `path` is what stands before the word: "marginmerge" or "marginmerge index".
std::string unknown_command(const CLI::App& app, const std::string& path, const std::string& word) {
    std::string nearest;
    std::size_t least = std::min<std::size_t>(3, word.size());  // "x" is not nearly "fit"
    for (const CLI::App* command : commands_of(app)) {
        const std::size_t distance = edit_distance(word, command->get_name());
        if (distance >= least) continue;
        least = distance;
        nearest = command->get_name();
    }
    return fmt::format("unknown command '{}'{}; see '{} --help'", word,
                       nearest.empty() ? "" : fmt::format(", did you mean '{}'?", nearest), path);
}

// The first word that belongs to no option and no argument of this command.
std::optional<std::string> left_over(const CLI::App& command) {
    for (const std::string& word : command.remaining())
        if (word != "--") return word;
    return std::nullopt;
}

}  // namespace

Check above_zero(double most) {
    return [most](const std::string& text) -> std::string {
        double value = 0;
        if (CLI::detail::lexical_cast(text, value) && std::isfinite(value) && value > 0 && value <= most) return {};
        const bool bounded = most < std::numeric_limits<double>::max();
        return fmt::format("expected a number above 0{}, found '{}'",
                           bounded ? fmt::format(" and at most {:g}", most) : "", text);
    };
}

Check above_zero() { return above_zero(std::numeric_limits<double>::max()); }

std::string at_least_one(const std::string& text) {
    std::uint64_t value = 0;
    // Other faults are those of every whole number.
    if (!CLI::detail::lexical_cast(text, value) || value > 0) return {};
    return fmt::format("expected at least 1, found '{}'", text);
}

void check_whole_numbers(CLI::App& app) {
    for (CLI::Option* option : app.get_options([](CLI::Option*) { return true; }))
        if (option->get_type_name().starts_with("UINT")) {
            const std::uint64_t most = largest(*option);
            option->check([most](const std::string& text) { return fault_of_whole_number(text, most); });
        }
    for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) check_whole_numbers(*command);
}

void register_help(CLI::App& app) {
    auto words = std::make_shared<std::vector<std::string>>();
    CLI::App* help = app.add_subcommand("help", "The help of a command");
    help->add_option("COMMAND", *words, "For example: search, or: index add");
    help->callback([&app, words] {
        const CLI::App* command = &app;
        std::string path = app.get_name();
        for (const std::string& word : *words) {
            const auto all = commands_of(*command);
            const auto found = std::find_if(all.begin(), all.end(), [&](auto* c) { return c->get_name() == word; });
            if (found == all.end()) fail(ErrorCode::invalid_argument, "{}", unknown_command(*command, path, word));
            command = *found;
            path += " " + word;
        }
        // App::help would describe the command that runs: this one.
        fmt::print("{}", command->get_formatter()->make_help(command, path, CLI::AppFormatMode::Normal));
    });
}

std::string usage_message(const CLI::App& app, const CLI::ParseError& error) {
    // CLI11 misses commands and arguments before it looks at the words it could not place.
    const bool words_matter = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::RequiredError) ||
                              error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError);
    const CLI::App* command = &app;
    std::string path = app.get_name();
    for (;;) {
        if (const auto word = left_over(*command); word && words_matter) {
            if (word->starts_with("-")) return fmt::format("unknown option '{}'; see '{} --help'", *word, path);
            if (!commands_of(*command).empty()) return unknown_command(*command, path, *word);
            return fmt::format("unexpected argument '{}'; see '{} --help'", *word, path);
        }
        const auto used = command->get_subcommands();
        if (used.empty()) break;
        command = used.front();
        path += " " + command->get_name();
    }
    return fmt::format("{}; see '{} --help'", error.what(), path);
}

}  // namespace marginmerge::cli
