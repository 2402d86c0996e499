#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/sha256.h"

namespace marginmerge {

using Sha256State = std::array<std::uint32_t, 8>;

/// What a state begins with.
Sha256State sha256_start();

/// The constants of the rounds.
std::span<const std::uint32_t, 64> sha256_constants();

/// The digest that a state stands for, once everything was fed.
Sha256::Digest sha256_digest(const Sha256State& state);

/// Feeds `count` blocks of 64 bytes into the state, in portable code.
void sha256_blocks_plain(Sha256State& state, const std::uint8_t* bytes, std::size_t count);

/// Whether this processor has the instructions of the following.
bool has_sha_instructions();

/// The same with the processor's SHA instructions, about nine times as fast; `constants` are the 64 of the rounds.
void sha256_blocks_x86(Sha256State& state, const std::uint8_t* bytes, std::size_t count,
                       const std::uint32_t* constants);

/// Whichever is faster here.
void sha256_blocks(Sha256State& state, const std::uint8_t* bytes, std::size_t count);

}  // namespace marginmerge
