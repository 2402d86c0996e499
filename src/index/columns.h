#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace marginmerge {

/// One comparable value of a page's metadata.
struct Scalar {
    enum class Kind : std::uint8_t { null, boolean, number, string, other };
    Kind kind = Kind::null;
    double number = 0;  ///< also 0 or 1 for a boolean
    std::string text;
};

/// Appends the values a field has in a metadata object: none when absent, each element of an array.
/// The whole name is tried as a key first, then its dots as a path.
void field_values(const nlohmann::json& object, std::string_view field, std::vector<Scalar>& out);

/// One metadata field of all pages of a segment, so that a filter need not parse JSON again.
struct Column {
    std::vector<std::uint32_t> offsets{0};  ///< [pages+1] into values
    std::vector<Scalar> values;
    std::span<const Scalar> of(std::size_t page) const {
        return {values.data() + offsets[page], offsets[page + 1] - offsets[page]};
    }
};

}  // namespace marginmerge
