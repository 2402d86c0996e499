#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace marginmerge {

using Sha256State = std::array<std::uint32_t, 8>;

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
