#include "core/numpy_random.h"

#include <numeric>
#include <utility>

namespace marginmerge {

namespace {
constexpr std::size_t length = 624;
constexpr std::size_t middle = 397;

// The smallest 2^b - 1 that is at least max: candidates above max are drawn again.
std::uint64_t mask_for(std::uint64_t max) {
    std::uint64_t mask = max;
    for (unsigned shift = 1; shift < 64; shift *= 2) mask |= mask >> shift;
    return mask;
}
}  // namespace

NumpyRandom::NumpyRandom(std::uint32_t seed) {
    for (std::size_t i = 0; i < length; ++i) {
        state_[i] = seed;
        seed = 1812433253U * (seed ^ (seed >> 30)) + static_cast<std::uint32_t>(i) + 1U;
    }
}

std::uint32_t NumpyRandom::next32() {
    if (position_ == length) {
        for (std::size_t i = 0; i < length; ++i) {
            const std::uint32_t y = (state_[i] & 0x80000000U) | (state_[(i + 1) % length] & 0x7FFFFFFFU);
            state_[i] = state_[(i + middle) % length] ^ (y >> 1) ^ ((y & 1U) ? 0x9908B0DFU : 0U);
        }
        position_ = 0;
    }
    std::uint32_t y = state_[position_++];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9D2C5680U;
    y ^= (y << 15) & 0xEFC60000U;
    return y ^ (y >> 18);
}

std::uint64_t NumpyRandom::next64() {
    const std::uint64_t high = next32();
    return (high << 32) | next32();
}

std::uint64_t NumpyRandom::interval(std::uint64_t max) {
    if (max == 0) return 0;
    const std::uint64_t mask = mask_for(max);
    std::uint64_t value = 0;
    do {
        value = (max <= 0xFFFFFFFFU ? next32() : next64()) & mask;
    } while (value > max);
    return value;
}

void NumpyRandom::shuffle(std::span<std::int64_t> values) {
    for (std::size_t i = values.size(); i-- > 1;) std::swap(values[i], values[interval(i)]);
}

std::vector<std::int64_t> NumpyRandom::permutation(std::int64_t n) {
    std::vector<std::int64_t> values(static_cast<std::size_t>(n));
    std::iota(values.begin(), values.end(), std::int64_t{0});
    shuffle(values);
    return values;
}

std::vector<std::int64_t> NumpyRandom::randint(std::int64_t bound, std::size_t count) {
    std::vector<std::int64_t> values(count);
    for (auto& v : values) v = static_cast<std::int64_t>(interval(static_cast<std::uint64_t>(bound) - 1));
    return values;
}

}  // namespace marginmerge
