#pragma once

#include <chrono>

namespace marginmerge {

/// The clock that reports and progress run on.
using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace marginmerge
