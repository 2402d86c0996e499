#pragma once

#include <fmt/core.h>

#include "marginmerge/core/error.h"

namespace marginmerge {

/// The text as one line of printable characters: names out of hostile files go into messages.
std::string one_line(std::string text);

/// Throws an Error with a formatted message: fail(ErrorCode::corrupt, "{}: expected {}", a, b).
template <class... Args>
[[noreturn]] void fail(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
    throw Error(code, one_line(fmt::format(format, std::forward<Args>(args)...)));
}

}  // namespace marginmerge
