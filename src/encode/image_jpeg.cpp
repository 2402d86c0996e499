#include <cstdio>
// jpeglib.h needs FILE before it is included.
#include <jpeglib.h>

#include <csetjmp>
#include <cstring>
#include <memory>

#include "core/fail.h"
#include "encode/image.h"

namespace marginmerge {

namespace {

struct Faults {
    jpeg_error_mgr manager{};
    std::jmp_buf back{};
    char message[JMSG_LENGTH_MAX] = "";
    int scans = 0;
};

[[noreturn]] void on_error(j_common_ptr info) {
    auto* faults = reinterpret_cast<Faults*>(info->err);
    (*info->err->format_message)(info, faults->message);
    std::longjmp(faults->back, 1);
}

void on_message(j_common_ptr) {}

// A progressive file may ask for thousands of passes over the same pixels; stop it early.
void on_progress(j_common_ptr info) {
    auto* faults = reinterpret_cast<Faults*>(info->err);
    if (info->is_decompressor && reinterpret_cast<j_decompress_ptr>(info)->input_scan_number > 200) {
        std::strncpy(faults->message, "more than 200 scans", sizeof faults->message - 1);
        std::longjmp(faults->back, 1);
    }
}

DecodeOutcome decode(jpeg_decompress_struct& info, Faults& faults, std::span<const std::uint8_t> bytes,
                     const ImageLimits& limits, Image& image, std::vector<std::uint8_t>& line) {
    if (setjmp(faults.back)) return DecodeOutcome::broken;
    jpeg_create_decompress(&info);
    jpeg_progress_mgr progress{};
    progress.progress_monitor = on_progress;
    jpeg_mem_src(&info, bytes.data(), bytes.size());
    jpeg_read_header(&info, TRUE);
    image.width = info.image_width;
    image.height = info.image_height;
    if (image.width == 0 || image.height == 0 || image.width > limits.longest_side ||
        image.height > limits.longest_side || std::uint64_t{image.width} * image.height > limits.most_pixels)
        return DecodeOutcome::too_large;
    info.progress = &progress;
    const bool cmyk = info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK;
    info.out_color_space = cmyk ? JCS_CMYK : JCS_RGB;
    jpeg_start_decompress(&info);
    image.pixels.resize(std::size_t{3} * image.width * image.height);
    line.resize(std::size_t{4} * image.width);
    while (info.output_scanline < info.output_height) {
        const std::uint32_t y = info.output_scanline;
        JSAMPROW row = cmyk ? line.data() : image.row(y);
        jpeg_read_scanlines(&info, &row, 1);
        if (!cmyk) continue;
        for (std::uint32_t x = 0; x < image.width; ++x) {  // Adobe stores CMYK inverted: 255 is no ink
            const std::uint8_t* ink = line.data() + std::size_t{4} * x;
            for (int c = 0; c < 3; ++c)
                image.row(y)[3 * x + static_cast<std::uint32_t>(c)] = static_cast<std::uint8_t>(ink[c] * ink[3] / 255);
        }
    }
    info.progress = nullptr;
    return DecodeOutcome::done;
}

}  // namespace

Image decode_jpeg(std::span<const std::uint8_t> bytes, const ImageLimits& limits, const std::string& source) {
    Faults faults;
    jpeg_decompress_struct info{};
    info.err = jpeg_std_error(&faults.manager);
    faults.manager.error_exit = on_error;
    faults.manager.output_message = on_message;
    Image image;
    std::vector<std::uint8_t> line;
    const DecodeOutcome outcome = decode(info, faults, bytes, limits, image, line);
    info.progress = nullptr;
    jpeg_destroy_decompress(&info);
    if (outcome == DecodeOutcome::done) return image;
    if (outcome == DecodeOutcome::too_large) check_size(image.width, image.height, limits, source);
    fail(ErrorCode::corrupt, "{}: expected a JPEG image: {}", source, faults.message);
}

std::string encode_jpeg(const Image& image, int quality) {
    Faults faults;
    jpeg_compress_struct info{};
    info.err = jpeg_std_error(&faults.manager);
    faults.manager.error_exit = on_error;
    faults.manager.output_message = on_message;
    unsigned char* made = nullptr;
    unsigned long size = 0;
    if (setjmp(faults.back)) {
        jpeg_destroy_compress(&info);
        std::free(made);
        fail(ErrorCode::internal, "cannot write a JPEG image of {} x {}: {}", image.width, image.height,
             faults.message);
    }
    jpeg_create_compress(&info);
    jpeg_mem_dest(&info, &made, &size);
    info.image_width = image.width;
    info.image_height = image.height;
    info.input_components = 3;
    info.in_color_space = JCS_RGB;
    jpeg_set_defaults(&info);
    jpeg_set_quality(&info, quality, TRUE);
    info.optimize_coding = TRUE;
    jpeg_start_compress(&info, TRUE);
    while (info.next_scanline < info.image_height) {
        JSAMPROW row = const_cast<JSAMPROW>(image.row(info.next_scanline));
        jpeg_write_scanlines(&info, &row, 1);
    }
    jpeg_finish_compress(&info);
    jpeg_destroy_compress(&info);
    std::string out(reinterpret_cast<const char*>(made), size);
    std::free(made);
    return out;
}

}  // namespace marginmerge
