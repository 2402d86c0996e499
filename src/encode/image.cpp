#include "encode/image.h"

#include <algorithm>
#include <cstring>

#include "core/fail.h"

namespace marginmerge {

ImageFormat image_format(std::span<const std::uint8_t> b) {
    const auto starts = [&](std::size_t at, std::string_view magic) {
        return b.size() >= at + magic.size() && std::memcmp(b.data() + at, magic.data(), magic.size()) == 0;
    };
    if (starts(0, "\x89PNG\r\n\x1a\n")) return ImageFormat::png;
    if (starts(0, "\xff\xd8\xff")) return ImageFormat::jpeg;
    if (starts(0, "RIFF") && starts(8, "WEBP")) return ImageFormat::webp;
    const std::string_view little("II*\0", 4), big("MM\0*", 4);
    if (starts(0, little) || starts(0, big)) return ImageFormat::tiff;
    return ImageFormat::unknown;
}

void check_size(std::uint64_t width, std::uint64_t height, const ImageLimits& limits, const std::string& source) {
    if (width == 0 || height == 0) fail(ErrorCode::corrupt, "{}: image size: expected pixels, found none", source);
    if (width > limits.longest_side || height > limits.longest_side || width * height > limits.most_pixels)
        fail(ErrorCode::unsupported, "{}: image size: expected at most {} pixels, {} on a side, found {} x {}", source,
             limits.most_pixels, limits.longest_side, width, height);
}

Image decode_image(std::span<const std::uint8_t> bytes, std::size_t page, const ImageLimits& limits,
                   const std::string& source) {
    switch (image_format(bytes)) {
        case ImageFormat::png: return decode_png(bytes, limits, source);
        case ImageFormat::jpeg: return decode_jpeg(bytes, limits, source);
        case ImageFormat::webp: return decode_webp(bytes, limits, source);
        case ImageFormat::tiff: return decode_tiff(bytes, page, limits, source);
        case ImageFormat::unknown: break;
    }
    fail(ErrorCode::unsupported, "{}: expected PNG, JPEG, WebP or TIFF, found something else", source);
}

std::size_t image_pages(std::span<const std::uint8_t> bytes, const std::string& source) {
    const ImageFormat format = image_format(bytes);
    if (format == ImageFormat::unknown)
        fail(ErrorCode::unsupported, "{}: expected PNG, JPEG, WebP or TIFF, found something else", source);
    if (format != ImageFormat::tiff) return 1;
    const std::size_t pages = tiff_pages(bytes);
    if (pages == 0) fail(ErrorCode::corrupt, "{}: expected a TIFF file, found none that can be read", source);
    return pages;
}

}  // namespace marginmerge
