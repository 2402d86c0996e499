#include "encode/prompt.h"

#include <algorithm>

#include "core/fail.h"

namespace marginmerge {

namespace {

/// A stretch of the filled template.
struct Piece {
    std::string text;
    VectorKind kind = VectorKind::prompt;
    bool user = false;  ///< the user's own text: no special tokens in it
};

std::vector<Piece> expand(const GraphCard& graph, std::string_view text, std::string_view markup) {
    std::vector<Piece> out;
    std::string_view rest = graph.text_template;
    while (!rest.empty()) {
        struct Mark {
            std::string_view name;
            std::size_t at;
        };
        Mark first{"", rest.size()};
        for (const std::string_view name : {"{text}", "{image}", "{augment}"}) {
            const auto at = rest.find(name);
            if (at != std::string_view::npos && at < first.at) first = {name, at};
        }
        if (first.at > 0) out.push_back({std::string(rest.substr(0, first.at)), VectorKind::prompt, false});
        if (first.name == "{text}") out.push_back({std::string(text), VectorKind::text, true});
        if (first.name == "{image}") out.push_back({std::string(markup), VectorKind::prompt, false});
        if (first.name == "{augment}") {
            std::string repeated;
            for (std::int64_t i = 0; i < graph.augment_count; ++i) repeated += graph.augment_token;
            out.push_back({repeated, VectorKind::augment, false});
        }
        rest.remove_prefix(std::min(rest.size(), first.at + first.name.size()));
    }
    return out;
}

/// The special token that starts at `at`, the longest when several do.
const std::pair<const std::string, std::int32_t>* special_at(const std::map<std::string, std::int32_t>& specials,
                                                             const std::string& text, std::size_t at) {
    const std::pair<const std::string, std::int32_t>* best = nullptr;
    // All names that could match share the first character, so a short walk in the sorted map is enough.
    for (auto it = specials.lower_bound(text.substr(at, 1)); it != specials.end() && it->first[0] == text[at]; ++it) {
        if (text.compare(at, it->first.size(), it->first) == 0 && (!best || it->first.size() > best->first.size()))
            best = &*it;
    }
    return best;
}

/// Text between two special tokens, gathered from neighbouring pieces and tokenized as one.
class Run {
public:
    explicit Run(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}
    void append(std::string_view text, const Piece& piece) {
        if (piece.user) {
            user_begin_ = text_.size();
            user_end_ = user_begin_ + text.size();
        }
        text_ += text;
    }
    void flush(std::vector<PromptToken>& out) {
        for (const Token& t : tokenizer_.encode(text_)) {
            const bool user = t.end > user_begin_ && t.begin < user_end_;
            PromptToken p{t.id, user ? VectorKind::text : VectorKind::prompt, 0, 0};
            if (user) {
                p.begin = static_cast<std::uint32_t>(std::max<std::size_t>(t.begin, user_begin_) - user_begin_);
                p.end = static_cast<std::uint32_t>(std::min<std::size_t>(t.end, user_end_) - user_begin_);
            }
            out.push_back(p);
        }
        text_.clear();
        user_begin_ = user_end_ = 0;
    }
    bool empty() const { return text_.empty(); }

private:
    const Tokenizer& tokenizer_;
    std::string text_;
    std::size_t user_begin_ = 0, user_end_ = 0;
};

std::vector<PromptToken> tokenize(const std::vector<Piece>& pieces, const Tokenizer& tokenizer,
                                  const std::string& image_token) {
    std::vector<PromptToken> out;
    Run run(tokenizer);
    for (const Piece& piece : pieces) {
        if (piece.user) {
            run.append(piece.text, piece);
            continue;
        }
        std::size_t plain = 0;
        for (std::size_t at = 0; at < piece.text.size();) {
            const auto* special = special_at(tokenizer.specials(), piece.text, at);
            if (special == nullptr) {
                ++at;
                continue;
            }
            run.append(std::string_view(piece.text).substr(plain, at - plain), piece);
            if (!run.empty()) run.flush(out);
            out.push_back({special->second, special->first == image_token ? VectorKind::image : piece.kind, 0, 0});
            at += special->first.size();
            plain = at;
        }
        run.append(std::string_view(piece.text).substr(plain), piece);
    }
    if (!run.empty()) run.flush(out);
    return out;
}

}  // namespace

std::vector<PromptToken> fill_template(const GraphCard& graph, const Tokenizer& tokenizer, std::string_view text,
                                       std::string_view markup, const std::string& image_token) {
    return tokenize(expand(graph, text, markup), tokenizer, image_token);
}

Frame template_frame(const GraphCard& graph, const Tokenizer& tokenizer) {
    const auto pieces = expand(graph, "", "");
    const auto middle = std::find_if(pieces.begin(), pieces.end(), [](const Piece& p) { return p.user; });
    if (middle == pieces.end()) fail(ErrorCode::internal, "template without {{text}}");
    return {tokenize({pieces.begin(), middle}, tokenizer, {}), tokenize({middle + 1, pieces.end()}, tokenizer, {})};
}

}  // namespace marginmerge
