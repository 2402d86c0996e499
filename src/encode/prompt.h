#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "encode/card.h"
#include "encode/tokenizer.h"

namespace marginmerge {

/// A token as it is fed, what it stands for, and where in the user's text it comes from.
struct PromptToken {
    std::int32_t id = 0;
    VectorKind kind = VectorKind::prompt;
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
};

/// Fills a template: fixed text (in which names of special tokens count), the user's text (in which
/// they do not), the image markup. Text next to fixed text is tokenized together with it.
std::vector<PromptToken> fill_template(const GraphCard& graph, const Tokenizer& tokenizer, std::string_view text,
                                       std::string_view image_markup, const std::string& image_token);

/// The tokens before and after {text}, for texts that are cut into windows.
struct Frame {
    std::vector<PromptToken> before, after;
};
Frame template_frame(const GraphCard& graph, const Tokenizer& tokenizer);

}  // namespace marginmerge
