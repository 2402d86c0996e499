// Both forms of metadata filters, and their evaluation on metadata that strangers wrote.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "marginmerge/core/error.h"
#include "marginmerge/index/filter.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace marginmerge;
    const std::string_view all(reinterpret_cast<const char*>(data), size);
    // The first zero byte separates the filter from the metadata it is applied to.
    const std::size_t cut = all.find('\0');
    const std::string_view text = all.substr(0, cut);
    const std::string_view metadata = cut == std::string_view::npos ? std::string_view() : all.substr(cut + 1);
    for (const bool json : {false, true}) {
        try {
            const Filter filter = json ? Filter::parse_json(text) : Filter::parse(text);
            // What a filter prints must be a filter again.
            if (!filter.empty()) Filter::parse(filter.to_string());
            filter.matches(metadata);
        } catch (const Error&) {
        }
    }
    return 0;
}
