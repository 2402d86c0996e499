#include <tiffio.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "core/fail.h"
#include "encode/image.h"

namespace marginmerge {

namespace {

constexpr std::size_t most_pages = 10000;

struct Memory {
    std::span<const std::uint8_t> bytes;
    std::uint64_t at = 0;
};

tmsize_t read_some(thandle_t handle, void* out, tmsize_t count) {
    auto* m = static_cast<Memory*>(handle);
    const std::uint64_t left = m->at < m->bytes.size() ? m->bytes.size() - m->at : 0;
    const std::uint64_t n = std::min<std::uint64_t>(left, static_cast<std::uint64_t>(std::max<tmsize_t>(count, 0)));
    if (n > 0) std::memcpy(out, m->bytes.data() + m->at, static_cast<std::size_t>(n));
    m->at += n;
    return static_cast<tmsize_t>(n);
}

tmsize_t write_none(thandle_t, void*, tmsize_t) { return 0; }

toff_t seek_to(thandle_t handle, toff_t offset, int whence) {
    auto* m = static_cast<Memory*>(handle);
    m->at = whence == SEEK_SET ? offset : whence == SEEK_CUR ? m->at + offset : m->bytes.size() + offset;
    return m->at;
}

int close_none(thandle_t) { return 0; }
toff_t size_of(thandle_t handle) { return static_cast<Memory*>(handle)->bytes.size(); }

struct Close {
    void operator()(TIFF* t) const { TIFFClose(t); }
};

std::unique_ptr<TIFF, Close> open_tiff(Memory& memory) {
    TIFFSetErrorHandler(nullptr);  // the library never prints
    TIFFSetWarningHandler(nullptr);
    // "m": no memory mapping, everything goes through the functions above.
    return std::unique_ptr<TIFF, Close>(
        TIFFClientOpen("memory", "rm", &memory, read_some, write_none, seek_to, close_none, size_of, nullptr, nullptr));
}

}  // namespace

std::size_t tiff_pages(std::span<const std::uint8_t> bytes) {
    Memory memory{bytes};
    const auto tiff = open_tiff(memory);
    if (!tiff) return 0;
    std::size_t pages = 1;
    while (pages < most_pages && TIFFReadDirectory(tiff.get()) == 1) ++pages;
    return pages;
}

Image decode_tiff(std::span<const std::uint8_t> bytes, std::size_t page, const ImageLimits& limits,
                  const std::string& source) {
    Memory memory{bytes};
    const auto tiff = open_tiff(memory);
    if (!tiff || TIFFSetDirectory(tiff.get(), static_cast<tdir_t>(page)) != 1)
        fail(ErrorCode::corrupt, "{}: expected a TIFF image, found broken data", source);
    std::uint32_t width = 0, height = 0;
    TIFFGetField(tiff.get(), TIFFTAG_IMAGEWIDTH, &width);
    TIFFGetField(tiff.get(), TIFFTAG_IMAGELENGTH, &height);
    check_size(width, height, limits, source);
    // One strip or tile is decoded at a time: a header may claim a strip far larger than the image.
    const tmsize_t block = TIFFIsTiled(tiff.get()) ? TIFFTileSize(tiff.get()) : TIFFStripSize(tiff.get());
    if (block < 0 || static_cast<std::uint64_t>(block) > 16 * limits.most_pixels)
        fail(ErrorCode::corrupt, "{}: expected strips or tiles of a sane size, found {}", source, block);
    char reason[1024] = "";
    if (!TIFFRGBAImageOK(tiff.get(), reason))
        fail(ErrorCode::unsupported, "{}: cannot decode this kind of TIFF: {}", source, reason);
    std::vector<std::uint32_t> raster(std::size_t{width} * height);
    if (TIFFReadRGBAImageOriented(tiff.get(), width, height, raster.data(), ORIENTATION_TOPLEFT, 1) != 1)
        fail(ErrorCode::corrupt, "{}: expected a TIFF image, found broken data", source);
    Image image(width, height);
    for (std::size_t i = 0; i < raster.size(); ++i) {
        const std::uint32_t alpha = TIFFGetA(raster[i]);  // colours are premultiplied
        const std::uint32_t white = 255 - alpha;
        image.pixels[3 * i] = static_cast<std::uint8_t>(std::min(255u, TIFFGetR(raster[i]) + white));
        image.pixels[3 * i + 1] = static_cast<std::uint8_t>(std::min(255u, TIFFGetG(raster[i]) + white));
        image.pixels[3 * i + 2] = static_cast<std::uint8_t>(std::min(255u, TIFFGetB(raster[i]) + white));
    }
    return image;
}

}  // namespace marginmerge
