// The visual and text paths end to end on tiny graphs whose answers are known (make_models.py).
#include "encode/encoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "encode/json_fields.h"
#include "encode/onnx_session.h"
#include "encode/projection.h"
#include "encode/tokenizer.h"
#include "marginmerge/core/error.h"
#include "support/temporary_directory.h"

namespace marginmerge {
namespace {

std::filesystem::path model(const std::string& name) { return std::filesystem::path(ENCODE_TEST_MODELS) / name; }

Encoder encoder(const std::string& card) { return Encoder(read_card(model(card)), {}); }

/// Black, with one white rectangle in page fractions.
Image lit(std::uint32_t width, std::uint32_t height, const Box& box) {
    Image image(width, height);
    for (std::uint32_t y = 0; y < height; ++y) {
        for (std::uint32_t x = 0; x < width; ++x) {
            const double fx = (x + 0.5) / width, fy = (y + 0.5) / height;
            if (fx > box[0] && fx < box[2] && fy > box[1] && fy < box[3]) std::fill_n(image.row(y) + 3 * x, 3, 255);
        }
    }
    return image;
}

/// Dimension 0 of the tiny graphs is brightness: the vectors that light up.
std::vector<std::size_t> bright(const EncodedPage& page) {
    std::vector<std::size_t> out;
    for (std::size_t i = 0; i < page.vectors.rows(); ++i) {
        if (page.vectors(i, 0) > 0.5F) out.push_back(i);
    }
    return out;
}

void expect_inside(const EncodedPage& page, const Box& box, float slack) {
    const auto lights = bright(page);
    ASSERT_FALSE(lights.empty());
    for (const std::size_t i : lights) {
        EXPECT_GE(page.boxes[4 * i], box[0] - slack) << i;
        EXPECT_GE(page.boxes[4 * i + 1], box[1] - slack) << i;
        EXPECT_LE(page.boxes[4 * i + 2], box[2] + slack) << i;
        EXPECT_LE(page.boxes[4 * i + 3], box[3] + slack) << i;
    }
}

TEST(Encoder, ColPaliLightsTheRightPatch) {
    const Encoder e = encoder("colpali.json");
    const Box box{10 / 32.0F, 5 / 32.0F, 11 / 32.0F, 6 / 32.0F};  // exactly column 10, row 5
    const EncodedPage page = e.encode_image(lit(448, 448, box), "page");
    EXPECT_THAT(bright(page), testing::ElementsAre(5 * 32 + 10));
    expect_inside(page, box, 1e-6F);
    // 1,024 patches, then <bos>, the prompt and the line feed, which have no place.
    EXPECT_GT(page.vectors.rows(), 1024U);
    EXPECT_LT(page.vectors.rows(), 1060U);
    EXPECT_FALSE(page.grid.known());  // prompt vectors are kept: not a plain grid
    EXPECT_EQ(page.boxes[4 * 1024 + 2], 0.0F);
}

TEST(Encoder, ImageVectorsAloneAreAGrid) {
    EncoderCard card = read_card(model("colpali.json"));
    card.document.keep.prompt = false;
    const EncodedPage page = Encoder(card, {}).encode_image(lit(600, 200, {0, 0, 1, 1}), "page");
    EXPECT_EQ(page.vectors.rows(), 1024U);
    EXPECT_EQ(page.grid.columns, 32);
    EXPECT_EQ(page.grid.rows, 32);
    EXPECT_EQ(bright(page).size(), 1024U);
}

TEST(Encoder, ColQwenGridFollowsThePage) {
    EncoderCard card = read_card(model("colqwen.json"));
    card.document.keep.prompt = false;
    const Encoder e(card, {});
    // 560 x 840 pixels are multiples of 28 within the bounds: 20 x 30 vectors, one for each 28 x 28 block.
    const Box box{4 / 20.0F, 21 / 30.0F, 6 / 20.0F, 22 / 30.0F};
    const EncodedPage page = e.encode_image(lit(560, 840, box), "page");
    EXPECT_EQ(page.grid.columns, 20);
    EXPECT_EQ(page.grid.rows, 30);
    EXPECT_EQ(page.vectors.rows(), 600U);
    EXPECT_THAT(bright(page), testing::ElementsAre(21 * 20 + 4, 21 * 20 + 5));
    expect_inside(page, box, 1e-6F);
    // A larger page of the same shape stays within 768 vectors.
    const EncodedPage large = e.encode_image(lit(1400, 2100, box), "large");
    EXPECT_LE(large.vectors.rows(), 768U);
    expect_inside(large, box, 0.06F);
    const EncodedPage tiny = e.encode_image(lit(20, 20, {0, 0, 1, 1}), "tiny");
    EXPECT_EQ(tiny.vectors.rows(), 4U);
}

TEST(Encoder, ColQwenPromptIsFedAroundTheImage) {
    const Encoder e = encoder("colqwen.json");
    const EncodedPage page = e.encode_image(lit(56, 56, {0, 0, 1, 1}), "page");
    // <|im_start|>, "user" as u-s-er, a line feed and <|vision_start|> come first; then the four image vectors.
    const auto lights = bright(page);
    EXPECT_THAT(lights, testing::ElementsAre(6, 7, 8, 9));
    EXPECT_EQ(page.boxes[4 * lights[0] + 2], 0.5F);
    EXPECT_EQ(page.boxes[2], 0.0F);
}

TEST(Encoder, ColSmolTilesAndWhole) {
    const Encoder e = encoder("colsmol.json");
    const Box box{0.5F, 0.5F, 1, 1};
    const EncodedPage page = e.encode_image(lit(1024, 1024, box), "page");
    // 4 x 4 tiles and the page as a whole, 64 vectors each; a quarter of all is lit.
    std::size_t placed = 0;
    for (std::size_t i = 0; i < page.vectors.rows(); ++i) placed += page.boxes[4 * i + 2] > 0 ? 1 : 0;
    EXPECT_EQ(placed, 17U * 64);
    EXPECT_EQ(bright(page).size(), 17U * 64 / 4);
    expect_inside(page, box, 0.01F);
    EXPECT_FALSE(page.grid.known());
}

TEST(Encoder, QueriesKeepWhatTheCardKeeps) {
    const Encoder e = encoder("colpali.json");
    const EncodedQuery query = e.encode_query("what is the price");
    EXPECT_EQ(query.vectors.rows(), query.tokens.size());
    EXPECT_EQ(query.tokens.front(), "<bos>");
    EXPECT_EQ(std::count(query.tokens.begin(), query.tokens.end(), "<pad>"), 10);
    EXPECT_EQ(query.tokens.back(), "\n");
    for (std::size_t i = 0; i < query.vectors.rows(); ++i) {
        float norm = 0;
        for (std::size_t j = 0; j < query.vectors.cols(); ++j) norm += query.vectors(i, j) * query.vectors(i, j);
        EXPECT_NEAR(norm, 1, 1e-5);
    }
    EXPECT_THROW(e.encode_query(""), Error);
    EXPECT_THROW(e.encode_query(std::string(100000, 'x')), Error);
    // A query past the window loses words, never the template's end.
    EncoderCard card = read_card(model("colpali.json"));
    card.query->window = 24;
    const EncodedQuery cut =
        Encoder(card, {}).encode_query("what is the price of a page table figure number one two three");
    EXPECT_EQ(cut.tokens.size(), 24U);
    EXPECT_EQ(cut.tokens.back(), "\n");
}

EncoderCard text_card(std::int64_t window, std::int64_t overlap) {
    EncoderCard card;
    card.name = "tiny text";
    card.dim = 16;
    card.tokenizer.type = TokenizerCard::Type::bpe;
    card.tokenizer.file = "qwen.json";
    card.document.model = "text.onnx";
    card.document.inputs = {{"input_ids", "input_ids"}, {"attention_mask", "attention_mask"}};
    card.document.output = "embeddings";
    card.document.text_template = "<|im_start|>{text}<|im_end|>";
    card.document.window = window;
    card.document.overlap = overlap;
    card.document.keep.text = true;
    card.folder = ENCODE_TEST_MODELS;
    return card;
}

TEST(Encoder, WindowsCoverEveryTokenOnce) {
    PageText page;
    for (int i = 0; i < 97; ++i) {
        page.text += static_cast<char>('a' + i % 26);
        page.text += ' ';
        const auto at = static_cast<std::uint32_t>(2 * i);
        page.spans.push_back({at, at + 1, {static_cast<float>(i) / 100, 0.1F, static_cast<float>(i + 1) / 100, 0.2F}});
    }
    const Encoder whole(text_card(2000, 0), {});
    const EncodedPage one = whole.encode_text(page);
    for (const auto& [window, overlap] : {std::pair{12, 0}, {12, 4}, {13, 5}, {50, 24}}) {
        const EncodedPage cut = Encoder(text_card(window, overlap), {}).encode_text(page);
        // The tiny graph has no context, so windows must give exactly what one run gives, in order.
        ASSERT_EQ(cut.vectors.rows(), one.vectors.rows()) << window << "/" << overlap;
        EXPECT_TRUE(std::equal(cut.vectors.flat().begin(), cut.vectors.flat().end(), one.vectors.flat().begin()));
        EXPECT_EQ(cut.boxes, one.boxes);
    }
    EXPECT_FLOAT_EQ(one.boxes[0], 0.0F);
    EXPECT_FLOAT_EQ(one.boxes[2], 0.01F);
}

TEST(Encoder, PunctuationCanBeLeftOut) {
    EncoderCard card = text_card(100, 0);
    PageText page;
    page.text = "a, b.";
    EXPECT_EQ(Encoder(card, {}).encode_text(page).vectors.rows(), 5U);  // a , blank b .
    card.document.skip_punctuation = true;
    EXPECT_EQ(Encoder(card, {}).encode_text(page).vectors.rows(), 2U);
}

TEST(Encoder, ProjectionIsAppliedBeforeNormalising) {
    const test::TemporaryDirectory folder;
    PcaFitter fitter(16);
    Matrix rows(40, 16);
    for (std::size_t i = 0; i < rows.rows(); ++i) {
        rows(i, 3) = 2 + static_cast<float>(i % 3);
        rows(i, 7) = static_cast<float>(i % 5) / 5;
    }
    fitter.add(rows);
    double kept = 0;
    const Projection fitted = fitter.fit(2, &kept);
    EXPECT_NEAR(kept, 1, 1e-9);  // everything lies in two dimensions
    write_projection(folder / "p.safetensors", fitted);
    EncoderCard card = text_card(100, 0);
    card.projection.file = folder / "p.safetensors";
    const Encoder e(card, {});
    EXPECT_EQ(e.dim(), 2U);
    PageText page;
    page.text = "abc";
    const EncodedPage encoded = e.encode_text(page);
    EXPECT_EQ(encoded.vectors.cols(), 2U);
    EXPECT_NEAR(encoded.vectors(0, 0) * encoded.vectors(0, 0) + encoded.vectors(0, 1) * encoded.vectors(0, 1), 1, 1e-5);
}

TEST(Encoder, CardsThatDoNotFitTheGraphSaySo) {
    const auto says = [](EncoderCard card) {
        try {
            const Encoder e(std::move(card), {});
            PageText page;
            page.text = "abc";
            e.encode_text(page);
        } catch (const Error& error) {
            return std::string(error.what());
        }
        return std::string();
    };
    EncoderCard card = text_card(100, 0);
    card.document.inputs["token_type_ids"] = "token_type_ids";
    EXPECT_THAT(says(card),
                testing::HasSubstr("the card feeds attention_mask, input_ids, token_type_ids, the graph wants"));
    card = text_card(100, 0);
    card.document.output = "other";
    EXPECT_THAT(says(card), testing::HasSubstr("the graph gives embeddings"));
    card = text_card(100, 0);
    card.dim = 17;
    EXPECT_THAT(says(card), testing::HasSubstr("x 17 numbers, found"));
    card = text_card(100, 0);
    card.document.model = "missing.onnx";
    EXPECT_THAT(says(card), testing::HasSubstr("missing.onnx: encoder 'tiny text' needs this file"));
    card = text_card(100, 0);
    card.document.model = "qwen.json";
    EXPECT_THAT(says(card), testing::HasSubstr("expected an ONNX graph"));
}

TEST(OnnxSession, BrokenGraphsAreErrors) {
    const test::TemporaryDirectory folder;
    const std::string whole = read_text_file(model("text.onnx").string(), 1 << 24);
    for (const std::size_t n : {std::size_t{0}, std::size_t{1}, std::size_t{50}, whole.size() / 2, whole.size() - 1}) {
        std::ofstream(folder / "cut.onnx", std::ios::binary) << whole.substr(0, n);
        EXPECT_THROW(OnnxSession(folder / "cut.onnx", 1), Error) << n;
    }
}

}  // namespace
}  // namespace marginmerge
