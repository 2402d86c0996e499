#include "consume.h"
#include "io/cache_folder.h"

using namespace marginmerge;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const ByteSource bytes = borrow_bytes(fuzz::as_bytes(data, size), "input");
    fuzz::run([&] { parse_cache_meta(bytes.text(), 2, 2, "input"); });
    return fuzz::run([&] { fuzz::consume(*open_json_lines_source(bytes)); });
}
