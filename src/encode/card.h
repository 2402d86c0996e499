#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace marginmerge {

/// What an output vector stands for. A card lists which kinds are kept.
enum class VectorKind : std::uint8_t {
    image,    ///< a patch of the page image
    text,     ///< a token of the page's text or of the query
    prompt,   ///< a token of the fixed template around it, special tokens included
    augment,  ///< a repeated token that gives the query room to think
};

struct KeepKinds {
    bool image = false;
    bool text = false;
    bool prompt = false;
    bool augment = false;
    bool has(VectorKind kind) const {
        switch (kind) {
            case VectorKind::image: return image;
            case VectorKind::text: return text;
            case VectorKind::prompt: return prompt;
            case VectorKind::augment: return augment;
        }
        return false;
    }
};

struct TokenizerCard {
    enum class Type { wordpiece, bpe, sentencepiece };
    Type type = Type::wordpiece;
    std::filesystem::path file;                        ///< vocab.txt, tokenizer.json or tokenizer.model
    bool lowercase = true;                             ///< vocab.txt only: tokenizer.json says it itself
    std::optional<bool> strip_accents;                 ///< vocab.txt only; absent: as lowercase
    std::map<std::string, std::int32_t> added_tokens;  ///< specials the file does not list
};

/// How a graph is fed and what it gives back: for documents or for queries.
struct GraphCard {
    std::filesystem::path model;                ///< ONNX file
    std::map<std::string, std::string> inputs;  ///< role (input_ids, pixel_values, ...) -> input name
    std::string output;                         ///< [1,L,d] or [L,d]
    std::string text_template = "{text}";       ///< fixed text around {text}, {image}, {augment}
    std::string augment_token;                  ///< what {augment} repeats
    std::int64_t augment_count = 0;
    std::int64_t window = 512;      ///< most tokens in one run, template included
    std::int64_t overlap = 0;       ///< tokens shared by neighbouring windows (documents)
    bool skip_punctuation = false;  ///< drop vectors of pure punctuation (documents)
    KeepKinds keep;
};

/// From a page image to the numbers a visual encoder reads.
struct ImageCard {
    enum class Resize { exact, smart, tiles };
    enum class Layout { nchw, patches };
    enum class Filter { bilinear, bicubic, lanczos };
    Resize resize = Resize::exact;
    Layout layout = Layout::nchw;
    Filter filter = Filter::bicubic;
    std::int64_t width = 448;  ///< exact: the size fed
    std::int64_t height = 448;
    std::int64_t min_pixels = 0;  ///< smart: bounds of width x height
    std::int64_t max_pixels = 0;
    std::int64_t tile = 512;           ///< tiles: edge of one tile
    std::int64_t longest_edge = 2048;  ///< tiles: the page is brought to this size first
    std::int64_t patch = 14;           ///< pixels on a side of one patch
    std::int64_t merge = 1;            ///< patches on a side that become one vector
    std::int64_t temporal = 1;         ///< patches layout: frames one patch repeats
    double rescale = 1.0 / 255;
    std::array<double, 3> mean{0.5, 0.5, 0.5};
    std::array<double, 3> deviation{0.5, 0.5, 0.5};
    std::string token;  ///< the token that stands for one image vector
    // The tile rule writes its own markup around the image tokens.
    std::string tile_prefix;    ///< before every tile, for example <fake_token_around_image>
    std::string tile_name;      ///< {row} and {column} are replaced
    std::string row_end;        ///< after every row of tiles
    std::string global_prefix;  ///< before the whole page seen small
    std::string global_suffix;
};

struct ProjectionCard {
    std::filesystem::path file;  ///< safetensors: components [k,d] and, optionally, mean [d]
    bool present() const { return !file.empty(); }
};

/// What an ONNX encoder needs to be run: a small JSON file, see docs/encoders.md.
struct EncoderCard {
    enum class Kind { text, visual };
    std::string name;
    std::string description;
    Kind kind = Kind::text;
    std::int64_t dim = 0;  ///< of the graph's output, before any projection
    TokenizerCard tokenizer;
    GraphCard document;
    std::optional<GraphCard> query;  ///< absent: as for documents (text encoders)
    ImageCard image;                 ///< visual encoders only
    ProjectionCard projection;
    bool normalise = true;
    std::filesystem::path folder;  ///< where the card lies; its files are relative to it

    const GraphCard& query_graph() const { return query ? *query : document; }
};

/// Parses a card. `source` names it in errors; files stay as written, relative to nothing.
EncoderCard parse_card(std::string_view json, const std::string& source);

/// Reads a card (a JSON file, or a folder that holds card.json).
EncoderCard read_card(const std::filesystem::path& path);

/// The place of a file a card names: as written when absolute, else beside the card, else in
/// `models`. Throws Error(not_found) that says where it looked.
std::filesystem::path locate(const EncoderCard& card, const std::filesystem::path& file,
                             const std::filesystem::path& models);

/// The card at `path` as JSON with files made relative to `folder` and this projection in place.
std::string card_with_projection(const std::filesystem::path& path, const std::filesystem::path& models,
                                 const std::filesystem::path& folder, const std::string& projection);

}  // namespace marginmerge
