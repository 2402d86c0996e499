#include "encode/card.h"

#include "core/fail.h"
#include "encode/json_fields.h"
#include "io/folders.h"

namespace marginmerge {

namespace {

constexpr std::uint64_t largest_card = 4 << 20;
constexpr std::int64_t largest_side = 16384;
constexpr std::int64_t largest_window = 32768;

const std::vector<std::string> roles = {"input_ids",    "attention_mask", "token_type_ids",      "position_ids",
                                        "pixel_values", "image_grid_thw", "pixel_attention_mask"};

KeepKinds keep_kinds(JsonFields& fields) {
    KeepKinds keep;
    for (const auto& word : fields.texts("keep", {"image", "text", "prompt", "augment"})) {
        keep.image = keep.image || word == "image";
        keep.text = keep.text || word == "text";
        keep.prompt = keep.prompt || word == "prompt";
        keep.augment = keep.augment || word == "augment";
    }
    return keep;
}

TokenizerCard parse_tokenizer(JsonFields fields) {
    TokenizerCard card;
    card.type = static_cast<TokenizerCard::Type>(fields.choice("type", {"wordpiece", "bpe", "sentencepiece"}));
    card.file = fields.text("file");
    card.lowercase = fields.boolean("lowercase", true);
    if (fields.has("strip_accents")) card.strip_accents = fields.boolean("strip_accents", true);
    if (fields.has("added_tokens")) {
        for (const auto& [token, id] : fields.raw("added_tokens").items()) {
            if (!id.is_number_integer() || id.get<std::int64_t>() < 0 || id.get<std::int64_t>() > INT32_MAX ||
                token.empty())
                fail(ErrorCode::corrupt, "{}: '{}': expected a token id, found {}", fields.where("added_tokens"), token,
                     id.dump());
            card.added_tokens[token] = id.get<std::int32_t>();
        }
    }
    fields.finish();
    return card;
}

void check_template(const GraphCard& graph, bool image, const std::string& where) {
    const auto count = [&](const std::string& needle) {
        std::size_t n = 0;
        for (auto at = graph.text_template.find(needle); at != std::string::npos;
             at = graph.text_template.find(needle, at + 1))
            ++n;
        return n;
    };
    const char* wanted = image ? "{image}" : "{text}";
    if (count(wanted) != 1)
        fail(ErrorCode::corrupt, "{}: expected {} once, found it {} times", where, wanted, count(wanted));
    if (count(image ? "{text}" : "{image}") != 0)
        fail(ErrorCode::corrupt, "{}: expected {} and not {}", where, wanted, image ? "{text}" : "{image}");
    if (count("{augment}") > 1) fail(ErrorCode::corrupt, "{}: expected {{augment}} at most once", where);
    if (count("{augment}") == 1 && graph.augment_token.empty())
        fail(ErrorCode::corrupt, "{}: {{augment}} needs augment_token", where);
}

GraphCard parse_graph(JsonFields fields, bool image) {
    GraphCard card;
    card.model = fields.text("model");
    JsonFields inputs = fields.object("inputs");
    for (const auto& role : roles) {
        if (inputs.has(role.c_str())) card.inputs[role] = inputs.text(role.c_str());
    }
    inputs.finish();
    if (card.inputs.empty())
        fail(ErrorCode::corrupt, "{}: expected at least one input, found none", fields.where("inputs"));
    if (image && card.inputs.count("pixel_values") == 0)
        fail(ErrorCode::corrupt, "{}: expected pixel_values, found none", fields.where("inputs"));
    if (!image && card.inputs.count("input_ids") == 0)
        fail(ErrorCode::corrupt, "{}: expected input_ids, found none", fields.where("inputs"));
    card.output = fields.text("output");
    card.text_template = fields.text("template", image ? "{image}" : "{text}");
    card.augment_token = fields.text("augment_token", "");
    card.augment_count = fields.integer("augment_count", 0, 1024, 0);
    card.window = fields.integer("window", 8, largest_window, 512);
    card.overlap = fields.integer("overlap", 0, card.window / 2, 0);
    card.skip_punctuation = fields.boolean("skip_punctuation", false);
    card.keep = keep_kinds(fields);
    check_template(card, image, fields.where("template"));
    if (image && !card.keep.image) fail(ErrorCode::corrupt, "{}: expected 'image' among them", fields.where("keep"));
    if (!image && !card.keep.text) fail(ErrorCode::corrupt, "{}: expected 'text' among them", fields.where("keep"));
    fields.finish();
    return card;
}

void parse_resize(JsonFields& fields, ImageCard& card) {
    switch (card.resize) {
        case ImageCard::Resize::exact:
            card.width = fields.integer("width", 1, largest_side);
            card.height = fields.integer("height", 1, largest_side);
            break;
        case ImageCard::Resize::smart:
            card.min_pixels = fields.integer("min_pixels", 1, largest_side * largest_side);
            card.max_pixels = fields.integer("max_pixels", card.min_pixels, largest_side * largest_side);
            break;
        case ImageCard::Resize::tiles:
            card.tile = fields.integer("tile", 16, largest_side);
            card.longest_edge = fields.integer("longest_edge", card.tile, largest_side);
            card.tile_prefix = fields.text("tile_prefix", "");
            card.tile_name = fields.text("tile_name", "");
            card.row_end = fields.text("row_end", "");
            card.global_prefix = fields.text("global_prefix", "");
            card.global_suffix = fields.text("global_suffix", "");
            break;
    }
}

ImageCard parse_image(JsonFields fields) {
    ImageCard card;
    card.resize = static_cast<ImageCard::Resize>(fields.choice("resize", {"exact", "smart", "tiles"}));
    card.layout = static_cast<ImageCard::Layout>(fields.choice("layout", {"nchw", "patches"}, 0));
    card.filter = static_cast<ImageCard::Filter>(fields.choice("filter", {"bilinear", "bicubic", "lanczos"}));
    parse_resize(fields, card);
    card.patch = fields.integer("patch", 1, 1024);
    card.merge = fields.integer("merge", 1, 64, 1);
    card.temporal = fields.integer("temporal", 1, 16, 1);
    card.rescale = fields.number("rescale", 1e-9, 1, 1.0 / 255);
    const auto mean = fields.numbers("mean", 3, -1000, 1000);
    const auto deviation = fields.numbers("std", 3, 1e-9, 1000);
    for (std::size_t c = 0; c < 3; ++c) {
        card.mean[c] = mean[c];
        card.deviation[c] = deviation[c];
    }
    card.token = fields.text("token", "");
    const std::int64_t cell = card.patch * card.merge;
    const auto divides = [&](std::int64_t side, const char* name) {
        if (side % cell != 0)
            fail(ErrorCode::corrupt, "{}: expected a multiple of patch x merge ({}), found {}", fields.where(name),
                 cell, side);
    };
    if (card.resize == ImageCard::Resize::exact) {
        divides(card.width, "width");
        divides(card.height, "height");
    }
    if (card.resize == ImageCard::Resize::tiles) divides(card.tile, "tile");
    if (card.layout == ImageCard::Layout::patches && card.resize == ImageCard::Resize::tiles)
        fail(ErrorCode::unsupported, "{}: 'patches' does not go with tiles", fields.where("layout"));
    fields.finish();
    return card;
}

EncoderCard from_json(const nlohmann::json& json, const std::string& source) {
    JsonFields root(json, source, "");
    if (root.text("schema") != "marginmerge.encoder")
        fail(ErrorCode::unsupported, "{}: expected 'marginmerge.encoder', found '{}'", root.where("schema"),
             root.text("schema"));
    root.integer("version", 1, 1);
    EncoderCard card;
    card.name = root.text("name");
    card.description = root.text("description", "");
    card.kind = static_cast<EncoderCard::Kind>(root.choice("kind", {"text", "visual"}));
    card.dim = root.integer("dim", 1, 16384);
    const bool visual = card.kind == EncoderCard::Kind::visual;
    card.tokenizer = parse_tokenizer(root.object("tokenizer"));
    card.document = parse_graph(root.object("document"), visual);
    if (root.has("query")) card.query = parse_graph(root.object("query"), false);
    if (visual && !card.query)
        fail(ErrorCode::corrupt, "{}: a visual encoder needs it, found none", root.where("query"));
    if (visual) {
        card.image = parse_image(root.object("image"));
        if (card.document.inputs.count("input_ids") != 0 && card.image.token.empty())
            fail(ErrorCode::corrupt, "{}: image.token: a graph with input_ids needs it, found none", source);
    }
    if (root.has("projection")) {
        JsonFields projection = root.object("projection");
        card.projection.file = projection.text("file");
        projection.finish();
    }
    card.normalise = root.boolean("normalise", true);
    root.finish();
    return card;
}

std::filesystem::path card_file(const std::filesystem::path& path) {
    std::error_code ignored;
    return std::filesystem::is_directory(path, ignored) ? path / "card.json" : path;
}

}  // namespace

EncoderCard parse_card(std::string_view text, const std::string& source) {
    return from_json(parse_json(text, source), source);
}

EncoderCard read_card(const std::filesystem::path& path) {
    const auto file = card_file(path);
    EncoderCard card = parse_card(read_text_file(file.string(), largest_card), file.string());
    card.folder = folder_of(file);
    return card;
}

std::filesystem::path locate(const EncoderCard& card, const std::filesystem::path& file,
                             const std::filesystem::path& models) {
    std::error_code ignored;
    auto beside = card.folder / file;  // an absolute file replaces the folder
    if (std::filesystem::is_regular_file(beside, ignored)) return beside;
    if (models.empty())
        fail(ErrorCode::not_found, "{}: encoder '{}' needs this file; see docs/encoders.md for where to get it",
             beside.string(), card.name);
    auto elsewhere = models / file;
    if (std::filesystem::is_regular_file(elsewhere, ignored)) return elsewhere;
    fail(ErrorCode::not_found, "{}: encoder '{}' needs this file; neither there nor in {}", beside.string(), card.name,
         models.string());
}

std::string card_with_projection(const std::filesystem::path& path, const std::filesystem::path& models,
                                 const std::filesystem::path& folder, const std::string& projection) {
    const auto file = card_file(path);
    const EncoderCard card = read_card(path);
    auto json = nlohmann::ordered_json::parse(read_text_file(file.string(), largest_card));
    const auto moved = [&](const std::filesystem::path& named) {
        const auto found = std::filesystem::absolute(locate(card, named, models)).lexically_normal();
        const auto relative = found.lexically_relative(std::filesystem::absolute(folder).lexically_normal());
        return (relative.empty() ? found : relative).generic_string();
    };
    json["tokenizer"]["file"] = moved(card.tokenizer.file);
    json["document"]["model"] = moved(card.document.model);
    if (card.query) json["query"]["model"] = moved(card.query->model);
    json["projection"] = {{"file", projection}};
    return json.dump(2) + "\n";
}

}  // namespace marginmerge
