#include <png.h>

#include <cstring>

#include "core/fail.h"
#include "encode/image.h"

namespace marginmerge {

namespace {

// libpng reports faults through its error callback; a C++ exception may pass through the library
// because Debian builds it with unwind tables, but longjmp is its documented way, so use that.
struct Reader {
    std::span<const std::uint8_t> bytes;
    std::size_t at = 0;
    char message[200] = "";
};

void read_bytes(png_structp png, png_bytep out, png_size_t count) {
    auto* reader = static_cast<Reader*>(png_get_io_ptr(png));
    if (count > reader->bytes.size() - reader->at) png_error(png, "the file ends too early");
    std::memcpy(out, reader->bytes.data() + reader->at, count);
    reader->at += count;
}

void on_error(png_structp png, png_const_charp message) {
    auto* reader = static_cast<Reader*>(png_get_error_ptr(png));
    std::strncpy(reader->message, message, sizeof reader->message - 1);
    png_longjmp(png, 1);
}

void on_warning(png_structp, png_const_charp) {}

struct Handles {
    png_structp png = nullptr;
    png_infop info = nullptr;
    ~Handles() { png_destroy_read_struct(&png, &info, nullptr); }
};

/// Everything between setjmp and the last libpng call, with no object of its own to destroy.
DecodeOutcome decode(Handles& h, const ImageLimits& limits, Image& image, std::vector<png_bytep>& rows) {
    if (setjmp(png_jmpbuf(h.png))) return DecodeOutcome::broken;
    png_read_info(h.png, h.info);
    const std::uint64_t width = png_get_image_width(h.png, h.info), height = png_get_image_height(h.png, h.info);
    image.width = static_cast<std::uint32_t>(width);
    image.height = static_cast<std::uint32_t>(height);
    if (width > limits.longest_side || height > limits.longest_side || width * height > limits.most_pixels)
        return DecodeOutcome::too_large;
    png_set_expand(h.png);
    png_set_scale_16(h.png);
    png_set_gray_to_rgb(h.png);
    png_color_16 white{};
    white.red = white.green = white.blue = white.gray = 255;
    png_set_background(h.png, &white, PNG_BACKGROUND_GAMMA_SCREEN, 0, 1.0);
    png_set_interlace_handling(h.png);
    png_read_update_info(h.png, h.info);
    if (png_get_rowbytes(h.png, h.info) != 3 * width) png_error(h.png, "unexpected row size");
    image.pixels.resize(static_cast<std::size_t>(3 * width * height));
    rows.resize(image.height);
    for (std::uint32_t y = 0; y < image.height; ++y) rows[y] = image.row(y);
    png_read_image(h.png, rows.data());
    png_read_end(h.png, nullptr);
    return DecodeOutcome::done;
}

void append_bytes(png_structp png, png_bytep data, png_size_t count) {
    static_cast<std::string*>(png_get_io_ptr(png))->append(reinterpret_cast<const char*>(data), count);
}

}  // namespace

Image decode_png(std::span<const std::uint8_t> bytes, const ImageLimits& limits, const std::string& source) {
    Reader reader{bytes};
    Handles h;
    h.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &reader, on_error, on_warning);
    if (h.png != nullptr) h.info = png_create_info_struct(h.png);
    if (h.info == nullptr) fail(ErrorCode::internal, "{}: cannot start libpng", source);
    png_set_user_limits(h.png, limits.longest_side, limits.longest_side);
    png_set_chunk_malloc_max(h.png, 32 << 20);
    png_set_chunk_cache_max(h.png, 128);
    png_set_read_fn(h.png, &reader, read_bytes);
    Image image;
    std::vector<png_bytep> rows;
    switch (decode(h, limits, image, rows)) {
        case DecodeOutcome::done: return image;
        case DecodeOutcome::too_large: check_size(image.width, image.height, limits, source); break;
        case DecodeOutcome::broken: break;
    }
    fail(ErrorCode::corrupt, "{}: expected a PNG image: {}", source, reader.message);
}

std::string encode_png(const Image& image) {
    std::string out;
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, on_warning);
    png_infop info = png == nullptr ? nullptr : png_create_info_struct(png);
    if (info == nullptr) fail(ErrorCode::internal, "cannot start libpng");
    if (setjmp(png_jmpbuf(png))) {
        png_destroy_write_struct(&png, &info);
        fail(ErrorCode::internal, "cannot write a PNG image of {} x {}", image.width, image.height);
    }
    png_set_write_fn(png, &out, append_bytes, nullptr);
    png_set_IHDR(png, info, image.width, image.height, 8, PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(png, info);
    for (std::uint32_t y = 0; y < image.height; ++y) png_write_row(png, const_cast<png_bytep>(image.row(y)));
    png_write_end(png, nullptr);
    png_destroy_write_struct(&png, &info);
    return out;
}

}  // namespace marginmerge
