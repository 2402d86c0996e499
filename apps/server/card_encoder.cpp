#include "core/fail.h"
#include "text_encoder.h"

#ifdef MARGINMERGE_HAS_ENCODE
#include "encode/encoder.h"
#endif

namespace marginmerge::server {

#ifdef MARGINMERGE_HAS_ENCODE

namespace {

class CardEncoder : public TextEncoder {
public:
    CardEncoder(const std::filesystem::path& card, const EncoderOptions& options)
        : encoder_(read_card(card), options) {}

    EncodedText encode(const std::string& text) override {
        EncodedQuery query = encoder_.encode_query(text);
        return {std::move(query.vectors), std::move(query.tokens)};
    }
    std::string description() const override { return encoder_.card().name; }

private:
    Encoder encoder_;
};

}  // namespace

std::unique_ptr<TextEncoder> make_card_encoder(const std::filesystem::path& card, const std::filesystem::path& models) {
    EncoderOptions options;
    options.models = models;
    options.documents = false;
    return std::make_unique<CardEncoder>(card, options);
}

#else

std::unique_ptr<TextEncoder> make_card_encoder(const std::filesystem::path&, const std::filesystem::path&) {
    fail(ErrorCode::unsupported,
         "this build has no encoder; run scripts/setup encode, scripts/fetch-encoder and rebuild");
}

#endif

}  // namespace marginmerge::server
