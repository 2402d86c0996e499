#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace marginmerge {

// Which instruction set the kernels use. The best one the CPU has is chosen at the first call; the
// environment variable MARGINMERGE_KERNEL forces another for the whole process.

/// The levels this build and this CPU can run, best first, for example AVX2 SSE4 SCALAR.
std::vector<std::string> kernel_levels();

/// Runs everything from now on with the named level (any case; empty: the best one). Prepared
/// queries made before belong to the old level and must not be used again. Not for use while other
/// threads compute. Fails with invalid_argument when this CPU cannot run it.
void force_kernel_level(std::string_view name);

/// Applies MARGINMERGE_KERNEL once; every kernel calls it before it dispatches.
void apply_kernel_environment();

inline void ready_kernels() {
    static const bool done = (apply_kernel_environment(), true);
    (void)done;
}

}  // namespace marginmerge

/// The implementation of FUNCTION for the level in use.
#define MARGINMERGE_DISPATCH(FUNCTION) (::marginmerge::ready_kernels(), HWY_DYNAMIC_DISPATCH(FUNCTION))
