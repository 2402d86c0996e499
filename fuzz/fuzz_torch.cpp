// The input is the pickle of an otherwise well-formed torch archive with two storages.
#include "consume.h"
#include "support/made_files.h"

using namespace marginmerge;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string pickle(reinterpret_cast<const char*>(data), size);
    const std::string zip =
        test::torch_bytes(pickle, {std::string(1152, 'a'), std::string(384, 'b'), std::string(512, 'c')});
    return fuzz::run([&] { fuzz::consume(*open_source(test::as_source(zip), "stem")); });
}
