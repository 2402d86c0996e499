#include "encode/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "encode/byte_bpe.h"
#include "marginmerge/core/error.h"

namespace marginmerge {
namespace {

using nlohmann::json;

std::vector<std::string> pieces(const Tokenizer& t, std::string_view text) {
    std::vector<std::string> out;
    for (const auto& token : t.encode(text)) out.push_back(t.piece(token.id));
    return out;
}

std::vector<std::string> covered(const Tokenizer& t, std::string_view text) {
    std::vector<std::string> out;
    for (const auto& token : t.encode(text)) out.emplace_back(text.substr(token.begin, token.end - token.begin));
    return out;
}

std::unique_ptr<Tokenizer> words(const std::string& vocabulary, bool lowercase = true) {
    TokenizerCard card;
    card.lowercase = lowercase;
    return parse_wordpiece_vocabulary(vocabulary, card, "vocab.txt");
}

const std::string small_vocabulary =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\nthe\nun\n##aff\n##able\n##s\ncafe\n,\n.\n!\nnew\n##er\n中\n文\n-\nsocket\n'\ne\n$\n";

TEST(WordPiece, LongestPieceFirst) {
    const auto t = words(small_vocabulary);
    EXPECT_THAT(pieces(*t, "The unaffable, newer sockets!"),
                testing::ElementsAre("the", "un", "##aff", "##able", ",", "new", "##er", "socket", "##s", "!"));
    EXPECT_THAT(covered(*t, "The unaffable, newer sockets!"),
                testing::ElementsAre("The", "un", "aff", "able", ",", "new", "er", "socket", "s", "!"));
}

TEST(WordPiece, AccentsControlsSpacesAndIdeographs) {
    const auto t = words(small_vocabulary);
    EXPECT_THAT(pieces(*t, "CAF\xC3\x89"), testing::ElementsAre("cafe"));
    EXPECT_THAT(pieces(*t, "cafe\xCC\x81"), testing::ElementsAre("cafe"));  // combining acute
    EXPECT_THAT(covered(*t, "x caf\xC3\xA9 y"), testing::ElementsAre("x", "caf\xC3\xA9", "y"));
    EXPECT_THAT(pieces(*t, "the\xC2\xA0the\tthe\r\nthe"), testing::ElementsAre("the", "the", "the", "the"));
    EXPECT_THAT(pieces(*t, std::string("t\x01h\0e", 5)), testing::ElementsAre("the"));  // controls vanish
    EXPECT_THAT(pieces(*t, "the中文the"), testing::ElementsAre("the", "中", "文", "the"));
    EXPECT_THAT(pieces(*t, "$new"), testing::ElementsAre("$", "new"));  // ASCII symbols count as punctuation
}

TEST(WordPiece, UnknownWordsAndSpecialNames) {
    const auto t = words(small_vocabulary);
    EXPECT_THAT(pieces(*t, "the zebra"), testing::ElementsAre("the", "[UNK]"));
    EXPECT_THAT(pieces(*t, "unaffablex"), testing::ElementsAre("[UNK]"));  // one missing piece spoils the word
    EXPECT_THAT(pieces(*t, std::string(101, 'e')), testing::ElementsAre("[UNK]"));
    // The text may say [SEP]; it stays text.
    EXPECT_THAT(pieces(*t, "[SEP]"), testing::Each(testing::Eq("[UNK]")));
    EXPECT_EQ(t->specials().at("[SEP]"), 3);
    EXPECT_TRUE(t->encode("").empty());
    EXPECT_TRUE(t->encode(" \n\t ").empty());
    EXPECT_NO_THROW(t->encode("\xff\xfe\xc3"));
}

TEST(WordPiece, CaseStaysWhenTheCardSaysSo) {
    const auto t = words("[UNK]\nThe\nthe\n", false);
    EXPECT_THAT(pieces(*t, "The the THE"), testing::ElementsAre("The", "the", "[UNK]"));
}

json bpe_file() {
    json vocabulary = json::object();
    // Bytes 33..126 stand for themselves, the space for U+0120 and the line feed for U+010A.
    int id = 0;
    for (char c = '!'; c <= '~'; ++c) vocabulary[std::string(1, c)] = id++;
    vocabulary["\u0120"] = id++;
    vocabulary["\u010a"] = id++;
    json merges = json::array();
    for (const auto& [a, b] : std::vector<std::pair<std::string, std::string>>{
             {"l", "o"}, {"lo", "w"}, {"e", "r"}, {"\u0120", "low"}, {"\u0120low", "er"}, {"a", "a"}}) {
        vocabulary[a + b] = id++;
        merges.push_back(a + " " + b);
    }
    return {{"added_tokens", {{{"id", 500}, {"content", "<|end|>"}}}},
            {"normalizer", nullptr},
            {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}}},
            {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", merges}}}};
}

std::unique_ptr<Tokenizer> bpe(const json& file) {
    TokenizerCard card;
    card.type = TokenizerCard::Type::bpe;
    return parse_tokenizer_json(file.dump(), card, "tokenizer.json");
}

TEST(ByteBpe, MergesByRankInsideTheStretches) {
    const auto t = bpe(bpe_file());
    // GPT-2's pattern keeps a leading space with its word, so "low" and " lower" merge apart.
    EXPECT_THAT(pieces(*t, "low lower"), testing::ElementsAre("low", " lower"));
    EXPECT_THAT(covered(*t, "low lower"), testing::ElementsAre("low", " lower"));
    EXPECT_THAT(pieces(*t, "lower"), testing::ElementsAre("low", "er"));
    EXPECT_THAT(pieces(*t, "aaaaa"), testing::ElementsAre("aa", "aa", "a"));  // leftmost first
    EXPECT_THAT(pieces(*t, "low's"), testing::ElementsAre("low", "'", "s"));
    EXPECT_THAT(pieces(*t, "a  low"), testing::ElementsAre("a", " ", " low"));
    EXPECT_TRUE(t->encode("").empty());
}

TEST(ByteBpe, DigitsAndRegexSplitters) {
    json file = bpe_file();
    file["pre_tokenizer"] = {{"type", "Sequence"},
                             {"pretokenizers",
                              {{{"type", "Digits"}, {"individual_digits", true}},
                               {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}}}}};
    EXPECT_THAT(pieces(*bpe(file), "low12"), testing::ElementsAre("low", "1", "2"));
    file["pre_tokenizer"] = {
        {"type", "Split"}, {"pattern", {{"Regex", "(?<=lo)w"}}}, {"behavior", "Isolated"}, {"invert", false}};
    EXPECT_THAT(pieces(*bpe(file), "low"), testing::ElementsAre("lo", "w"));
}

TEST(ByteBpe, LongStretchesStayFast) {
    const auto t = bpe(bpe_file());
    EXPECT_EQ(t->encode(std::string(1 << 20, 'a')).size(), std::size_t{1} << 19);
}

TEST(ByteBpe, RefusesWhatItDoesNotUnderstand) {
    const auto refused = [](json file, const char* path, const json& value, const char* says) {
        file[json::json_pointer(path)] = value;
        try {
            bpe(file);
            ADD_FAILURE() << path;
        } catch (const Error& error) {
            EXPECT_THAT(error.what(), testing::HasSubstr(says)) << path;
        }
    };
    refused(bpe_file(), "/model/merges/0", "x y z", "model.merges");
    refused(bpe_file(), "/model/merges/0", 7, "model.merges");
    refused(bpe_file(), "/model/vocab/a", -3, "model.vocab");
    refused(bpe_file(), "/model/vocab/a", 4000000000U, "model.vocab");
    refused(bpe_file(), "/model/byte_fallback", true, "SentencePiece");
    refused(bpe_file(), "/pre_tokenizer/type", "Whitespace", "pre_tokenizer");
    refused(bpe_file(), "/normalizer", {{"type", "Lowercase"}}, "normalizer");
    refused(bpe_file(), "/model/type", "Unigram", "model.type");
    refused(bpe_file(), "/pre_tokenizer", {{"type", "Split"}, {"pattern", {{"Regex", "(("}}}, {"behavior", "Isolated"}},
            "pattern");
}

TEST(ByteBpe, AHostilePatternEnds) {
    json file = bpe_file();
    file["pre_tokenizer"] = {{"type", "Split"}, {"pattern", {{"Regex", "(a+)+$"}}}, {"behavior", "Isolated"}};
    const auto t = bpe(file);
    EXPECT_FALSE(t->encode(std::string(5000, 'a') + "!").empty());
}

TEST(ByteBpe, StandInsOfBytes) {
    EXPECT_EQ(byte_level_to_bytes("\u0120the"), " the");
    EXPECT_EQ(byte_level_to_bytes("\u010a"), "\n");
    EXPECT_EQ(byte_level_to_bytes("\u0100"), std::string(1, '\0'));
    EXPECT_EQ(byte_level_to_bytes("\u0143"), "\xad");
    EXPECT_EQ(byte_level_to_bytes("中"), std::nullopt);
}

TEST(SentencePiece, RefusesGarbage) {
    TokenizerCard card;
    card.type = TokenizerCard::Type::sentencepiece;
    EXPECT_THROW(parse_sentencepiece("", card, "x"), Error);
    EXPECT_THROW(parse_sentencepiece("garbage garbage", card, "x"), Error);
}

}  // namespace
}  // namespace marginmerge
