#include "core/sha256.h"

#include <algorithm>
#include <cstring>

#include "core/sha256_blocks.h"

namespace marginmerge {

namespace {

constexpr std::array<std::uint32_t, 64> first_primes() {
    std::array<std::uint32_t, 64> primes{};
    std::size_t count = 0;
    for (std::uint32_t candidate = 2; count < primes.size(); ++candidate) {
        bool prime = true;
        for (std::uint32_t d = 2; d * d <= candidate; ++d) prime = prime && candidate % d != 0;
        if (prime) primes[count++] = candidate;
    }
    return primes;
}

// The standard's constants are the first 32 bits of the fractional parts of roots of the primes.
// floor(root * 2^32) is found in integers, so no rounding of the C library can spoil it.
__extension__ typedef unsigned __int128 Wide;

constexpr std::uint32_t square_root_bits(std::uint32_t p) {
    std::uint64_t root = 0;  // largest root with root^2 <= p * 2^64
    for (int bit = 36; bit >= 0; --bit) {
        const std::uint64_t trial = root | (std::uint64_t{1} << bit);
        if (static_cast<Wide>(trial) * trial <= (static_cast<Wide>(p) << 64)) root = trial;
    }
    return static_cast<std::uint32_t>(root);
}

constexpr std::uint32_t cube_root_bits(std::uint32_t p) {
    std::uint64_t root = 0;  // largest root with root^3 <= p * 2^96
    for (int bit = 34; bit >= 0; --bit) {
        const std::uint64_t trial = root | (std::uint64_t{1} << bit);
        if (static_cast<Wide>(trial) * trial * trial <= (static_cast<Wide>(p) << 96)) root = trial;
    }
    return static_cast<std::uint32_t>(root);
}

constexpr auto round_constants = [] {
    std::array<std::uint32_t, 64> k{};
    const auto primes = first_primes();
    for (std::size_t i = 0; i < k.size(); ++i) k[i] = cube_root_bits(primes[i]);
    return k;
}();

constexpr std::uint32_t rotate(std::uint32_t x, int n) { return (x >> n) | (x << (32 - n)); }

}  // namespace

Sha256State sha256_start() {
    constexpr auto start = [] {
        Sha256State state{};
        const auto primes = first_primes();
        for (std::size_t i = 0; i < state.size(); ++i) state[i] = square_root_bits(primes[i]);
        return state;
    }();
    return start;
}

std::span<const std::uint32_t, 64> sha256_constants() { return round_constants; }

Sha256::Digest sha256_digest(const Sha256State& state) {
    Sha256::Digest digest;
    for (std::size_t i = 0; i < 32; ++i) digest[i] = static_cast<std::uint8_t>(state[i / 4] >> (24 - 8 * (i % 4)));
    return digest;
}

Sha256::Sha256() : state_(sha256_start()) {}

void sha256_blocks_plain(Sha256State& state, const std::uint8_t* bytes, std::size_t count) {
    for (; count > 0; --count, bytes += 64) {
        std::array<std::uint32_t, 64> w;
        for (std::size_t i = 0; i < 16; ++i) {
            w[i] = std::uint32_t{bytes[4 * i]} << 24 | std::uint32_t{bytes[4 * i + 1]} << 16 |
                   std::uint32_t{bytes[4 * i + 2]} << 8 | std::uint32_t{bytes[4 * i + 3]};
        }
        for (std::size_t i = 16; i < 64; ++i) {
            const std::uint32_t a = w[i - 15], b = w[i - 2];
            w[i] = w[i - 16] + (rotate(a, 7) ^ rotate(a, 18) ^ (a >> 3)) + w[i - 7] +
                   (rotate(b, 17) ^ rotate(b, 19) ^ (b >> 10));
        }
        auto s = state;
        // Instead of moving the eight words along, round i finds word k at (k - i) mod 8.
        for (std::size_t round = 0; round < 64; round += 8) {
            for (std::size_t i = 0; i < 8; ++i) {
                const auto at = [&](std::size_t k) -> std::uint32_t& { return s[(k + 8 - i) % 8]; };
                const std::uint32_t choose = (at(4) & at(5)) ^ (~at(4) & at(6));
                const std::uint32_t majority = (at(0) & at(1)) ^ (at(0) & at(2)) ^ (at(1) & at(2));
                const std::uint32_t t1 = at(7) + (rotate(at(4), 6) ^ rotate(at(4), 11) ^ rotate(at(4), 25)) + choose +
                                         round_constants[round + i] + w[round + i];
                const std::uint32_t t2 = (rotate(at(0), 2) ^ rotate(at(0), 13) ^ rotate(at(0), 22)) + majority;
                at(3) += t1;
                at(7) = t1 + t2;
            }
        }
        for (std::size_t i = 0; i < 8; ++i) state[i] += s[i];
    }
}

void sha256_blocks(Sha256State& state, const std::uint8_t* bytes, std::size_t count) {
    if (has_sha_instructions()) return sha256_blocks_x86(state, bytes, count, round_constants.data());
    sha256_blocks_plain(state, bytes, count);
}

void Sha256::update(std::span<const std::byte> bytes) {
    const auto* in = reinterpret_cast<const std::uint8_t*>(bytes.data());
    std::size_t left = bytes.size();
    std::size_t held = length_ % 64;
    length_ += left;
    if (held > 0) {
        const std::size_t take = std::min(left, 64 - held);
        std::memcpy(buffer_.data() + held, in, take);
        in += take;
        left -= take;
        held += take;
        if (held < 64) return;
        sha256_blocks(state_, buffer_.data(), 1);
    }
    sha256_blocks(state_, in, left / 64);
    in += left / 64 * 64;
    left %= 64;
    if (left > 0) std::memcpy(buffer_.data(), in, left);
}

Sha256::Digest Sha256::finish() {
    const std::uint64_t bits = length_ * 8;
    std::array<std::uint8_t, 72> tail{0x80};
    const std::size_t padding = (length_ % 64 < 56 ? 56 : 120) - length_ % 64;
    for (std::size_t i = 0; i < 8; ++i) tail[padding + i] = static_cast<std::uint8_t>(bits >> (56 - 8 * i));
    update(std::as_bytes(std::span(tail).first(padding + 8)));
    return sha256_digest(state_);
}

std::string to_hex(const Sha256::Digest& digest) {
    constexpr char digits[] = "0123456789abcdef";
    std::string text;
    for (const std::uint8_t byte : digest) {
        text += digits[byte >> 4];
        text += digits[byte & 15];
    }
    return text;
}

}  // namespace marginmerge
