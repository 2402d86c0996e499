#include "io/arrow_writer.h"

#include <functional>

#include "io/arrow_format.h"
#include "io/flat.h"

namespace marginmerge {

using namespace arrow;

namespace {

// Vectors of a record batch before it is written: what the writer holds in memory.
constexpr std::size_t batch_bytes = 16U << 20;
constexpr std::int64_t batch_rows = 65536;

std::size_t padded(std::size_t bytes) { return (bytes + 7) / 8 * 8; }

struct Kind {
    Type type;
    std::initializer_list<FlatWriter::Slot> slots;
};

/// A field with its type and at most one child.
std::size_t put_field(FlatWriter& out, std::string_view name, bool nullable, const Kind& kind,
                      const std::function<std::size_t()>& child = {}) {
    const auto field_table = out.table({FlatWriter::reference(field::name), FlatWriter::i8(field::nullable, nullable),
                                        FlatWriter::i8(field::type_type, static_cast<std::int64_t>(kind.type)),
                                        FlatWriter::reference(field::type), FlatWriter::reference(field::children)});
    out.point(field_table.references[0], out.text(name));
    out.point(field_table.references[1], out.table(kind.slots).position);
    std::vector<std::size_t> children;
    out.point(field_table.references[2], out.references(child ? 1 : 0, children));
    if (child) out.point(children[0], child());
    return field_table.position;
}

std::string schema_message(std::size_t dim) {
    FlatWriter out;
    const auto root = out.table({FlatWriter::i16(message::version, version_5),
                                 FlatWriter::i8(message::header_type, static_cast<std::int64_t>(Header::schema)),
                                 FlatWriter::reference(message::header), FlatWriter::i64(message::body_length, 0)});
    out.root(root);
    const auto table = out.table({FlatWriter::i16(schema::endianness, 0), FlatWriter::reference(schema::fields)});
    out.point(root.references[0], table.position);
    std::vector<std::size_t> fields;
    out.point(table.references[0], out.references(4, fields));
    out.point(fields[0],
              put_field(out, "position", false, {Type::integer, {FlatWriter::i32(0, 64), FlatWriter::i8(1, 1)}}));
    out.point(fields[1], put_field(out, "id", false, {Type::utf8, {}}));
    out.point(fields[2], put_field(out, "metadata", true, {Type::utf8, {}}));
    out.point(fields[3], put_field(out, "vectors", false, {Type::list, {}}, [&] {
                  return put_field(out, "item", true,
                                   {Type::fixed_list, {FlatWriter::i32(0, static_cast<std::int64_t>(dim))}}, [&] {
                                       return put_field(out, "item", true, {Type::real, {FlatWriter::i16(0, 1)}});
                                   });
              }));
    return out.bytes();
}

template <class T>
std::string_view bytes_of(const std::vector<T>& values) {
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

}  // namespace

ArrowWriter::ArrowWriter(const std::filesystem::path& path, std::size_t dim) : file_(path), dim_(dim) {
    message(schema_message(dim), {});
}

void ArrowWriter::message(const std::string& metadata, const std::vector<std::string_view>& body) {
    std::string head;
    const auto put = [&](std::uint32_t v) { head.append(reinterpret_cast<const char*>(&v), sizeof v); };
    put(continuation);
    put(static_cast<std::uint32_t>(padded(metadata.size())));
    head += metadata;
    head.resize(8 + padded(metadata.size()), '\0');
    file_.append(head);
    written_ += head.size();
    constexpr char zeros[8] = {};
    for (const auto part : body) {
        file_.append(part);
        file_.append(std::string_view(zeros, padded(part.size()) - part.size()));
        written_ += padded(part.size());
    }
}

void ArrowWriter::add(const TableRow& row) {
    positions_.append(reinterpret_cast<const char*>(&row.position), sizeof row.position);
    ids_ += row.id;
    id_ends_.push_back(static_cast<std::int32_t>(ids_.size()));
    const auto bit = static_cast<unsigned>(rows_ % 8);
    if (bit == 0) validity_ += '\0';
    if (row.metadata.empty())
        ++nulls_;
    else
        validity_.back() = static_cast<char>(static_cast<unsigned char>(validity_.back()) | 1U << bit);
    metadata_ += row.metadata;
    metadata_ends_.push_back(static_cast<std::int32_t>(metadata_.size()));
    values_.append(reinterpret_cast<const char*>(row.vectors.data), row.vectors.size() * sizeof(float));
    vector_ends_.push_back(vector_ends_.back() + static_cast<std::int32_t>(row.vectors.rows));
    ++rows_;
    if (values_.size() + ids_.size() + metadata_.size() >= batch_bytes || rows_ == batch_rows) end_batch();
}

void ArrowWriter::end_batch() {
    if (rows_ == 0) return;
    const std::int64_t vectors = vector_ends_.back();
    // Depth first: one node a column and child, validity (left out where nothing is null) and data buffers.
    const std::vector<std::int64_t> nodes{
        rows_, 0, rows_, 0, rows_, nulls_, rows_, 0, vectors, 0, vectors * static_cast<std::int64_t>(dim_), 0};
    const std::vector<std::string_view> body{{},
                                             positions_,
                                             {},
                                             bytes_of(id_ends_),
                                             ids_,
                                             nulls_ > 0 ? std::string_view(validity_) : std::string_view(),
                                             bytes_of(metadata_ends_),
                                             metadata_,
                                             {},
                                             bytes_of(vector_ends_),
                                             {},
                                             {},
                                             values_};
    std::vector<std::int64_t> buffers;
    std::int64_t offset = 0;
    for (const auto part : body) {
        buffers.push_back(offset);
        buffers.push_back(static_cast<std::int64_t>(part.size()));
        offset += static_cast<std::int64_t>(padded(part.size()));
    }
    FlatWriter out;
    const auto root =
        out.table({FlatWriter::i16(message::version, version_5),
                   FlatWriter::i8(message::header_type, static_cast<std::int64_t>(Header::record_batch)),
                   FlatWriter::reference(message::header), FlatWriter::i64(message::body_length, offset)});
    out.root(root);
    const auto table = out.table({FlatWriter::i64(batch::length, rows_), FlatWriter::reference(batch::nodes),
                                  FlatWriter::reference(batch::buffers)});
    out.point(root.references[0], table.position);
    out.point(table.references[0], out.pairs(nodes));
    out.point(table.references[1], out.pairs(buffers));
    message(out.bytes(), body);
    rows_ = nulls_ = 0;
    for (auto* text : {&positions_, &ids_, &metadata_, &validity_, &values_}) text->clear();
    for (auto* ends : {&id_ends_, &metadata_ends_, &vector_ends_}) ends->assign(1, 0);
}

std::uint64_t ArrowWriter::commit() {
    end_batch();
    message({}, {});
    file_.commit();
    return written_;
}

}  // namespace marginmerge
