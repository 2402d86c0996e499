#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace marginmerge {

/// 8-bit RGB, row-major, no padding.
struct Image {
    std::uint32_t width = 0;
    std::uint32_t height = 0;
    std::vector<std::uint8_t> pixels;  ///< 3 x width x height

    Image() = default;
    Image(std::uint32_t w, std::uint32_t h) : width(w), height(h), pixels(std::size_t{3} * w * h) {}
    std::uint8_t* row(std::uint32_t y) { return pixels.data() + std::size_t{3} * width * y; }
    const std::uint8_t* row(std::uint32_t y) const { return pixels.data() + std::size_t{3} * width * y; }
    bool empty() const { return pixels.empty(); }
};

/// What a reader accepts. Checked on the header, before any pixel is decoded.
struct ImageLimits {
    std::uint64_t most_pixels = 100'000'000;
    std::uint32_t longest_side = 32768;
};

enum class ImageFormat { unknown, png, jpeg, webp, tiff };
ImageFormat image_format(std::span<const std::uint8_t> bytes);

/// Decodes an image of any format we know, page `page` of a TIFF; transparency is laid over white.
/// Throws Error(corrupt) or Error(unsupported); `source` names the file.
Image decode_image(std::span<const std::uint8_t> bytes, std::size_t page, const ImageLimits& limits,
                   const std::string& source);
/// Pages of an image file: 1 except for TIFF.
std::size_t image_pages(std::span<const std::uint8_t> bytes, const std::string& source);

std::string encode_jpeg(const Image& image, int quality);
std::string encode_png(const Image& image);

/// How a decoder that leaves its library by longjmp came back.
enum class DecodeOutcome { done, too_large, broken };
// One decoder per format, used by decode_image.
Image decode_png(std::span<const std::uint8_t> bytes, const ImageLimits& limits, const std::string& source);
Image decode_jpeg(std::span<const std::uint8_t> bytes, const ImageLimits& limits, const std::string& source);
Image decode_webp(std::span<const std::uint8_t> bytes, const ImageLimits& limits, const std::string& source);
Image decode_tiff(std::span<const std::uint8_t> bytes, std::size_t page, const ImageLimits& limits,
                  const std::string& source);
std::size_t tiff_pages(std::span<const std::uint8_t> bytes);
/// Fails when an image of this size is more than the limits allow, or empty.
void check_size(std::uint64_t width, std::uint64_t height, const ImageLimits& limits, const std::string& source);

}  // namespace marginmerge
