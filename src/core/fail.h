#pragma once

#include <fmt/core.h>

#include "marginmerge/core/error.h"

namespace marginmerge {

/// Throws an Error with a formatted message: fail(ErrorCode::corrupt, "{}: expected {}", a, b).
template <class... Args>
[[noreturn]] void fail(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
    throw Error(code, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace marginmerge
