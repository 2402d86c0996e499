#include <sentencepiece_processor.h>

#include "core/fail.h"
#include "encode/tokenizer.h"

namespace marginmerge {

namespace {

class SentencePiece final : public Tokenizer {
public:
    SentencePiece(std::string_view bytes, const TokenizerCard& card, const std::string& source) {
        const auto status = processor_.LoadFromSerializedProto({bytes.data(), bytes.size()});
        if (!status.ok()) fail(ErrorCode::corrupt, "{}: expected a SentencePiece model: {}", source, status.ToString());
        specials_ = card.added_tokens;
        for (int id = 0; id < processor_.GetPieceSize(); ++id) {
            // Control symbols, and the <...> names that models reserve as user-defined pieces.
            const std::string& name = processor_.IdToPiece(id);
            const bool named = name.size() > 2 && name.front() == '<' && name.back() == '>' && !processor_.IsByte(id);
            if (processor_.IsControl(id) || (named && !processor_.IsUnknown(id))) specials_.emplace(name, id);
        }
    }

    std::vector<Token> encode(std::string_view text) const override {
        std::vector<Token> out;
        const auto immutable = processor_.EncodeAsImmutableProto({text.data(), text.size()});
        for (std::size_t i = 0; i < immutable.pieces_size(); ++i) {
            const auto piece = immutable.pieces(static_cast<int>(i));
            out.push_back({static_cast<std::int32_t>(piece.id()), piece.begin(), piece.end()});
        }
        return out;
    }

    std::string piece(std::int32_t id) const override {
        for (const auto& [name, special] : specials_) {
            if (special == id) return name;
        }
        return id >= 0 && id < processor_.GetPieceSize() ? processor_.IdToPiece(id) : std::string();
    }

private:
    sentencepiece::SentencePieceProcessor processor_;
};

}  // namespace

std::unique_ptr<Tokenizer> parse_sentencepiece(std::string_view bytes, const TokenizerCard& card,
                                               const std::string& source) {
    return std::make_unique<SentencePiece>(bytes, card, source);
}

}  // namespace marginmerge
