// Tokenizer files of all three kinds, and text through whatever they make. The first byte chooses the kind, the first
// zero byte after it separates the file from the text.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "encode/tokenizer.h"
#include "marginmerge/core/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace marginmerge;
    if (size == 0) return 0;
    const std::string_view all(reinterpret_cast<const char*>(data) + 1, size - 1);
    const std::size_t cut = data[0] % 4 == 3 ? std::string_view::npos : all.find('\0');
    const std::string_view file = all.substr(0, cut);
    const std::string_view text = cut == std::string_view::npos ? "Some text, it's 12 words." : all.substr(cut + 1);
    TokenizerCard card;
    try {
        std::unique_ptr<Tokenizer> tokenizer;
        switch (data[0] % 4) {
            case 0: tokenizer = parse_wordpiece_vocabulary(file, card, "fuzz"); break;
            case 1: tokenizer = parse_tokenizer_json(file, card, "fuzz"); break;
            case 2:
                card.type = TokenizerCard::Type::bpe;
                tokenizer = parse_tokenizer_json(file, card, "fuzz");
                break;
            default:
                card.type = TokenizerCard::Type::sentencepiece;
                tokenizer = parse_sentencepiece(file, card, "fuzz");
                break;
        }
        for (const Token& token : tokenizer->encode(text)) {
            if (token.begin > token.end || token.end > text.size()) std::abort();
            tokenizer->piece(token.id);
        }
    } catch (const Error&) {
    }
    return 0;
}
