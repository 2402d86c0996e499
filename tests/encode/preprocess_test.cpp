#include "encode/preprocess.h"

#include <gtest/gtest.h>

#include "marginmerge/core/error.h"
#include "support/npy.h"

namespace marginmerge {
namespace {

std::string array_path(const std::string& name) { return std::string(ENCODE_TEST_DATA) + "/" + name + ".npy"; }

ImageCard card(const std::string& name) { return read_card(std::string(MARGINMERGE_CARDS) + "/" + name).image; }

TEST(Preprocess, SmartSizesEqualTheReference) {
    const auto rows = test::load_ints(array_path("sizes"));
    ASSERT_EQ(rows.size() % 4, 0U);
    for (std::size_t i = 0; i < rows.size(); i += 4) {
        const PixelSize s = smart_size(rows[i], rows[i + 1], 28, 3136, 602112);
        EXPECT_EQ(s.width, rows[i + 2]) << rows[i] << " x " << rows[i + 1];
        EXPECT_EQ(s.height, rows[i + 3]) << rows[i] << " x " << rows[i + 1];
    }
}

TEST(Preprocess, QwenPatchesEqualTheReference) {
    const auto values = test::load_ints(array_path("qwen_input"));
    Image image(84, 56);
    ASSERT_EQ(values.size(), image.pixels.size());
    for (std::size_t i = 0; i < values.size(); ++i) image.pixels[i] = static_cast<std::uint8_t>(values[i]);
    const Pixels pixels = preprocess(image, card("colqwen2.5-v0.1.json"), "test");
    EXPECT_EQ(pixels.shape, (std::vector<std::int64_t>{24, 1176}));
    EXPECT_EQ(pixels.grid_thw, (std::vector<std::int64_t>{1, 4, 6}));
    EXPECT_EQ(pixels.grid.columns, 3);
    EXPECT_EQ(pixels.grid.rows, 2);
    const Matrix expected = test::load_floats(array_path("qwen_patches"));
    const std::size_t patches[] = {0, 1, 6, 23};
    for (std::size_t r = 0; r < 4; ++r) {
        for (std::size_t j = 0; j < expected.cols(); ++j)
            ASSERT_NEAR(pixels.values[patches[r] * 1176 + j], expected(r, j), 1e-6) << patches[r] << "," << j;
    }
}

TEST(Preprocess, ColPaliIsOneSquareOfPlanes) {
    Image image(448, 448);
    image.row(0)[3 * 5 + 1] = 255;  // green, top row
    const Pixels pixels = preprocess(image, card("colpali-v1.3.json"), "test");
    EXPECT_EQ(pixels.shape, (std::vector<std::int64_t>{1, 3, 448, 448}));
    EXPECT_EQ(pixels.boxes.size(), 1024U);
    EXPECT_EQ(pixels.grid.columns, 32);
    EXPECT_FLOAT_EQ(pixels.values[0], -1.0F);  // (0/255 - 0.5) / 0.5
    EXPECT_FLOAT_EQ(pixels.values[448 * 448 + 5], 1.0F);
    EXPECT_FLOAT_EQ(pixels.boxes[33][0], 1.0F / 32);  // second row, second column
    EXPECT_FLOAT_EQ(pixels.boxes[33][1], 1.0F / 32);
    EXPECT_FLOAT_EQ(pixels.boxes[1023][3], 1.0F);
}

TEST(Preprocess, TilesByHand) {
    const ImageCard rule = card("colsmol.json");
    // A letter page, 850 x 1100: the longer side becomes 2048, the other int(2048 * 850/1100) = 1582, even;
    // then 2048 is four tiles and int(2048 * 1582/2048) = 1582 rounds up to 2048 as well.
    const TiledSizes sizes = tiled_sizes(850, 1100, rule);
    EXPECT_EQ(sizes.first.width, 1582);
    EXPECT_EQ(sizes.first.height, 2048);
    EXPECT_EQ(sizes.whole.width, 2048);
    EXPECT_EQ(sizes.whole.height, 2048);
    // A strip, 1000 x 200: 2048 x 409, made even: 410; one row of four tiles.
    const TiledSizes strip = tiled_sizes(1000, 200, rule);
    EXPECT_EQ(strip.first.height, 410);
    EXPECT_EQ(strip.whole.height, 512);
    const Pixels pixels = preprocess(Image(1000, 200), rule, "test");
    EXPECT_EQ(pixels.shape, (std::vector<std::int64_t>{1, 5, 3, 512, 512}));
    EXPECT_EQ(pixels.boxes.size(), 5U * 64);
    EXPECT_FLOAT_EQ(pixels.boxes[64][0], 0.25F);       // second tile starts at a quarter
    EXPECT_FLOAT_EQ(pixels.boxes[4 * 64][2], 0.125F);  // the whole page again, eight cells wide
    EXPECT_EQ(pixels.markup.substr(0, 55), "<fake_token_around_image><row_1_col_1><image><image><im");
    EXPECT_NE(pixels.markup.find("<row_1_col_4>"), std::string::npos);
    EXPECT_NE(pixels.markup.find("\n\n<fake_token_around_image><global-img><image>"), std::string::npos);
    EXPECT_EQ(pixels.markup.find("<row_2_col_1>"), std::string::npos);
}

TEST(Preprocess, AbsurdShapesAreRefused) {
    EXPECT_THROW(preprocess(Image(4000, 10), card("colqwen2.5-v0.1.json"), "strip"), Error);
    EXPECT_THROW(preprocess(Image(4000, 10), card("colsmol.json"), "strip"), Error);
}

}  // namespace
}  // namespace marginmerge
