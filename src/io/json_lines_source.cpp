#include <cmath>
#include <nlohmann/json.hpp>

#include "core/fail.h"
#include "io/array_documents.h"
#include "io/part_names.h"
#include "io/text_lines.h"

namespace marginmerge {

namespace {

using nlohmann::json;

// Takes one line's values as they come, without building a tree: numbers go straight into the
// document's matrix.
class LineReader : public nlohmann::json_sax<json> {
public:
    std::string id;
    bool has_id = false;
    std::vector<float> values;
    std::size_t rows = 0;
    std::size_t dim = 0;
    std::vector<double> grid;
    std::string problem;  // what is wrong with the line, empty if nothing

    void reset() {
        *this = LineReader(std::move(values));
        values.clear();
    }
    LineReader() = default;

    bool null() override { return scalar("null"); }
    bool boolean(bool) override { return scalar("a boolean"); }
    bool number_integer(number_integer_t value) override {
        return wants_id() ? set_id(std::to_string(value)) : number(static_cast<double>(value));
    }
    bool number_unsigned(number_unsigned_t value) override {
        return wants_id() ? set_id(std::to_string(value)) : number(static_cast<double>(value));
    }
    bool number_float(number_float_t value, const string_t&) override {
        return wants_id() ? refuse("id: expected text or a whole number, found a fraction") : number(value);
    }
    bool string(string_t& value) override { return wants_id() ? set_id(std::move(value)) : scalar("text"); }
    bool binary(binary_t&) override { return scalar("bytes"); }
    bool start_object(std::size_t) override {
        ++depth_;
        if (depth_ == 1) return true;
        if (part_ == Part::vectors) return refuse("vectors: expected lists of numbers, found an object");
        if (part_ == Part::id) return refuse("id: expected text or a whole number, found an object");
        if (part_ == Part::grid) return refuse("grid: expected [columns, rows], found an object");
        return true;
    }
    bool key(string_t& name) override {
        if (depth_ == 1) {
            part_ = part_names::is(part_names::vectors, name) ? Part::vectors
                    : part_names::is(part_names::ids, name)   ? Part::id
                    : part_names::is(part_names::grid, name)  ? Part::grid
                                                              : Part::other;
            if (part_ == Part::vectors && seen_vectors_) return refuse("vectors: expected them once, found them twice");
            if (part_ == Part::id && has_id) return refuse("id: expected it once, found it twice");
            seen_vectors_ = seen_vectors_ || part_ == Part::vectors;
        }
        return true;
    }
    bool end_object() override {
        --depth_;
        return true;
    }
    bool start_array(std::size_t) override {
        if (depth_ == 0) return refuse("expected an object, found a list");
        if (part_ == Part::id && depth_ == 1) return refuse("id: expected text or a whole number, found a list");
        ++depth_;
        if (part_ == Part::vectors && depth_ > 3) return refuse("vectors: expected [[...], ...], found deeper lists");
        row_begin_ = values.size();
        return true;
    }
    bool end_array() override {
        --depth_;
        // A flat list of numbers is one vector.
        const bool flat = depth_ == 1 && rows == 0 && !values.empty();
        if (part_ == Part::vectors && (depth_ == 2 || flat)) {
            const std::size_t found = values.size() - row_begin_;
            if (rows == 0) dim = found;
            if (found != dim)
                return refuse(
                    fmt::format("vectors: row {}: expected {} numbers like the first, found {}", rows, dim, found));
            ++rows;
        }
        return true;
    }
    bool parse_error(std::size_t position, const std::string& token, const json::exception&) override {
        if (problem.empty())
            problem = fmt::format("expected JSON, found '{}' at character {}", token.substr(0, 40), position);
        return false;
    }
    bool has_vectors() const { return seen_vectors_; }

private:
    enum class Part { other, id, vectors, grid };

    explicit LineReader(std::vector<float> reuse) : values(std::move(reuse)) {}
    bool refuse(std::string what) {
        if (problem.empty()) problem = std::move(what);
        return false;
    }
    bool wants_id() const { return depth_ == 1 && part_ == Part::id; }
    bool set_id(std::string text) {
        id = std::move(text);
        has_id = true;
        return true;
    }
    bool number(double value) {
        if (part_ == Part::vectors && depth_ >= 2) {
            if (depth_ == 2 && rows > 0)
                return refuse("vectors: expected lists of numbers, found a number between them");
            values.push_back(static_cast<float>(value));
            return true;
        }
        if (part_ == Part::grid && depth_ == 2) {
            if (grid.size() < 3) grid.push_back(value);
            return true;
        }
        return scalar("a number");
    }
    bool scalar(const char* what) {
        if (depth_ == 0) return refuse(fmt::format("expected an object, found {}", what));
        if (part_ == Part::vectors)
            return refuse(fmt::format("vectors: row {}: expected numbers, found {}", rows, what));
        if (part_ == Part::id && depth_ == 1)
            return refuse(fmt::format("id: expected text or a whole number, found {}", what));
        return true;
    }

    int depth_ = 0;
    Part part_ = Part::other;
    bool seen_vectors_ = false;
    std::size_t row_begin_ = 0;
};

class JsonLines : public VectorSource {
public:
    explicit JsonLines(ByteSource bytes) : bytes_(std::move(bytes)), lines_(bytes_.text()) {}

    bool next(SourceDocument& document) override {
        if (lines_.consumed() - released_ > (8U << 20)) {
            bytes_.release(released_, lines_.consumed() - released_);
            released_ = lines_.consumed();
        }
        std::string_view line;
        if (!lines_.next(line)) return false;
        reader_.reset();
        const bool whole = json::sax_parse(line.begin(), line.end(), &reader_);
        if (!whole || !reader_.problem.empty()) bad(reader_.problem.empty() ? "expected JSON" : reader_.problem);
        if (!reader_.has_vectors())
            bad("vectors: expected lists of numbers under 'vectors' or 'embeddings', found none");
        if (reader_.has_id && reader_.id.empty()) bad("id: expected text, found an empty one");
        document = {};
        document.id = std::move(reader_.id);
        document.grid = grid();
        if (reader_.rows > 0) {
            check_document(reader_.rows, reader_.dim, DType::f32, bytes_.name, fmt::format("line {}", lines_.number()));
            document.vectors = VectorsView(reader_.values.data(), ScalarType::f32, reader_.rows, reader_.dim);
        }
        return true;
    }
    std::string form() const override { return "JSON lines"; }

private:
    [[noreturn]] void bad(const std::string& what) const {
        fail(ErrorCode::corrupt, "{}: line {}: {}", bytes_.name, lines_.number(), what);
    }
    PatchGrid grid() const {
        const auto& g = reader_.grid;
        if (g.empty()) return {};
        const auto fits = [](double v) { return v >= 0 && v <= 65536 && v == std::floor(v); };
        if (g.size() != 2 || !fits(g[0]) || !fits(g[1])) bad("grid: expected [columns, rows], found something else");
        return {static_cast<std::int32_t>(g[0]), static_cast<std::int32_t>(g[1])};
    }

    ByteSource bytes_;
    TextLines lines_;
    std::size_t released_ = 0;
    LineReader reader_;
};

}  // namespace

std::unique_ptr<VectorSource> open_json_lines_source(ByteSource bytes) {
    return std::make_unique<JsonLines>(std::move(bytes));
}

}  // namespace marginmerge
