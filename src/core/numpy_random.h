#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace marginmerge {

/// NumPy's legacy RandomState (Mersenne Twister), bit for bit, for the calls the paper's protocol
/// makes: permutation, shuffle and randint. Everything else in the project uses Random.
class NumpyRandom {
public:
    explicit NumpyRandom(std::uint32_t seed);

    /// RandomState.shuffle of a sequence.
    void shuffle(std::span<std::int64_t> values);
    /// RandomState.permutation(n).
    std::vector<std::int64_t> permutation(std::int64_t n);
    /// RandomState.randint(0, bound, size=count) with the default (int64) type.
    std::vector<std::int64_t> randint(std::int64_t bound, std::size_t count);

private:
    std::uint32_t next32();
    std::uint64_t next64();
    std::uint64_t interval(std::uint64_t max);

    std::array<std::uint32_t, 624> state_{};
    std::size_t position_ = 624;
};

}  // namespace marginmerge
