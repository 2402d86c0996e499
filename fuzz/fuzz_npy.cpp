#include "consume.h"
#include "io/npy_reader.h"

using namespace marginmerge;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const ByteSource bytes = borrow_bytes(fuzz::as_bytes(data, size), "input");
    fuzz::run([&] { npy_strings(bytes.bytes, "input"); });
    std::vector<std::int64_t> bounds;
    fuzz::run([&] {
        ArrayInfo info;
        bounds = npy_integers(bytes.bytes, "input", info);
    });
    fuzz::run([&] { fuzz::consume(*open_npy_source(bytes, "stem", {})); });
    return fuzz::run([&] { fuzz::consume(*open_npy_source(bytes, "stem", {0, 1, 2})); });
}
