#include "encode/tokenizer.h"

#include "core/fail.h"
#include "encode/json_fields.h"

namespace marginmerge {

namespace {
constexpr std::uint64_t largest_tokenizer = 256 << 20;
}

std::unique_ptr<Tokenizer> load_tokenizer(const TokenizerCard& card, const std::filesystem::path& file) {
    const std::string bytes = read_text_file(file.string(), largest_tokenizer);
    if (card.type == TokenizerCard::Type::sentencepiece) return parse_sentencepiece(bytes, card, file.string());
    if (file.extension() == ".json") return parse_tokenizer_json(bytes, card, file.string());
    if (card.type == TokenizerCard::Type::wordpiece) return parse_wordpiece_vocabulary(bytes, card, file.string());
    fail(ErrorCode::unsupported, "{}: expected a tokenizer.json for a BPE tokenizer", file.string());
}

}  // namespace marginmerge
