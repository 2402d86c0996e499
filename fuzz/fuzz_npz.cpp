// The first byte says where the input splits into two arrays; both go into a well-formed archive,
// so that mutations reach the code behind the zip reader.
#include "consume.h"
#include "support/made_files.h"

using namespace marginmerge;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 2) return 0;
    constexpr const char* names[] = {"vectors.npy", "offsets.npy", "ids.npy",       "grid.npy",
                                     "a.npy",       "b",           "embeddings.npy"};
    const std::string first(reinterpret_cast<const char*>(data) + 2, std::min<std::size_t>(size - 2, data[0] * 4U));
    const std::string second(reinterpret_cast<const char*>(data) + 2 + first.size(), size - 2 - first.size());
    const std::string zip =
        test::zip_bytes({{names[data[1] % 7], first, (data[1] & 128) != 0}, {names[data[1] / 7 % 7], second}});
    return fuzz::run([&] { fuzz::consume(*open_source(test::as_source(zip), "stem")); });
}
