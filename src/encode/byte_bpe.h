#pragma once

#include <array>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "encode/tokenizer.h"

namespace marginmerge {

/// Splits text into the stretches inside which merges may happen. One rule of a tokenizer.json.
class PreTokenizer {
public:
    virtual ~PreTokenizer() = default;
    /// Appends the [begin,end) stretches of text[begin,end).
    virtual void split(std::string_view text, std::uint32_t begin, std::uint32_t end,
                       std::vector<std::pair<std::uint32_t, std::uint32_t>>& out) const = 0;
};

/// Splits by a regular expression (PCRE syntax, Unicode): matches and what lies between them.
std::unique_ptr<PreTokenizer> regex_splitter(const std::string& pattern, const std::string& source);
/// Every digit on its own (or runs of digits set apart).
std::unique_ptr<PreTokenizer> digit_splitter(bool individual);
/// The regular expression of GPT-2, the default of byte-level tokenizers.
extern const char* const gpt2_pattern;

/// Byte-level byte-pair encoding, as GPT-2, Qwen, Llama 3 and SmolLM use it.
class ByteBpe final : public Tokenizer {
public:
    enum class Normaliser { none, nfc, nfkc };
    struct Parts {
        std::vector<std::string> vocabulary;                        ///< raw bytes; index = id; may have holes ("")
        std::vector<std::string> names;                             ///< as written in the file
        std::vector<std::pair<std::int32_t, std::int32_t>> merges;  ///< left and right id, by rank
        std::vector<std::int32_t> merged;                           ///< what each merge makes
        std::vector<std::unique_ptr<PreTokenizer>> splitters;
        Normaliser normaliser = Normaliser::none;
        bool prefix_space = false;
        bool ignore_merges = false;  ///< a whole stretch found in the vocabulary is taken as it is
        std::map<std::string, std::int32_t> specials;
    };
    explicit ByteBpe(Parts parts);

    std::vector<Token> encode(std::string_view text) const override;
    std::string piece(std::int32_t id) const override;

private:
    void encode_stretch(std::string_view text, std::uint32_t begin, std::uint32_t end, std::vector<Token>& out) const;
    std::vector<Token> encode_normalised(std::string_view text) const;

    struct Merge {
        std::int32_t rank = 0;
        std::int32_t id = 0;
    };
    Parts parts_;
    std::array<std::int32_t, 256> byte_ids_{};  ///< -1 when the vocabulary lacks the byte
    std::unordered_map<std::string, std::int32_t> ids_;
    std::unordered_map<std::uint64_t, Merge> merges_;
};

/// The printable stand-ins of byte-level vocabularies back to bytes; nothing when one is not.
std::optional<std::string> byte_level_to_bytes(std::string_view text);

}  // namespace marginmerge
