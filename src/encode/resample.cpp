#include "encode/resample.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace marginmerge {

namespace {

constexpr int fraction_bits = 32 - 8 - 2;

double support_of(ImageCard::Filter filter) {
    switch (filter) {
        case ImageCard::Filter::bilinear: return 1;
        case ImageCard::Filter::bicubic: return 2;
        case ImageCard::Filter::lanczos: return 3;
    }
    return 1;
}

double sinc(double x) { return x == 0 ? 1.0 : std::sin(x * std::numbers::pi) / (x * std::numbers::pi); }

double weight_at(ImageCard::Filter filter, double x) {
    x = std::abs(x);
    switch (filter) {
        case ImageCard::Filter::bilinear: return x < 1 ? 1 - x : 0;
        case ImageCard::Filter::bicubic: {
            constexpr double a = -0.5;  // Catmull-Rom
            if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
            return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
        }
        case ImageCard::Filter::lanczos: return x < 3 ? sinc(x) * sinc(x / 3) : 0;
    }
    return 0;
}

/// For each output position the first input position and the fixed-point weights from there.
struct Taps {
    std::vector<int> first, count;
    std::vector<std::int32_t> weights;  // [positions, width]
    std::size_t width = 0;
};

Taps taps(std::uint32_t in, std::uint32_t out, ImageCard::Filter filter) {
    const double scale = static_cast<double>(in) / out;
    const double spread = std::max(scale, 1.0);  // shrinking widens the filter
    const double support = support_of(filter) * spread;
    Taps t;
    t.width = static_cast<std::size_t>(std::ceil(support)) * 2 + 1;
    t.weights.assign(t.width * out, 0);
    std::vector<double> w(t.width);
    for (std::uint32_t i = 0; i < out; ++i) {
        const double centre = (i + 0.5) * scale;
        // Truncation as in Pillow, whose pixels these are. NOLINTBEGIN(bugprone-incorrect-roundings)
        const int low = std::max(0, static_cast<int>(centre - support + 0.5));
        const int high = std::min(static_cast<int>(in), static_cast<int>(centre + support + 0.5));
        // NOLINTEND(bugprone-incorrect-roundings)
        double sum = 0;
        for (int x = low; x < high; ++x)
            sum += w[static_cast<std::size_t>(x - low)] = weight_at(filter, (x - centre + 0.5) * (1.0 / spread));
        for (int x = low; x < high; ++x) {
            const double share = sum != 0 ? w[static_cast<std::size_t>(x - low)] / sum : 0;
            t.weights[i * t.width + static_cast<std::size_t>(x - low)] =
                static_cast<std::int32_t>((share < 0 ? -0.5 : 0.5) + share * (1 << fraction_bits));
        }
        t.first.push_back(low);
        t.count.push_back(high - low);
    }
    return t;
}

std::uint8_t clip(std::int32_t sum) { return static_cast<std::uint8_t>(std::clamp(sum >> fraction_bits, 0, 255)); }

constexpr std::int32_t half = 1 << (fraction_bits - 1);

Image across(const Image& in, std::uint32_t width, ImageCard::Filter filter) {
    const Taps t = taps(in.width, width, filter);
    Image out(width, in.height);
    for (std::uint32_t y = 0; y < in.height; ++y) {
        const std::uint8_t* source = in.row(y);
        std::uint8_t* target = out.row(y);
        for (std::uint32_t x = 0; x < width; ++x) {
            std::int32_t r = half, g = half, b = half;
            const std::int32_t* w = t.weights.data() + x * t.width;
            const std::uint8_t* p = source + std::size_t{3} * static_cast<std::size_t>(t.first[x]);
            for (int k = 0; k < t.count[x]; ++k, p += 3) {
                r += p[0] * w[k];
                g += p[1] * w[k];
                b += p[2] * w[k];
            }
            *target++ = clip(r);
            *target++ = clip(g);
            *target++ = clip(b);
        }
    }
    return out;
}

Image down(const Image& in, std::uint32_t height, ImageCard::Filter filter) {
    const Taps t = taps(in.height, height, filter);
    Image out(in.width, height);
    const std::size_t row = std::size_t{3} * in.width;
    std::vector<std::int32_t> sums(row);
    for (std::uint32_t y = 0; y < height; ++y) {
        std::fill(sums.begin(), sums.end(), half);
        for (int k = 0; k < t.count[y]; ++k) {
            const std::int32_t w = t.weights[y * t.width + static_cast<std::size_t>(k)];
            const std::uint8_t* source = in.row(static_cast<std::uint32_t>(t.first[y] + k));
            for (std::size_t i = 0; i < row; ++i) sums[i] += source[i] * w;
        }
        std::uint8_t* target = out.row(y);
        for (std::size_t i = 0; i < row; ++i) target[i] = clip(sums[i]);
    }
    return out;
}

}  // namespace

Image resize(const Image& image, std::uint32_t width, std::uint32_t height, ImageCard::Filter filter) {
    if (width == image.width && height == image.height) return image;
    if (width == image.width) return down(image, height, filter);
    if (height == image.height) return across(image, width, filter);
    return down(across(image, width, filter), height, filter);
}

Image fit_within(const Image& image, std::uint32_t side) {
    const std::uint32_t longest = std::max(image.width, image.height);
    if (longest <= side) return image;
    const auto scaled = [&](std::uint32_t s) {
        return std::max<std::uint32_t>(1, static_cast<std::uint32_t>(std::lround(double{1} * s * side / longest)));
    };
    return resize(image, scaled(image.width), scaled(image.height), ImageCard::Filter::bicubic);
}

}  // namespace marginmerge
