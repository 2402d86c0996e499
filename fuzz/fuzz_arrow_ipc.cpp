#include "consume.h"

using namespace marginmerge;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const ByteSource bytes = borrow_bytes(fuzz::as_bytes(data, size), "input");
    return fuzz::run([&] { fuzz::consume(*open_arrow_source(bytes)); });
}
