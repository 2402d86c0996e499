#include "encode/encoder.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/fail.h"
#include "encode/onnx_session.h"
#include "encode/preprocess.h"
#include "encode/projection.h"
#include "encode/prompt.h"
#include "encode/unicode.h"
#include "kernels/products.h"

namespace marginmerge {

namespace {

constexpr std::size_t most_query_bytes = 64 * 1024;

TensorInput row(const std::string& name, std::vector<std::int64_t> values) {
    const auto n = static_cast<std::int64_t>(values.size());
    return {name, {1, n}, std::move(values)};
}

/// The token inputs a graph asks for. One text is one run: nothing is padded.
std::vector<TensorInput> token_inputs(const GraphCard& graph, const std::vector<PromptToken>& tokens) {
    std::vector<TensorInput> out;
    for (const auto& [role, name] : graph.inputs) {
        std::vector<std::int64_t> values(tokens.size());
        for (std::size_t i = 0; i < tokens.size(); ++i) {
            if (role == "input_ids") values[i] = tokens[i].id;
            if (role == "attention_mask") values[i] = 1;
            if (role == "position_ids") values[i] = static_cast<std::int64_t>(i);
        }
        if (role == "input_ids" || role == "attention_mask" || role == "position_ids" || role == "token_type_ids")
            out.push_back(row(name, std::move(values)));
    }
    return out;
}

std::vector<std::string> input_names(const GraphCard& graph) {
    std::vector<std::string> names;
    for (const auto& [role, name] : graph.inputs) names.push_back(name);
    return names;
}

bool only_punctuation(std::string_view text) {
    const auto points = decode_utf8(text);
    return std::all_of(points.begin(), points.end(),
                       [](const CodePoint& c) { return is_punctuation(c.value) || is_space(c.value); });
}

}  // namespace

struct Encoder::State {
    EncoderCard card;
    std::unique_ptr<Tokenizer> tokenizer;
    std::shared_ptr<OnnxSession> document, query;
    Projection projection;
    std::size_t dim = 0;

    void check_output(const Matrix& out, std::size_t expected, const GraphCard& graph) const {
        if (out.rows() != expected || out.cols() != static_cast<std::size_t>(card.dim))
            fail(ErrorCode::corrupt, "{}: output {}: expected {} x {} numbers, found {} x {}", graph.model.string(),
                 graph.output, expected, card.dim, out.rows(), out.cols());
        for (const float x : out.flat()) {
            if (!std::isfinite(x))
                fail(ErrorCode::corrupt, "{}: output {}: expected finite numbers, found {}", graph.model.string(),
                     graph.output, x);
        }
    }

    Matrix finish(Matrix vectors) const {
        if (projection.present()) vectors = projection.apply(vectors);
        if (card.normalise) normalise_rows(vectors);
        return vectors;
    }
};

Encoder::Encoder(EncoderCard card, const EncoderOptions& options) : state_(std::make_unique<State>()) {
    State& s = *state_;
    s.card = std::move(card);
    s.tokenizer = load_tokenizer(s.card.tokenizer, locate(s.card, s.card.tokenizer.file, options.models));
    const auto load = [&](const GraphCard& graph) {
        auto session = std::make_shared<OnnxSession>(locate(s.card, graph.model, options.models), options.threads);
        session->check(input_names(graph), graph.output);
        return session;
    };
    if (options.documents) s.document = load(s.card.document);
    if (options.queries) {
        const GraphCard& query = s.card.query_graph();
        const bool same = s.document && query.model == s.card.document.model && query.inputs == s.card.document.inputs;
        s.query = same ? s.document : load(query);
    }
    if (options.project && s.card.projection.present()) {
        const auto file = locate(s.card, s.card.projection.file, options.models);
        s.projection = read_projection(file);
        if (s.projection.components.cols() != static_cast<std::size_t>(s.card.dim))
            fail(ErrorCode::corrupt, "{}: components: the card says {} dimensions, found {}", file.string(), s.card.dim,
                 s.projection.components.cols());
    }
    s.dim = s.projection.present() ? s.projection.components.rows() : static_cast<std::size_t>(s.card.dim);
    if (s.card.kind == EncoderCard::Kind::visual && !s.card.image.token.empty() &&
        s.tokenizer->specials().count(s.card.image.token) == 0)
        fail(ErrorCode::corrupt, "{}: image.token: '{}' is no special token of the tokenizer", s.card.name,
             s.card.image.token);
}

Encoder::~Encoder() = default;
Encoder::Encoder(Encoder&&) noexcept = default;
Encoder& Encoder::operator=(Encoder&&) noexcept = default;

const EncoderCard& Encoder::card() const { return state_->card; }
std::size_t Encoder::dim() const { return state_->dim; }

EncodedPage Encoder::encode_text(const PageText& page) const {
    const State& s = *state_;
    const GraphCard& graph = s.card.document;
    const Frame frame = template_frame(graph, *s.tokenizer);
    const std::vector<Token> tokens = s.tokenizer->encode(page.text);
    const std::size_t framing = frame.before.size() + frame.after.size();
    if (static_cast<std::size_t>(graph.window) < framing + 4)
        fail(ErrorCode::corrupt, "{}: document.window: expected more than the {} tokens of the template", s.card.name,
             framing);
    const std::size_t room = static_cast<std::size_t>(graph.window) - framing;
    const std::size_t shared = std::min<std::size_t>(static_cast<std::size_t>(graph.overlap), room / 2);

    EncodedPage out;
    std::vector<float> values;
    const auto keep = [&](const float* vector, const Box& box) {
        values.insert(values.end(), vector, vector + s.card.dim);
        out.boxes.insert(out.boxes.end(), box.begin(), box.end());
    };
    for (std::size_t first = 0; first < tokens.size();) {
        const std::size_t last = std::min(tokens.size(), first + room);
        // Of two windows that share tokens, each answers for the half it has more context for.
        const std::size_t from = first == 0 ? 0 : first + shared / 2;
        const std::size_t to = last == tokens.size() ? last : last - (shared - shared / 2);
        std::vector<PromptToken> fed = frame.before;
        for (std::size_t i = first; i < last; ++i)
            fed.push_back({tokens[i].id, VectorKind::text, tokens[i].begin, tokens[i].end});
        fed.insert(fed.end(), frame.after.begin(), frame.after.end());
        const Matrix states = s.document->run(token_inputs(graph, fed), graph.output);
        s.check_output(states, fed.size(), graph);
        out.tokens += fed.size();
        for (std::size_t i = 0; i < fed.size(); ++i) {
            if (fed[i].kind != VectorKind::text) {
                if (graph.keep.has(fed[i].kind) && first == 0) keep(states.row(i), Box{});
                continue;
            }
            const std::size_t position = first + i - frame.before.size();
            if (position < from || position >= to) continue;
            const auto length = fed[i].end - fed[i].begin;
            if (graph.skip_punctuation && only_punctuation(std::string_view(page.text).substr(fed[i].begin, length)))
                continue;
            keep(states.row(i), page.box_of(fed[i].begin, fed[i].end));
        }
        if (last == tokens.size()) break;
        first = last - shared;
    }
    const auto dim = static_cast<std::size_t>(s.card.dim);
    out.vectors = s.finish(Matrix(ConstMatrix{values.data(), values.size() / dim, dim}));
    return out;
}

EncodedPage Encoder::encode_image(const Image& image, const std::string& source) const {
    const State& s = *state_;
    const GraphCard& graph = s.card.document;
    Pixels pixels = preprocess(image, s.card.image, source);
    const bool reads_tokens = graph.inputs.count("input_ids") != 0;
    std::vector<PromptToken> tokens;
    if (reads_tokens) {
        tokens = fill_template(graph, *s.tokenizer, "", pixels.markup, s.card.image.token);
    } else {
        tokens.assign(pixels.boxes.size(), {0, VectorKind::image, 0, 0});
    }
    const auto images = static_cast<std::size_t>(
        std::count_if(tokens.begin(), tokens.end(), [](const PromptToken& t) { return t.kind == VectorKind::image; }));
    if (images != pixels.boxes.size())
        fail(ErrorCode::corrupt, "{}: template: expected {} image tokens, found {}", s.card.name, pixels.boxes.size(),
             images);
    if (tokens.size() > static_cast<std::size_t>(graph.window))
        fail(ErrorCode::unsupported, "{}: needs {} tokens, the encoder's window is {}", source, tokens.size(),
             graph.window);
    std::vector<TensorInput> inputs = reads_tokens ? token_inputs(graph, tokens) : std::vector<TensorInput>{};
    for (const auto& [role, name] : graph.inputs) {
        if (role == "pixel_values") inputs.push_back({name, pixels.shape, std::move(pixels.values)});
        if (role == "image_grid_thw") inputs.push_back({name, {1, 3}, pixels.grid_thw});
        if (role == "pixel_attention_mask") {
            if (pixels.mask_shape.empty()) pixels.mask_shape = {1, pixels.shape[2], pixels.shape[3]};
            std::int64_t count = 1;
            for (const auto n : pixels.mask_shape) count *= n;
            inputs.push_back({name, pixels.mask_shape, std::vector<std::int64_t>(static_cast<std::size_t>(count), 1)});
        }
    }
    const Matrix states = s.document->run(inputs, graph.output);
    s.check_output(states, tokens.size(), graph);

    EncodedPage out;
    out.tokens = tokens.size();
    std::vector<float> values;
    std::size_t patch = 0, kept = 0;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        const bool is_image = tokens[i].kind == VectorKind::image;
        const Box box = is_image ? pixels.boxes[patch++] : Box{};
        if (!graph.keep.has(tokens[i].kind)) continue;
        values.insert(values.end(), states.row(i), states.row(i) + states.cols());
        out.boxes.insert(out.boxes.end(), box.begin(), box.end());
        ++kept;
    }
    if (kept == pixels.boxes.size()) out.grid = pixels.grid;
    out.vectors = s.finish(Matrix(ConstMatrix{values.data(), kept, states.cols()}));
    return out;
}

EncodedQuery Encoder::encode_query(std::string_view text) const {
    const State& s = *state_;
    const GraphCard& graph = s.card.query_graph();
    if (text.size() > most_query_bytes)
        fail(ErrorCode::invalid_argument, "query: expected at most {} bytes, found {}", most_query_bytes, text.size());
    std::vector<PromptToken> tokens = fill_template(graph, *s.tokenizer, text, "", "");
    // A query beyond the window loses words, not the closing part of the template.
    const auto window = static_cast<std::size_t>(graph.window);
    for (std::size_t i = tokens.size(); i-- > 0 && tokens.size() > window;) {
        if (tokens[i].kind == VectorKind::text) tokens.erase(tokens.begin() + static_cast<std::ptrdiff_t>(i));
    }
    EncodedQuery out;
    const bool any =
        std::any_of(tokens.begin(), tokens.end(), [](const PromptToken& t) { return t.kind == VectorKind::text; });
    if (!any) fail(ErrorCode::invalid_argument, "query: expected some text, found none");
    const Matrix states = s.query->run(token_inputs(graph, tokens), graph.output);
    s.check_output(states, tokens.size(), graph);
    std::vector<float> values;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        if (!graph.keep.has(tokens[i].kind)) continue;
        values.insert(values.end(), states.row(i), states.row(i) + states.cols());
        out.tokens.push_back(s.tokenizer->piece(tokens[i].id));
    }
    out.vectors = s.finish(Matrix(ConstMatrix{values.data(), out.tokens.size(), states.cols()}));
    return out;
}

}  // namespace marginmerge
