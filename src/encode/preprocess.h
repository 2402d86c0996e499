#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "encode/card.h"
#include "encode/image.h"
#include "encode/page_text.h"
#include "marginmerge/data/multi_vector_set.h"

namespace marginmerge {

/// What a visual graph is fed for one page, and where each image vector it gives lies.
struct Pixels {
    std::vector<float> values;
    std::vector<std::int64_t> shape;       ///< of pixel_values
    std::vector<std::int64_t> grid_thw;    ///< patches layout: frames, rows, columns of patches
    std::vector<std::int64_t> mask_shape;  ///< of pixel_attention_mask (tiles), every pixel real
    std::vector<Box> boxes;                ///< one for each image vector, in output order
    PatchGrid grid;                        ///< of the vectors; unknown for tiles
    std::string markup;                    ///< what {image} becomes in the template: image tokens and tile marks
};

/// Resizes, cuts and normalises a page image by the card's rule.
Pixels preprocess(const Image& image, const ImageCard& card, const std::string& source);

/// The size the smart rule brings an image to: multiples of `factor` near the original shape, with
/// min_pixels <= width x height <= max_pixels.
struct PixelSize {
    std::int64_t width = 0;
    std::int64_t height = 0;
};
PixelSize smart_size(std::int64_t width, std::int64_t height, std::int64_t factor, std::int64_t min_pixels,
                     std::int64_t max_pixels);
/// The tile rule resizes twice: to the longest edge, then to whole tiles.
struct TiledSizes {
    PixelSize first;
    PixelSize whole;
};
TiledSizes tiled_sizes(std::int64_t width, std::int64_t height, const ImageCard& card);

}  // namespace marginmerge
