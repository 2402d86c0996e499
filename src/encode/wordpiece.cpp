#include "encode/wordpiece.h"

#include <algorithm>

#include "core/fail.h"

namespace marginmerge {

WordPiece::WordPiece(std::vector<std::string> vocabulary, Rules rules, std::map<std::string, std::int32_t> specials,
                     const std::string& source)
    : rules_(std::move(rules)), vocabulary_(std::move(vocabulary)) {
    specials_ = std::move(specials);
    ids_.reserve(vocabulary_.size());
    for (std::size_t i = 0; i < vocabulary_.size(); ++i) {
        ids_.emplace(vocabulary_[i], static_cast<std::int32_t>(i));
        longest_piece_ = std::max(longest_piece_, vocabulary_[i].size());
    }
    const auto found = ids_.find(rules_.unknown);
    if (found == ids_.end())
        fail(ErrorCode::corrupt, "{}: vocabulary: expected the unknown token '{}', found none", source, rules_.unknown);
    unknown_ = found->second;
}

std::string WordPiece::piece(std::int32_t id) const {
    if (id >= 0 && static_cast<std::size_t>(id) < vocabulary_.size()) return vocabulary_[static_cast<std::size_t>(id)];
    for (const auto& [name, special] : specials_) {
        if (special == id) return name;
    }
    return {};
}

std::vector<CodePoint> WordPiece::normalise(std::string_view text) const {
    std::vector<CodePoint> out;
    std::vector<char32_t> parts;
    for (const CodePoint& source : decode_utf8(text)) {
        CodePoint c = source;
        if (rules_.clean) {
            if (c.value == 0 || c.value == 0xFFFD || is_control(c.value)) continue;
            if (is_space(c.value)) c.value = ' ';
        }
        if (rules_.ideographs && is_cjk(c.value)) {
            out.push_back({' ', c.begin, c.begin});
            out.push_back(c);
            out.push_back({' ', c.end, c.end});
            continue;
        }
        parts.clear();
        if (rules_.strip_accents)
            decompose(c.value, parts);
        else
            parts.push_back(c.value);
        for (const char32_t part : parts) {
            if (rules_.strip_accents && is_mark(part)) continue;
            out.push_back({rules_.lowercase ? to_lower(part) : part, c.begin, c.end});
        }
    }
    return out;
}

void WordPiece::encode_word(const CodePoint* word, std::size_t length, std::vector<Token>& out) const {
    const Token whole{unknown_, word[0].begin, word[length - 1].end};
    if (length > rules_.longest_word) {
        out.push_back(whole);
        return;
    }
    std::string text;
    std::vector<std::size_t> position{0};  // byte offset of each code point in `text`
    for (std::size_t i = 0; i < length; ++i) {
        append_utf8(text, word[i].value);
        position.push_back(text.size());
    }
    const std::size_t before = out.size();
    std::string key;
    for (std::size_t first = 0; first < length;) {
        std::size_t last = length;
        for (; last > first; --last) {
            key.assign(first > 0 ? rules_.continuation : "");
            const std::size_t bytes = position[last] - position[first];
            if (key.size() + bytes > longest_piece_) continue;
            key.append(text, position[first], bytes);
            const auto found = ids_.find(key);
            if (found == ids_.end()) continue;
            out.push_back({found->second, word[first].begin, word[last - 1].end});
            break;
        }
        if (last == first) {  // no piece fits: the whole word is unknown
            out.resize(before);
            out.push_back(whole);
            return;
        }
        first = last;
    }
}

std::vector<Token> WordPiece::encode(std::string_view text) const {
    const std::vector<CodePoint> points = normalise(text);
    std::vector<Token> out;
    std::size_t first = 0;
    const auto flush = [&](std::size_t end) {
        if (end > first) encode_word(points.data() + first, end - first, out);
    };
    for (std::size_t i = 0; i < points.size(); ++i) {
        if (is_space(points[i].value)) {
            flush(i);
            first = i + 1;
        } else if (is_punctuation(points[i].value)) {
            flush(i);
            encode_word(points.data() + i, 1, out);
            first = i + 1;
        }
    }
    flush(points.size());
    return out;
}

std::unique_ptr<Tokenizer> parse_wordpiece_vocabulary(std::string_view text, const TokenizerCard& card,
                                                      const std::string& source) {
    std::vector<std::string> vocabulary;
    std::map<std::string, std::int32_t> specials = card.added_tokens;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        std::string token(text.substr(0, end));
        if (!token.empty() && token.back() == '\r') token.pop_back();
        if (token.size() > 2 && token.front() == '[' && token.back() == ']')
            specials.emplace(token, static_cast<std::int32_t>(vocabulary.size()));
        vocabulary.push_back(std::move(token));
        text.remove_prefix(std::min(end + 1, text.size()));
        if (vocabulary.size() > 4'000'000) fail(ErrorCode::unsupported, "{}: more than 4 million tokens", source);
    }
    WordPiece::Rules rules;
    rules.lowercase = card.lowercase;
    rules.strip_accents = card.strip_accents.value_or(card.lowercase);
    return std::make_unique<WordPiece>(std::move(vocabulary), std::move(rules), std::move(specials), source);
}

}  // namespace marginmerge
