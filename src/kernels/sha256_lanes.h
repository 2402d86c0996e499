#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/sha256.h"

namespace marginmerge {

/// The SHA-256 of each of these messages. Where the processor has no instructions for it, messages are hashed side by
/// side, one in each lane of a vector: with several messages for each lane about ten times as fast as one after the
/// other with AVX-512, three times with SSE4.
std::vector<Sha256::Digest> sha256_of_each(std::span<const std::span<const std::byte>> messages);

/// The same in lanes whatever the processor has; for tests.
std::vector<Sha256::Digest> sha256_in_lanes(std::span<const std::span<const std::byte>> messages);

}  // namespace marginmerge
