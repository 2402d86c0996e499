#pragma once

#include <cstddef>
#include <span>

namespace marginmerge {

// What the core can do at best with the instructions of the level in use; benchmarks relate the
// kernels to it.

/// Independent multiply-adds on registers; returns the floating-point operations done (two for each).
double fma_burst(std::size_t rounds);

/// The multiply-and-add step of the int8 kernel on registers; returns the operations done (two for each
/// product).
double int8_burst(std::size_t rounds);

/// Reads everything once and returns the sum of it, so that the reading cannot be left out.
float read_burst(std::span<const float> memory);

}  // namespace marginmerge
