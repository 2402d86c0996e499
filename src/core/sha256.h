#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace marginmerge {

/// SHA-256 (FIPS 180-4), fed piece by piece. Fingerprints contents; not used for secrets.
class Sha256 {
public:
    using Digest = std::array<std::uint8_t, 32>;

    Sha256();
    void update(std::span<const std::byte> bytes);
    void update(std::string_view text) { update(std::as_bytes(std::span(text))); }
    /// The digest of everything fed so far. The object is spent afterwards.
    Digest finish();

private:
    std::array<std::uint32_t, 8> state_;
    std::array<std::uint8_t, 64> buffer_{};
    std::uint64_t length_ = 0;  ///< bytes fed so far
};

/// Sixty-four lower-case hexadecimal digits.
std::string to_hex(const Sha256::Digest& digest);

}  // namespace marginmerge
