// Encoder cards: JSON that strangers wrote.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "encode/card.h"
#include "marginmerge/core/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace marginmerge;
    try {
        parse_card({reinterpret_cast<const char*>(data), size}, "fuzz");
    } catch (const Error&) {
    }
    return 0;
}
