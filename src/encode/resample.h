#pragma once

#include "encode/card.h"
#include "encode/image.h"

namespace marginmerge {

/// Resizes with the given filter, antialiased when shrinking: the same pixels, bit for bit, as
/// PIL's Image.resize on 8-bit RGB (fixed point with 22 fractional bits, rows first).
Image resize(const Image& image, std::uint32_t width, std::uint32_t height, ImageCard::Filter filter);

/// The same image, shrunk so that its longer side is at most `side` (never enlarged).
Image fit_within(const Image& image, std::uint32_t side);

}  // namespace marginmerge
