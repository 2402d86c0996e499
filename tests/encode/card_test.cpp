#include "encode/card.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "encode/json_fields.h"
#include "marginmerge/core/error.h"

namespace marginmerge {
namespace {

using nlohmann::json;

json minilm() { return json::parse(read_text_file(std::string(MARGINMERGE_CARDS) + "/minilm.json", 1 << 20)); }
json colpali() { return json::parse(read_text_file(std::string(MARGINMERGE_CARDS) + "/colpali-v1.3.json", 1 << 20)); }

std::string fault(const json& card) {
    try {
        parse_card(card.dump(), "card.json");
    } catch (const Error& error) {
        EXPECT_NE(error.code(), ErrorCode::internal);
        return error.what();
    }
    return "";
}

TEST(Card, EveryShippedCardIsValid) {
    std::size_t cards = 0;
    for (const auto& entry : std::filesystem::directory_iterator(MARGINMERGE_CARDS)) {
        const EncoderCard card = read_card(entry.path());
        EXPECT_FALSE(card.name.empty()) << entry.path();
        EXPECT_GE(card.dim, 128) << entry.path();
        ++cards;
    }
    EXPECT_GE(cards, 5U);
}

TEST(Card, SaysWhatTheFileSays) {
    const EncoderCard card = read_card(std::string(MARGINMERGE_CARDS) + "/colqwen2.5-v0.1.json");
    EXPECT_EQ(card.kind, EncoderCard::Kind::visual);
    EXPECT_EQ(card.image.resize, ImageCard::Resize::smart);
    EXPECT_EQ(card.image.layout, ImageCard::Layout::patches);
    EXPECT_EQ(card.image.max_pixels, 768 * 28 * 28);
    EXPECT_EQ(card.image.patch * card.image.merge, 28);
    EXPECT_EQ(card.query_graph().augment_count, 10);
    EXPECT_TRUE(card.document.keep.image);
    EXPECT_FALSE(card.document.keep.text);
}

TEST(Card, NamesTheFieldThatIsWrong) {
    json card = minilm();
    card.erase("tokenizer");
    EXPECT_THAT(fault(card), testing::HasSubstr("card.json: tokenizer: expected a value, found none"));
    card = minilm();
    card["dim"] = "many";
    EXPECT_THAT(fault(card),
                testing::HasSubstr("card.json: dim: expected a whole number from 1 to 16384, found string"));
    card = minilm();
    card["document"]["windw"] = 12;
    EXPECT_THAT(fault(card), testing::HasSubstr("document.windw: not a field of this format"));
    card = minilm();
    card["document"]["inputs"]["input_idz"] = "x";
    EXPECT_THAT(fault(card), testing::HasSubstr("document.inputs.input_idz"));
    card = minilm();
    card["document"]["template"] = "[CLS][SEP]";
    EXPECT_THAT(fault(card), testing::HasSubstr("expected {text} once, found it 0 times"));
    card = minilm();
    card["document"]["overlap"] = 200;
    EXPECT_THAT(fault(card), testing::HasSubstr("document.overlap: expected 0 to 128, found 200"));
    card = colpali();
    card["image"]["mean"] = {0.5, 0.5};
    EXPECT_THAT(fault(card), testing::HasSubstr("image.mean: expected 3 numbers, found 2"));
    card = colpali();
    card["image"]["std"] = {0.5, 0.0, 0.5};
    EXPECT_THAT(fault(card), testing::HasSubstr("image.std"));
    card = colpali();
    card["image"]["width"] = 450;
    EXPECT_THAT(fault(card), testing::HasSubstr("image.width: expected a multiple of patch x merge (14), found 450"));
    card = colpali();
    card["kind"] = "sound";
    EXPECT_THAT(fault(card), testing::HasSubstr("kind: expected one of text, visual, found 'sound'"));
    card = colpali();
    card.erase("query");
    EXPECT_THAT(fault(card), testing::HasSubstr("query: a visual encoder needs it"));
    card = colpali();
    card["schema"] = "other";
    EXPECT_THAT(fault(card), testing::HasSubstr("schema"));
}

TEST(Card, RefusesWhatIsNoJson) {
    EXPECT_THROW(parse_card("", "x"), Error);
    EXPECT_THROW(parse_card("[]", "x"), Error);
    EXPECT_THROW(parse_card("{\"schema\":", "x"), Error);
    EXPECT_THROW(parse_card(std::string(100000, '['), "x"), Error);
    EXPECT_THROW(parse_card("\xff\xfe{}", "x"), Error);
}

TEST(Card, EveryPrefixAndEveryNullFailsCleanly) {
    const std::string text = colpali().dump();
    for (std::size_t n = 0; n < text.size(); n += 7) EXPECT_THROW(parse_card(text.substr(0, n), "x"), Error) << n;
    // A wrong type anywhere is an Error or harmless, never another exception.
    const json whole = colpali();
    const json flat = whole.flatten();
    for (const auto& [path, value] : flat.items()) {
        for (const json& wrong : {json(nullptr), json(-1), json("x"), json::array(), json::object(), json(1e300)}) {
            json changed = whole;
            changed[json::json_pointer(path)] = wrong;
            try {
                parse_card(changed.dump(), "x");
            } catch (const Error& error) {
                EXPECT_NE(error.code(), ErrorCode::internal) << path << ": " << error.what();
            }
        }
    }
}

}  // namespace
}  // namespace marginmerge
