// Arrow IPC streams and files: documents from a column list<fixed_size_list<float>[d]>, list<list<float>>
// or one vector a row.
#include <algorithm>
#include <cstring>
#include <optional>

#include "core/fail.h"
#include "io/array_documents.h"
#include "io/arrow_format.h"
#include "io/decompress.h"
#include "io/flat.h"
#include "io/part_names.h"
#include "io/vector_column.h"

namespace marginmerge {

using namespace arrow;

namespace {

constexpr int max_field_depth = 32;

struct ArrowField {
    std::string name;
    Type type = Type::none;
    std::int64_t list_size = 0;  ///< of a fixed-size list
    std::int64_t width = 0;      ///< bits of an integer; precision of a float
    bool is_signed = true;
    bool dictionary = false;
    std::vector<ArrowField> children;

    bool list() const { return type == Type::list || type == Type::large_list || type == Type::fixed_list; }
    bool text() const { return type == Type::utf8 || type == Type::large_utf8; }
};

ArrowField read_field(const FlatTable& table, const std::string& source, int depth) {
    if (depth > max_field_depth) fail(ErrorCode::corrupt, "{}: schema: expected fewer nested fields", source);
    ArrowField out;
    out.name = std::string(table.text(field::name));
    out.type = static_cast<Type>(table.number(field::type_type, 1, 0));
    out.dictionary = table.has(field::dictionary);
    if (table.has(field::type)) {
        const FlatTable type = table.table(field::type);
        if (out.type == Type::fixed_list) out.list_size = type.number(0, 4, 0);
        if (out.type == Type::integer) {
            out.width = type.number(0, 4, 0);
            out.is_signed = type.number(1, 1, 0) != 0;
        }
        if (out.type == Type::real) out.width = type.number(0, 2, 0);
    }
    const std::size_t children = table.count(field::children);
    for (std::size_t i = 0; i < children; ++i)
        out.children.push_back(read_field(table.table(field::children, i), source, depth + 1));
    if (out.list() && out.children.size() != 1)
        fail(ErrorCode::corrupt, "{}: column {}: expected one child of a list, found {}", source, out.name, children);
    return out;
}

/// How many vectors a row the column may hold: 2 for a list of lists of floats, 1 for a list of floats, else 0.
int vector_depth(const ArrowField& f) {
    if (f.dictionary || !f.list()) return 0;
    const ArrowField& child = f.children[0];
    if (child.type == Type::real && child.width >= 0 && child.width <= 2) return 1;
    return child.list() && vector_depth(child) == 1 && !child.dictionary ? 2 : 0;
}

/// One field of a record batch.
struct ArrowArray {
    const ArrowField* field = nullptr;
    std::int64_t length = 0, nulls = 0;
    std::vector<std::span<const std::byte>> buffers;  ///< the first is the validity bitmap, where the type has one
    std::vector<ArrowArray> children;

    bool valid(std::int64_t i) const {
        if (nulls == 0 || buffers.empty() || buffers[0].empty()) return true;
        return (static_cast<unsigned>(buffers[0][static_cast<std::size_t>(i / 8)]) >> (i % 8) & 1) != 0;
    }
};

/// Reads the parts of a record batch in the order in which fields stand in the schema, depth first.
class BatchReader {
public:
    BatchReader(const FlatTable& batch, std::span<const std::byte> body, const std::string& source)
        : body_(body),
          source_(source),
          nodes_(batch.structs(batch::nodes, 16)),
          buffers_(batch.structs(batch::buffers, 16)) {
        if (!batch.has(batch::compression)) return;
        const auto codec = batch.table(batch::compression).number(0, 1, 0);
        if (codec != 0 && codec != 1)
            fail(ErrorCode::unsupported, "{}: compression: expected lz4 or zstd, found {}", source, codec);
        compression_ = codec == 0 ? Compression::lz4_frame : Compression::zstd;
    }

    /// `wanted`: whether the buffers will be looked at; others are not unpacked.
    ArrowArray read(const ArrowField& f, bool wanted) {
        ArrowArray out;
        out.field = &f;
        out.length = number(nodes_, node_++, 0);
        out.nulls = number(nodes_, node_ - 1, 1);
        if (out.length < 0 || out.nulls < 0) bad("a length that is not negative");
        const int buffers = f.dictionary ? 2 : buffers_of(f);
        for (int i = 0; i < buffers; ++i) out.buffers.push_back(buffer(wanted));
        if (wanted && buffers > 0 && out.nulls > 0 && !out.buffers[0].empty() &&
            out.buffers[0].size() < (static_cast<std::uint64_t>(out.length) + 7) / 8)
            bad("a bit for every value");
        if (!f.dictionary)
            for (const ArrowField& child : f.children) out.children.push_back(read(child, wanted));
        return out;
    }

private:
    [[noreturn]] void bad(const char* what) const {
        fail(ErrorCode::corrupt, "{}: record batch: expected {}, found otherwise", source_, what);
    }
    std::int64_t number(std::span<const std::byte> pairs, std::size_t index, std::size_t part) const {
        if (index >= pairs.size() / 16) bad("a node and buffers for every field");
        std::int64_t value = 0;
        std::memcpy(&value, pairs.data() + 16 * index + 8 * part, 8);
        return value;
    }
    int buffers_of(const ArrowField& f) const {
        switch (f.type) {
            case Type::null: return 0;
            case Type::structure:
            case Type::fixed_list: return 1;
            case Type::binary:
            case Type::utf8:
            case Type::large_binary:
            case Type::large_utf8: return 3;
            case Type::union_:
            case Type::none: break;
            default:
                if (f.type <= Type::large_list) return 2;
        }
        fail(ErrorCode::unsupported, "{}: column {}: a type this reader does not know ({})", source_, f.name,
             static_cast<std::int64_t>(f.type));
    }
    std::span<const std::byte> buffer(bool wanted) {
        const std::int64_t offset = number(buffers_, buffer_++, 0), length = number(buffers_, buffer_ - 1, 1);
        if (offset < 0 || length < 0 || static_cast<std::uint64_t>(offset) > body_.size() ||
            static_cast<std::uint64_t>(length) > body_.size() - static_cast<std::uint64_t>(offset))
            bad("buffers inside the message");
        const auto raw = body_.subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(length));
        if (!compression_ || raw.empty() || !wanted) return raw;
        if (raw.size() < 8) bad("the size of a packed buffer");
        std::int64_t size = 0;
        std::memcpy(&size, raw.data(), 8);
        if (size == -1) return raw.subspan(8);
        if (size < 0) bad("the size of a packed buffer");
        auto& unpacked = unpacked_.emplace_back(std::make_unique<std::vector<std::byte>>());
        decompress(*compression_, raw.subspan(8), static_cast<std::uint64_t>(size), *unpacked, source_, "buffer");
        return *unpacked;
    }

    std::span<const std::byte> body_;
    const std::string& source_;
    std::span<const std::byte> nodes_, buffers_;
    std::size_t node_ = 0, buffer_ = 0;
    std::optional<Compression> compression_;
    std::vector<std::unique_ptr<std::vector<std::byte>>> unpacked_;
};

struct Range {
    std::int64_t begin = 0, end = 0;
};

/// Elements of row i of a list of any kind, checked against its child.
Range elements(const ArrowArray& list, std::int64_t i, const std::string& source) {
    const std::int64_t available = list.children[0].length;
    Range range;
    if (list.field->type == Type::fixed_list) {
        const std::int64_t size = list.field->list_size;
        if (size <= 0 || size > available || i >= available / size)
            fail(ErrorCode::corrupt, "{}: column {}: row {}: expected {} elements, found the end", source,
                 list.field->name, i, size);
        return {i * size, (i + 1) * size};
    }
    const bool large = list.field->type == Type::large_list;
    const std::size_t width = large ? 8 : 4;
    const auto& offsets = list.buffers[1];
    if (offsets.size() / width < static_cast<std::uint64_t>(i) + 2)
        fail(ErrorCode::corrupt, "{}: column {}: row {}: expected an offset, found the end", source, list.field->name,
             i);
    const auto at = [&](std::int64_t k) -> std::int64_t {
        if (large) {
            std::int64_t v = 0;
            std::memcpy(&v, offsets.data() + 8 * k, 8);
            return v;
        }
        std::int32_t v = 0;
        std::memcpy(&v, offsets.data() + 4 * k, 4);
        return v;
    };
    range = {at(i), at(i + 1)};
    if (range.begin < 0 || range.end < range.begin || range.end > available)
        fail(ErrorCode::corrupt, "{}: column {}: row {}: expected offsets from 0 to {}, found {} to {}", source,
             list.field->name, i, available, range.begin, range.end);
    return range;
}

class ArrowSource : public VectorSource {
public:
    explicit ArrowSource(ByteSource bytes) : bytes_(std::move(bytes)), end_(bytes_.bytes.size()) {
        const std::string_view text = bytes_.text();
        if (text.substr(0, file_magic.size()) == file_magic) {
            // The file form is the stream between a magic number and a footer.
            position_ = 8;
            std::uint32_t footer = 0;
            if (text.size() < 18 || text.substr(text.size() - file_magic.size()) != file_magic)
                fail(ErrorCode::corrupt,
                     "{}: footer: expected ARROW1 at the end, found something else (a download cut short?)",
                     bytes_.name);
            std::memcpy(&footer, text.data() + text.size() - 10, sizeof footer);
            if (footer > text.size() - 18)
                fail(ErrorCode::corrupt, "{}: footer: expected at most {} bytes, found {}", bytes_.name,
                     text.size() - 18, footer);
            end_ = text.size() - 10 - footer;
            // Writers need not repeat the schema in front of the batches, but the footer always has it.
            const FlatTable table = FlatTable::root(bytes_.bytes.subspan(end_, footer), bytes_.name);
            if (!table.has(footer::schema)) bad("footer: expected a schema, found none");
            read_schema(table.table(footer::schema));
            return;
        }
        std::optional<FlatTable> table;
        std::span<const std::byte> body;
        if (!message(table, body) ||
            table->number(message::header_type, 1, 0) != static_cast<std::int64_t>(Header::schema))
            bad("expected a schema first, found something else");
        read_schema(table->table(message::header));
    }

    bool next(SourceDocument& document) override {
        while (row_ == rows_)
            if (!next_batch()) return false;
        document = {};
        if (ids_) document.id = id(*ids_, row_);
        read_vectors(document);
        ++row_;
        ++document_;
        return true;
    }
    std::string form() const override { return "Arrow IPC, column " + fields_[vectors_field_].name; }

private:
    [[noreturn]] void bad(const std::string& what) const { fail(ErrorCode::corrupt, "{}: {}", bytes_.name, what); }

    /// The next message's table, and its body; false at the end of the stream.
    bool message(std::optional<FlatTable>& table, std::span<const std::byte>& body) {
        const auto number = [&] {
            if (end_ - position_ < 4) bad(fmt::format("byte {}: expected a message, found the end", position_));
            std::uint32_t value = 0;
            std::memcpy(&value, bytes_.bytes.data() + position_, sizeof value);
            position_ += 4;
            return value;
        };
        if (position_ == end_) return false;
        std::uint32_t length = number();
        if (length == continuation) length = number();
        if (length == 0) return false;
        if (length > end_ - position_)
            bad(fmt::format("message: expected at most {} bytes, found {}", end_ - position_, length));
        const auto metadata = bytes_.bytes.subspan(position_, length);
        position_ += length;
        table = FlatTable::root(metadata, bytes_.name);
        const std::int64_t bytes = table->number(message::body_length, 8, 0);
        if (bytes < 0 || static_cast<std::uint64_t>(bytes) > end_ - position_)
            bad(fmt::format("message: expected a body of at most {} bytes, found {}", end_ - position_, bytes));
        body = bytes_.bytes.subspan(position_, static_cast<std::size_t>(bytes));
        position_ += static_cast<std::size_t>(bytes);
        return true;
    }

    void read_schema(const FlatTable& schema) {
        if (schema.number(schema::endianness, 2, 0) != 0)
            fail(ErrorCode::unsupported, "{}: expected little-endian data, found big-endian", bytes_.name);
        const std::size_t count = schema.count(schema::fields);
        std::vector<VectorColumn> columns;
        std::vector<std::size_t> places;
        for (std::size_t i = 0; i < count; ++i) {
            fields_.push_back(read_field(schema.table(schema::fields, i), bytes_.name, 0));
            const ArrowField& f = fields_.back();
            if (const int depth = vector_depth(f); depth > 0) {
                columns.push_back({f.name, depth});
                places.push_back(i);
            }
            const bool text = f.text() || (f.type == Type::integer && (f.width == 32 || f.width == 64));
            if (!ids_field_ && text && !f.dictionary && part_names::is(part_names::ids, f.name)) ids_field_ = i;
        }
        const std::size_t chosen = choose_vector_column(columns, bytes_.name);
        vectors_field_ = places[chosen];
        depth_ = columns[chosen].depth;
    }

    bool next_batch() {
        bytes_.release(released_, position_ - released_);
        released_ = position_;
        std::optional<FlatTable> table;
        std::span<const std::byte> body;
        do {
            if (!message(table, body)) return false;
        } while (table->number(message::header_type, 1, 0) != static_cast<std::int64_t>(Header::record_batch));
        const FlatTable batch = table->table(message::header);
        reader_.emplace(batch, body, bytes_.name);
        rows_ = batch.number(batch::length, 8, 0);
        row_ = 0;
        ids_.reset();
        for (std::size_t i = 0; i < fields_.size(); ++i) {
            const bool wanted = i == vectors_field_ || (ids_field_ && i == *ids_field_);
            ArrowArray array = reader_->read(fields_[i], wanted);
            if (wanted && array.length != rows_)
                bad(fmt::format("column {}: expected {} rows, found {}", fields_[i].name, rows_, array.length));
            if (i == vectors_field_)
                vectors_ = std::move(array);
            else if (wanted)
                ids_ = std::move(array);
        }
        if (rows_ < 0) bad("record batch: expected a number of rows, found a negative one");
        return true;
    }

    std::string id(const ArrowArray& array, std::int64_t i) const {
        if (!array.valid(i)) return {};
        const auto& data = array.buffers[1];
        if (array.field->type == Type::integer) {
            const auto width = static_cast<std::size_t>(array.field->width / 8);
            if (data.size() / width <= static_cast<std::uint64_t>(i))
                bad("column of ids: expected a number a row, found fewer");
            std::int64_t value = 0;
            if (width == 8) {
                std::memcpy(&value, data.data() + 8 * i, 8);
            } else if (array.field->is_signed) {
                std::int32_t v = 0;
                std::memcpy(&v, data.data() + 4 * i, 4);
                value = v;
            } else {
                std::uint32_t v = 0;
                std::memcpy(&v, data.data() + 4 * i, 4);
                value = v;
            }
            return array.field->is_signed || width == 4 ? std::to_string(value)
                                                        : std::to_string(static_cast<std::uint64_t>(value));
        }
        const std::size_t width = array.field->type == Type::large_utf8 ? 8 : 4;
        if (data.size() / width < static_cast<std::uint64_t>(i) + 2)
            bad("column of ids: expected an offset a row, found fewer");
        std::int64_t begin = 0, end = 0;
        std::memcpy(&begin, data.data() + width * static_cast<std::size_t>(i), width);
        std::memcpy(&end, data.data() + width * static_cast<std::size_t>(i + 1), width);
        const auto& text = array.buffers[2];
        if (begin < 0 || end < begin || static_cast<std::uint64_t>(end) > text.size())
            bad("column of ids: expected offsets inside the text");
        return {reinterpret_cast<const char*>(text.data()) + begin, static_cast<std::size_t>(end - begin)};
    }

    void read_vectors(SourceDocument& document) {
        if (!vectors_.valid(row_)) return;
        const Range outer = elements(vectors_, row_, bytes_.name);
        if (outer.begin == outer.end) return;
        const ArrowArray& inner = vectors_.children[0];
        const std::int64_t rows = depth_ == 2 ? outer.end - outer.begin : 1;
        const Range numbers = depth_ == 2 ? elements(inner, outer.begin, bytes_.name) : outer;
        const std::int64_t dim = numbers.end - numbers.begin;
        const ArrowArray& leaf = depth_ == 2 ? inner.children[0] : inner;
        if (leaf.nulls > 0)
            bad(fmt::format("column {}: expected numbers, found nulls among them", fields_[vectors_field_].name));
        static constexpr DType types[] = {DType::f16, DType::f32, DType::f64};
        const DType type = types[leaf.field->width];
        const auto none = [&](std::int64_t v) {
            bad(fmt::format("row {}: vector {}: expected numbers, found none", document_, v - outer.begin));
        };
        if (dim == 0) none(outer.begin);
        check_document(static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(dim), type, bytes_.name,
                       fmt::format("row {}", document_));
        const std::uint64_t size = dtype_size(type);
        const auto begin = static_cast<std::uint64_t>(numbers.begin) * size;
        const auto count = static_cast<std::uint64_t>(rows * dim) * size;
        if (begin > leaf.buffers[1].size() || count > leaf.buffers[1].size() - begin)
            bad(fmt::format("row {}: expected {} bytes of numbers, found fewer", document_, count));
        // Only now that there are bytes for them: a length alone may say anything.
        for (std::int64_t v = outer.begin; depth_ == 2 && v < outer.end; ++v) {
            const Range r = elements(inner, v, bytes_.name);
            if (!inner.valid(v) || r.begin == r.end) none(v);
            if (r.end - r.begin != dim)
                bad(fmt::format("row {}: vector {}: expected {} numbers like the first, found {}", document_,
                                v - outer.begin, dim, r.end - r.begin));
        }
        document.vectors = buffer_.view(leaf.buffers[1].subspan(begin, count), type, static_cast<std::size_t>(rows),
                                        static_cast<std::size_t>(dim));
    }

    ByteSource bytes_;
    std::size_t position_ = 0, end_, released_ = 0;
    std::vector<ArrowField> fields_;
    std::size_t vectors_field_ = 0;
    int depth_ = 2;
    std::optional<std::size_t> ids_field_;
    std::optional<BatchReader> reader_;
    ArrowArray vectors_;
    std::optional<ArrowArray> ids_;
    std::int64_t rows_ = 0, row_ = 0;
    std::size_t document_ = 0;
    RowBuffer buffer_;
};

}  // namespace

std::unique_ptr<VectorSource> open_arrow_source(ByteSource bytes) {
    return std::make_unique<ArrowSource>(std::move(bytes));
}

bool looks_like_arrow(std::string_view text) {
    if (text.substr(0, file_magic.size()) == file_magic) return true;
    // A stream begins with the continuation mark and the length of its schema, a multiple of eight.
    std::uint32_t mark = 0, length = 0;
    if (text.size() < 16) return false;
    std::memcpy(&mark, text.data(), 4);
    std::memcpy(&length, text.data() + 4, 4);
    return mark == continuation && length > 0 && length % 8 == 0 && length <= text.size() - 8;
}

}  // namespace marginmerge
