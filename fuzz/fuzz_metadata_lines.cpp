// Page metadata as JSON lines.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "marginmerge/core/error.h"
#include "marginmerge/index/index_writer.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace marginmerge;
    static const MultiVectorSet pages = [] {
        MultiVectorBuilder builder(16);
        for (const char* id : {"a", "b", "1"}) builder.add(id, Matrix(1, 16));
        return builder.finish();
    }();
    try {
        parse_metadata_lines({reinterpret_cast<const char*>(data), size}, pages, "fuzz");
    } catch (const Error&) {
    }
    return 0;
}
