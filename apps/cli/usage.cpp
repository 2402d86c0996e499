#include "usage.h"

#include <fmt/core.h>

#include <cmath>
#include <cstdint>
#include <limits>

namespace marginmerge::cli {

namespace {

constexpr std::uint64_t largest_number = std::uint64_t{1} << 32;

std::string fault_of_whole_number(const std::string& text) {
    std::uint64_t value = 0;
    // CLI11 alone takes "-1" for 2^64 - 1.
    if (text.find('-') == text.npos && CLI::detail::lexical_cast(text, value) && value <= largest_number) return {};
    return fmt::format("expected a whole number from 0 to {}, found '{}'", largest_number, text);
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

void check_whole_numbers(CLI::App& app) {
    for (CLI::Option* option : app.get_options([](CLI::Option*) { return true; }))
        if (option->get_type_name().starts_with("UINT")) option->check(fault_of_whole_number);
    for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) check_whole_numbers(*command);
}

}  // namespace marginmerge::cli
