#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "encode/card.h"

namespace marginmerge {

/// A token and the bytes of the text it covers.
struct Token {
    std::int32_t id = 0;
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
};

/// Text to token ids. Thread-safe. Names of special tokens inside the text are plain text: a page
/// that happens to say "[SEP]" cannot steer the encoder.
class Tokenizer {
public:
    virtual ~Tokenizer() = default;
    virtual std::vector<Token> encode(std::string_view text) const = 0;
    /// The vocabulary entry of an id, as it is written in the vocabulary; empty when unknown.
    virtual std::string piece(std::int32_t id) const = 0;
    /// Tokens that a template may name, such as "[CLS]".
    const std::map<std::string, std::int32_t>& specials() const { return specials_; }

protected:
    std::map<std::string, std::int32_t> specials_;
};

/// Reads the tokenizer a card names. `file` is where it was found.
std::unique_ptr<Tokenizer> load_tokenizer(const TokenizerCard& card, const std::filesystem::path& file);

/// WordPiece from a vocab.txt (one token a line).
std::unique_ptr<Tokenizer> parse_wordpiece_vocabulary(std::string_view text, const TokenizerCard& card,
                                                      const std::string& source);
/// WordPiece or byte-level BPE from a tokenizer.json.
std::unique_ptr<Tokenizer> parse_tokenizer_json(std::string_view text, const TokenizerCard& card,
                                                const std::string& source);
/// A SentencePiece model (bytes of the .model file).
std::unique_ptr<Tokenizer> parse_sentencepiece(std::string_view bytes, const TokenizerCard& card,
                                               const std::string& source);

}  // namespace marginmerge
