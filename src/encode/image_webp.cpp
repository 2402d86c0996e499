#include <webp/decode.h>

#include "core/fail.h"
#include "encode/image.h"

namespace marginmerge {

Image decode_webp(std::span<const std::uint8_t> bytes, const ImageLimits& limits, const std::string& source) {
    WebPBitstreamFeatures features{};
    if (WebPGetFeatures(bytes.data(), bytes.size(), &features) != VP8_STATUS_OK)
        fail(ErrorCode::corrupt, "{}: expected a WebP image, found a broken header", source);
    if (features.has_animation) fail(ErrorCode::unsupported, "{}: expected a still image, found an animation", source);
    check_size(static_cast<std::uint64_t>(features.width), static_cast<std::uint64_t>(features.height), limits, source);
    Image image(static_cast<std::uint32_t>(features.width), static_cast<std::uint32_t>(features.height));
    if (!features.has_alpha) {
        if (WebPDecodeRGBInto(bytes.data(), bytes.size(), image.pixels.data(), image.pixels.size(),
                              3 * features.width) == nullptr)
            fail(ErrorCode::corrupt, "{}: expected a WebP image, found broken data", source);
        return image;
    }
    std::vector<std::uint8_t> rgba(image.pixels.size() / 3 * 4);
    if (WebPDecodeRGBAInto(bytes.data(), bytes.size(), rgba.data(), rgba.size(), 4 * features.width) == nullptr)
        fail(ErrorCode::corrupt, "{}: expected a WebP image, found broken data", source);
    for (std::size_t i = 0; i < rgba.size() / 4; ++i) {
        const unsigned alpha = rgba[4 * i + 3];
        for (std::size_t c = 0; c < 3; ++c)
            image.pixels[3 * i + c] =
                static_cast<std::uint8_t>((rgba[4 * i + c] * alpha + 255 * (255 - alpha) + 127) / 255);
    }
    return image;
}

}  // namespace marginmerge
