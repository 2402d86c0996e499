#include "encode/prompt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace marginmerge {
namespace {

const std::string vocabulary = "[UNK]\n[CLS]\n[SEP]\n[MASK]\n[IMG]\nquery\n:\nwhat\nprice\n##s\n";

std::unique_ptr<Tokenizer> tokenizer() { return parse_wordpiece_vocabulary(vocabulary, TokenizerCard{}, "vocab.txt"); }

struct Seen {
    std::string piece;
    VectorKind kind;
    bool operator==(const Seen&) const = default;
};

std::vector<Seen> seen(const Tokenizer& t, const std::vector<PromptToken>& tokens) {
    std::vector<Seen> out;
    for (const auto& token : tokens) out.push_back({t.piece(token.id), token.kind});
    return out;
}

TEST(Prompt, KindsFollowTheTemplate) {
    const auto t = tokenizer();
    GraphCard graph;
    graph.text_template = "[CLS]query: {text}{augment}[SEP]";
    graph.augment_token = "[MASK]";
    graph.augment_count = 2;
    using enum VectorKind;
    const auto tokens = fill_template(graph, *t, "what prices", "", "");
    EXPECT_THAT(seen(*t, tokens),
                testing::ElementsAre(Seen{"[CLS]", prompt}, Seen{"query", prompt}, Seen{":", prompt},
                                     Seen{"what", text}, Seen{"price", text}, Seen{"##s", text},
                                     Seen{"[MASK]", augment}, Seen{"[MASK]", augment}, Seen{"[SEP]", prompt}));
    EXPECT_EQ(tokens[4].begin, 5U);  // in the user's text, not in the template
    EXPECT_EQ(tokens[4].end, 10U);
}

TEST(Prompt, SpecialNamesInTheUsersTextAreText) {
    const auto t = tokenizer();
    GraphCard graph;
    graph.text_template = "[CLS]{text}";
    for (const auto& token : fill_template(graph, *t, "[SEP]", "", "")) {
        EXPECT_TRUE(token.kind != VectorKind::text || t->piece(token.id) == "[UNK]");
    }
}

TEST(Prompt, ImageTokensComeFromTheMarkup) {
    const auto t = tokenizer();
    GraphCard graph;
    graph.text_template = "[CLS]{image}query[SEP]";
    using enum VectorKind;
    EXPECT_THAT(seen(*t, fill_template(graph, *t, "", "[IMG][IMG]what", "[IMG]")),
                testing::ElementsAre(Seen{"[CLS]", prompt}, Seen{"[IMG]", image}, Seen{"[IMG]", image},
                                     Seen{"[UNK]", prompt}, Seen{"[SEP]", prompt}));  // "whatquery" is one word
}

TEST(Prompt, FrameIsWhatSurroundsTheText) {
    const auto t = tokenizer();
    GraphCard graph;
    graph.text_template = "[CLS]query:{text}[SEP]";
    const Frame frame = template_frame(graph, *t);
    EXPECT_EQ(frame.before.size(), 3U);
    EXPECT_EQ(frame.after.size(), 1U);
}

}  // namespace
}  // namespace marginmerge
