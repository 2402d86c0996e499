#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "encode/tokenizer.h"
#include "encode/unicode.h"

namespace marginmerge {

/// BERT's tokenizer: clean, set ideographs apart, strip accents, lowercase, split at spaces and
/// punctuation, then the longest vocabulary entry first.
class WordPiece final : public Tokenizer {
public:
    struct Rules {
        bool clean = true;
        bool ideographs = true;
        bool strip_accents = true;
        bool lowercase = true;
        std::string unknown = "[UNK]";
        std::string continuation = "##";
        std::size_t longest_word = 100;  ///< code points; longer words are unknown
    };
    WordPiece(std::vector<std::string> vocabulary, Rules rules, std::map<std::string, std::int32_t> specials,
              const std::string& source);

    std::vector<Token> encode(std::string_view text) const override;
    std::string piece(std::int32_t id) const override;

private:
    std::vector<CodePoint> normalise(std::string_view text) const;
    void encode_word(const CodePoint* word, std::size_t length, std::vector<Token>& out) const;

    Rules rules_;
    std::vector<std::string> vocabulary_;
    std::unordered_map<std::string, std::int32_t> ids_;
    std::int32_t unknown_ = 0;
    std::size_t longest_piece_ = 0;  ///< bytes; nothing longer is looked up
};

}  // namespace marginmerge
