#pragma once

#include <cstdint>
#include <span>

#include "marginmerge/core/matrix.h"

namespace marginmerge {

/// Stored numbers to float32, exactly. out has as many elements as `in` holds numbers.
void to_float(VectorsView in, float* out);
/// The same into a matrix of its own.
Matrix to_float(VectorsView in);

/// float32 to half or bfloat16, round to nearest even; values past the largest finite half
/// become infinite, so callers check ranges first.
void from_float(std::span<const float> in, ScalarType type, void* out);

float half_to_float(std::uint16_t h);
std::uint16_t float_to_half(float f);

}  // namespace marginmerge
