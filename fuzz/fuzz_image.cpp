// PNG, JPEG, WebP and TIFF files.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "encode/image.h"
#include "marginmerge/core/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace marginmerge;
    try {
        const ImageLimits limits{1'000'000, 4096};
        const Image image = decode_image({data, size}, 0, limits, "fuzz");
        if (image.pixels.size() != std::size_t{3} * image.width * image.height) std::abort();
        if (std::uint64_t{image.width} * image.height > limits.most_pixels) std::abort();
    } catch (const Error&) {
    }
    return 0;
}
