#include "encode/image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "encode/json_fields.h"
#include "encode/resample.h"
#include "marginmerge/core/error.h"
#include "support/npy.h"

namespace marginmerge {
namespace {

std::string image_path(const std::string& name) { return std::string(ENCODE_TEST_DATA) + "/" + name; }

std::vector<std::uint8_t> bytes(const std::string& name) {
    const std::string text = read_text_file(image_path(name), 1 << 20);
    return {text.begin(), text.end()};
}

/// The picture of make_reference.py: red 10 x, green 10 y, blue 90.
void expect_photo(const Image& image, int tolerance, const std::string& name) {
    ASSERT_EQ(image.width, 24U) << name;
    ASSERT_EQ(image.height, 16U) << name;
    for (std::uint32_t y = 0; y < 16; ++y) {
        for (std::uint32_t x = 0; x < 24; ++x) {
            const std::uint8_t* p = image.row(y) + 3 * x;
            EXPECT_NEAR(p[0], 10 * x, tolerance) << name << " " << x << "," << y;
            EXPECT_NEAR(p[1], 10 * y, tolerance) << name << " " << x << "," << y;
            EXPECT_NEAR(p[2], 90, tolerance) << name << " " << x << "," << y;
        }
    }
}

TEST(Image, EveryFormatGivesTheSamePicture) {
    expect_photo(decode_image(bytes("photo.png"), 0, {}, "png"), 0, "png");
    expect_photo(decode_image(bytes("photo.webp"), 0, {}, "webp"), 0, "webp");
    expect_photo(decode_image(bytes("photo.tif"), 0, {}, "tif"), 0, "tif");
    expect_photo(decode_image(bytes("photo.jpg"), 0, {}, "jpg"), 8, "jpg");
    expect_photo(decode_image(bytes("cmyk.jpg"), 0, {}, "cmyk"), 12, "cmyk");
}

TEST(Image, TiffPages) {
    const auto file = bytes("photo.tif");
    EXPECT_EQ(image_pages(file, "tif"), 2U);
    const Image turned = decode_image(file, 1, {}, "tif");
    EXPECT_EQ(turned.row(0)[0], 230);
    EXPECT_THROW(decode_image(file, 2, {}, "tif"), Error);
}

TEST(Image, TransparencyIsLaidOverWhite) {
    const Image image = decode_image(bytes("clear.png"), 0, {}, "png");
    EXPECT_EQ(image.row(3)[0], 255);
    EXPECT_EQ(image.row(3)[2], 255);
    EXPECT_EQ(image.row(3)[3 * 20], 200);
}

TEST(Image, TooLargeIsRefusedBeforeDecoding) {
    for (const char* name : {"photo.png", "photo.jpg", "photo.webp", "photo.tif"}) {
        try {
            decode_image(bytes(name), 0, {100, 1000}, name);
            ADD_FAILURE() << name;
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::unsupported) << name;
            EXPECT_THAT(error.what(), testing::HasSubstr("found 24 x 16")) << name;
        }
        EXPECT_THROW(decode_image(bytes(name), 0, {1'000'000, 20}, name), Error) << name;
    }
}

TEST(Image, BrokenFilesAreErrors) {
    for (const char* name : {"photo.png", "photo.jpg", "photo.webp", "photo.tif", "clear.png"}) {
        const auto whole = bytes(name);
        for (std::size_t n = 0; n < whole.size(); ++n) {
            try {
                decode_image(std::span(whole).first(n), 0, {}, name);
            } catch (const Error&) {
            }
        }
        std::mt19937 random(5);
        for (int round = 0; round < 300; ++round) {
            auto broken = whole;
            for (int k = 0; k < 4; ++k) broken[random() % broken.size()] = static_cast<std::uint8_t>(random());
            try {
                decode_image(broken, random() % 3, {1'000'000, 4096}, name);
            } catch (const Error&) {
            }
        }
    }
    EXPECT_THROW(decode_image({}, 0, {}, "empty"), Error);
}

TEST(Image, WritersRoundTrip) {
    const Image image = decode_image(bytes("photo.png"), 0, {}, "png");
    const std::string png = encode_png(image), jpeg = encode_jpeg(image, 95);
    const auto view = [](const std::string& s) {
        return std::span(reinterpret_cast<const std::uint8_t*>(s.data()), s.size());
    };
    EXPECT_EQ(decode_image(view(png), 0, {}, "png").pixels, image.pixels);
    expect_photo(decode_image(view(jpeg), 0, {}, "jpeg"), 20, "jpeg");
}

Image load(const std::string& name) {
    const Matrix shape(1, 1);
    const auto values = test::load_ints(image_path(name + ".npy"));
    Image image;
    for (const auto v : values) image.pixels.push_back(static_cast<std::uint8_t>(v));
    return image;
}

TEST(Resample, EqualsPilBitForBit) {
    Image input = load("resample_input");
    input.width = 31;
    input.height = 23;
    const std::pair<const char*, ImageCard::Filter> filters[] = {{"bilinear", ImageCard::Filter::bilinear},
                                                                 {"bicubic", ImageCard::Filter::bicubic},
                                                                 {"lanczos", ImageCard::Filter::lanczos}};
    for (const auto& [name, filter] : filters) {
        for (const auto& [w, h] :
             std::vector<std::pair<std::uint32_t, std::uint32_t>>{{14, 9}, {40, 52}, {31, 10}, {12, 23}}) {
            const std::string file =
                std::string("resample_") + name + "_" + std::to_string(w) + "x" + std::to_string(h);
            EXPECT_EQ(resize(input, w, h, filter).pixels, load(file).pixels) << file;
        }
    }
}

TEST(Resample, FitNeverEnlarges) {
    const Image small(10, 20);
    EXPECT_EQ(fit_within(small, 100).height, 20U);
    const Image fitted = fit_within(Image(300, 100), 60);
    EXPECT_EQ(fitted.width, 60U);
    EXPECT_EQ(fitted.height, 20U);
    EXPECT_EQ(fit_within(Image(2000, 1), 50).height, 1U);
}

}  // namespace
}  // namespace marginmerge
