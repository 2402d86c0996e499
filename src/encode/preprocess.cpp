#include "encode/preprocess.h"

#include <algorithm>
#include <cmath>

#include "core/fail.h"
#include "encode/resample.h"

namespace marginmerge {

namespace {

/// Python's round(): to the nearest whole number, halves to the even one.
std::int64_t round_even(double x) { return static_cast<std::int64_t>(std::nearbyint(x)); }

class Scaler {
public:
    explicit Scaler(const ImageCard& card) {
        for (std::size_t c = 0; c < 3; ++c) {
            for (std::size_t v = 0; v < 256; ++v)
                table_[c][v] =
                    static_cast<float>((static_cast<double>(v) * card.rescale - card.mean[c]) / card.deviation[c]);
        }
    }
    float operator()(std::size_t channel, std::uint8_t value) const { return table_[channel][value]; }

private:
    std::array<std::array<float, 256>, 3> table_;
};

/// Appends an image as [3,h,w].
void append_planes(const Image& image, const Scaler& scale, std::vector<float>& out) {
    for (std::size_t c = 0; c < 3; ++c) {
        for (std::size_t i = 0; i < image.pixels.size() / 3; ++i) out.push_back(scale(c, image.pixels[3 * i + c]));
    }
}

/// Boxes of a grid of cells laid over `area`, row by row.
void append_boxes(std::int64_t columns, std::int64_t rows, const Box& area, std::vector<Box>& out) {
    const auto at = [](float low, float high, std::int64_t i, std::int64_t n) {
        return static_cast<float>(low + (double{high} - low) * static_cast<double>(i) / static_cast<double>(n));
    };
    for (std::int64_t y = 0; y < rows; ++y) {
        for (std::int64_t x = 0; x < columns; ++x)
            out.push_back({at(area[0], area[2], x, columns), at(area[1], area[3], y, rows),
                           at(area[0], area[2], x + 1, columns), at(area[1], area[3], y + 1, rows)});
    }
}

std::string repeat(const std::string& token, std::int64_t times) {
    std::string out;
    for (std::int64_t i = 0; i < times; ++i) out += token;
    return out;
}

/// Qwen's order: blocks of merge x merge patches row by row, the patches of a block together, each
/// as [3, temporal, patch, patch]. values [patches, 3 * temporal * patch^2].
void flatten_patches(const Image& image, const ImageCard& card, const Scaler& scale, Pixels& out) {
    const std::int64_t rows = image.height / card.patch, columns = image.width / card.patch;
    const std::int64_t p = card.patch, m = card.merge;
    out.values.reserve(static_cast<std::size_t>(rows * columns * 3 * card.temporal * p * p));
    for (std::int64_t by = 0; by < rows / m; ++by)
        for (std::int64_t bx = 0; bx < columns / m; ++bx)
            for (std::int64_t iy = 0; iy < m; ++iy)
                for (std::int64_t ix = 0; ix < m; ++ix)
                    for (std::size_t c = 0; c < 3; ++c)
                        for (std::int64_t t = 0; t < card.temporal; ++t)
                            for (std::int64_t y = 0; y < p; ++y) {
                                const auto py = static_cast<std::uint32_t>((by * m + iy) * p + y);
                                const std::uint8_t* row =
                                    image.row(py) + static_cast<std::size_t>(3 * (bx * m + ix) * p);
                                for (std::int64_t x = 0; x < p; ++x)
                                    out.values.push_back(scale(c, row[static_cast<std::size_t>(3 * x) + c]));
                            }
    out.shape = {rows * columns, 3 * card.temporal * p * p};
    out.grid_thw = {1, rows, columns};
}

Pixels whole(const Image& image, const ImageCard& card) {
    const Scaler scale(card);
    Pixels out;
    if (card.layout == ImageCard::Layout::patches) {
        flatten_patches(image, card, scale, out);
    } else {
        out.values.reserve(image.pixels.size());
        append_planes(image, scale, out.values);
        out.shape = {1, 3, image.height, image.width};
        out.grid_thw = {1, image.height / card.patch, image.width / card.patch};
    }
    const std::int64_t cell = card.patch * card.merge;
    const std::int64_t columns = image.width / cell, rows = image.height / cell;
    append_boxes(columns, rows, {0, 0, 1, 1}, out.boxes);
    out.grid = {static_cast<std::int32_t>(columns), static_cast<std::int32_t>(rows)};
    out.markup = repeat(card.token, columns * rows);
    return out;
}

std::string tile_label(std::string name, std::int64_t row, std::int64_t column) {
    const auto put = [&](const std::string& mark, std::int64_t number) {
        const auto at = name.find(mark);
        if (at != std::string::npos) name.replace(at, mark.size(), std::to_string(number));
    };
    put("{row}", row + 1);
    put("{column}", column + 1);
    return name;
}

Pixels tiled(const Image& image, const ImageCard& card) {
    const Scaler scale(card);
    const auto edge = static_cast<std::uint32_t>(card.tile);
    const std::int64_t columns = image.width / edge, rows = image.height / edge;
    const std::int64_t cells = card.tile / (card.patch * card.merge);
    const bool split = columns > 1 || rows > 1;
    Pixels out;
    const std::int64_t frames = split ? columns * rows + 1 : 1;
    out.values.reserve(static_cast<std::size_t>(frames * 3 * card.tile * card.tile));
    const std::string tokens = repeat(card.token, cells * cells);
    if (split) {
        for (std::int64_t r = 0; r < rows; ++r) {
            for (std::int64_t c = 0; c < columns; ++c) {
                Image piece(edge, edge);
                for (std::uint32_t y = 0; y < edge; ++y) {
                    const std::uint8_t* from = image.row(static_cast<std::uint32_t>(r) * edge + y) +
                                               std::size_t{3} * edge * static_cast<std::size_t>(c);
                    std::copy(from, from + std::size_t{3} * edge, piece.row(y));
                }
                append_planes(piece, scale, out.values);
                const auto part = [](std::int64_t i, std::int64_t n) {
                    return static_cast<float>(static_cast<double>(i) / static_cast<double>(n));
                };
                append_boxes(cells, cells, {part(c, columns), part(r, rows), part(c + 1, columns), part(r + 1, rows)},
                             out.boxes);
                out.markup += card.tile_prefix + tile_label(card.tile_name, r, c) + tokens;
            }
            out.markup += card.row_end;
        }
    }
    append_planes(resize(image, edge, edge, card.filter), scale, out.values);
    append_boxes(cells, cells, {0, 0, 1, 1}, out.boxes);
    out.markup += (split ? card.row_end : "") + card.global_prefix + tokens + card.global_suffix;
    out.shape = {1, frames, 3, card.tile, card.tile};
    out.mask_shape = {1, frames, card.tile, card.tile};
    return out;
}

}  // namespace

PixelSize smart_size(std::int64_t width, std::int64_t height, std::int64_t factor, std::int64_t min_pixels,
                     std::int64_t max_pixels) {
    const auto w = static_cast<double>(width), h = static_cast<double>(height), f = static_cast<double>(factor);
    PixelSize s{std::max(factor, round_even(w / f) * factor), std::max(factor, round_even(h / f) * factor)};
    if (s.width * s.height > max_pixels) {
        const double beta = std::sqrt(w * h / static_cast<double>(max_pixels));
        s.width = std::max(factor, static_cast<std::int64_t>(std::floor(w / beta / f)) * factor);
        s.height = std::max(factor, static_cast<std::int64_t>(std::floor(h / beta / f)) * factor);
    } else if (s.width * s.height < min_pixels) {
        const double beta = std::sqrt(static_cast<double>(min_pixels) / (w * h));
        s.width = static_cast<std::int64_t>(std::ceil(w * beta / f)) * factor;
        s.height = static_cast<std::int64_t>(std::ceil(h * beta / f)) * factor;
    }
    return s;
}

TiledSizes tiled_sizes(std::int64_t width, std::int64_t height, const ImageCard& card) {
    // First the longer side becomes longest_edge, the other follows and is made even.
    const double aspect = static_cast<double>(width) / static_cast<double>(height);
    if (width >= height) {
        width = card.longest_edge;
        height = static_cast<std::int64_t>(static_cast<double>(width) / aspect);
        height += height % 2;
    } else {
        height = card.longest_edge;
        width = static_cast<std::int64_t>(static_cast<double>(height) * aspect);
        width += width % 2;
    }
    width = std::max<std::int64_t>(width, 1);
    height = std::max<std::int64_t>(height, 1);
    TiledSizes sizes;
    sizes.first = {width, height};
    // Then both are rounded up to whole tiles, the longer one leading.
    const auto up = [&](std::int64_t side) { return (side + card.tile - 1) / card.tile * card.tile; };
    const double ratio = static_cast<double>(width) / static_cast<double>(height);
    if (width >= height) {
        width = up(width);
        height = up(static_cast<std::int64_t>(static_cast<double>(width) / ratio));
    } else {
        height = up(height);
        width = up(static_cast<std::int64_t>(static_cast<double>(height) * ratio));
    }
    sizes.whole = {std::max(width, card.tile), std::max(height, card.tile)};
    return sizes;
}

Pixels preprocess(const Image& image, const ImageCard& card, const std::string& source) {
    if (image.empty()) fail(ErrorCode::internal, "{}: no image to encode", source);
    const auto to = [&](const Image& from, PixelSize s) {
        return resize(from, static_cast<std::uint32_t>(s.width), static_cast<std::uint32_t>(s.height), card.filter);
    };
    const double aspect = static_cast<double>(std::max(image.width, image.height)) /
                          static_cast<double>(std::min(image.width, image.height));
    if (aspect > 200 && card.resize != ImageCard::Resize::exact)
        fail(ErrorCode::unsupported, "{}: expected sides in a ratio of at most 200, found {} x {}", source, image.width,
             image.height);
    switch (card.resize) {
        case ImageCard::Resize::exact: return whole(to(image, {card.width, card.height}), card);
        case ImageCard::Resize::smart:
            return whole(to(image, smart_size(image.width, image.height, card.patch * card.merge, card.min_pixels,
                                              card.max_pixels)),
                         card);
        case ImageCard::Resize::tiles: {
            const TiledSizes sizes = tiled_sizes(image.width, image.height, card);
            return tiled(to(to(image, sizes.first), sizes.whole), card);
        }
    }
    fail(ErrorCode::internal, "{}: unknown resizing rule", source);
}

}  // namespace marginmerge
