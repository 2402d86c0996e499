#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "encode/card.h"
#include "encode/image.h"
#include "encode/page_text.h"
#include "marginmerge/core/matrix.h"
#include "marginmerge/data/multi_vector_set.h"

namespace marginmerge {

/// A page as vectors, each with its place.
struct EncodedPage {
    Matrix vectors;
    std::vector<float> boxes;  ///< [n,4] in page fractions; zero for vectors without a place
    PatchGrid grid;            ///< known when the vectors are exactly a grid of patches
    std::size_t tokens = 0;    ///< tokens that went through the graph
};

/// A query as vectors, with the piece of vocabulary each stands for.
struct EncodedQuery {
    Matrix vectors;
    std::vector<std::string> tokens;
};

struct EncoderOptions {
    std::filesystem::path models;  ///< where to look for files that are not beside the card
    std::size_t threads = 1;       ///< inside one run of the graph
    bool documents = true;         ///< load the document graph
    bool queries = true;           ///< load the query graph
    bool project = true;           ///< apply the card's projection
};

/// A card brought to life: tokenizer and graphs loaded. Thread-safe.
class Encoder {
public:
    Encoder(EncoderCard card, const EncoderOptions& options);
    ~Encoder();
    Encoder(Encoder&&) noexcept;
    Encoder& operator=(Encoder&&) noexcept;

    const EncoderCard& card() const;
    std::size_t dim() const;  ///< of the vectors handed out, after projection

    /// Text encoders: one vector a token, long pages in overlapping windows.
    EncodedPage encode_text(const PageText& page) const;
    /// Visual encoders: `source` names the page in errors.
    EncodedPage encode_image(const Image& image, const std::string& source) const;
    EncodedQuery encode_query(std::string_view text) const;

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace marginmerge
