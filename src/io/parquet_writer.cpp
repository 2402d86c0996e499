#include "io/parquet_writer.h"

#include <cstring>

#include "core/fail.h"
#include "io/parquet_format.h"
#include "io/thrift.h"
#include "marginmerge/core/version.h"

namespace marginmerge {

using namespace parquet;

namespace {

// Values of a page, and of all pages of a row group, before they are written: what the writer holds in memory.
constexpr std::size_t page_bytes = 1U << 20;
constexpr std::uint64_t group_limit = 64U << 20;

enum Column { position_column, id_column, metadata_column, vectors_column, columns };

void put_u32(std::string& out, std::uint32_t value) { out.append(reinterpret_cast<const char*>(&value), sizeof value); }

void put_text(std::string& out, std::string_view text) {
    put_u32(out, static_cast<std::uint32_t>(text.size()));
    out += text;
}

/// One run of the RLE/bit-packed hybrid: `count` levels of a value that fits a byte.
void put_run(std::string& out, std::uint64_t count, char value) {
    for (std::uint64_t head = count << 1;; head >>= 7) {
        if (head < 0x80) {
            out += static_cast<char>(head);
            break;
        }
        out += static_cast<char>(head | 0x80);
    }
    out += value;
}

struct SchemaNode {
    const char* name;
    int type;  ///< Type, or -1 for a group
    Repetition repetition;
    int children = 0;
    int converted = -1;
    int logical = -1;  ///< field of the LogicalType union
};

constexpr int logical_string = 1, logical_list = 3;

// Required wherever nothing can be missing, so that the levels only tell lists apart. Maximum levels: vectors
// repetition 2, definition 2; metadata definition 1.
const SchemaNode schema[] = {
    {"schema", -1, Repetition::required, columns},
    {"position", static_cast<int>(Type::int64), Repetition::required},
    {"id", static_cast<int>(Type::bytes), Repetition::required, 0, converted_utf8, logical_string},
    {"metadata", static_cast<int>(Type::bytes), Repetition::optional, 0, converted_utf8, logical_string},
    {"vectors", -1, Repetition::required, 1, converted_list, logical_list},
    {"list", -1, Repetition::repeated, 1},
    {"element", -1, Repetition::required, 1, converted_list, logical_list},
    {"list", -1, Repetition::repeated, 1},
    {"element", static_cast<int>(Type::real32), Repetition::required},
};

struct ColumnPath {
    Type type;
    std::vector<std::string_view> path;
};

const ColumnPath paths[columns] = {{Type::int64, {"position"}},
                                   {Type::bytes, {"id"}},
                                   {Type::bytes, {"metadata"}},
                                   {Type::real32, {"vectors", "list", "element", "list", "element"}}};

}  // namespace

ParquetWriter::ParquetWriter(const std::filesystem::path& path, std::size_t dim) : file_(path), dim_(dim) {
    append(magic);
}

void ParquetWriter::append(std::string_view bytes) {
    file_.append(bytes);
    written_ += bytes.size();
}

void ParquetWriter::add(const TableRow& row) {
    positions_.append(reinterpret_cast<const char*>(&row.position), sizeof row.position);
    put_text(ids_, row.id);
    metadata_levels_ += row.metadata.empty() ? '\0' : '\1';
    if (!row.metadata.empty()) put_text(metadata_, row.metadata);

    // A page's first value has repetition 0, the first of every other vector 1, the rest 2. A page
    // without vectors is one entry of definition 0.
    const std::size_t n = row.vectors.rows;
    for (std::size_t i = 0; i < n; ++i) {
        put_run(page_.repetition, 1, i == 0 ? '\0' : '\1');
        if (dim_ > 1) put_run(page_.repetition, dim_ - 1, '\2');
    }
    if (n == 0) put_run(page_.repetition, 1, '\0');
    put_run(page_.definition, n == 0 ? 1 : n * dim_, n == 0 ? '\0' : '\2');
    page_.values.append(reinterpret_cast<const char*>(row.vectors.data), n * dim_ * sizeof(float));
    page_.entries += n == 0 ? 1 : n * dim_;
    ++page_.rows;
    if (page_.values.size() >= page_bytes) end_vector_page();

    ++group_.rows;
    ++rows_;
    group_bytes_ += n * dim_ * sizeof(float) + row.id.size() + row.metadata.size() + 32;
    if (group_bytes_ >= group_limit) end_row_group();
}

void ParquetWriter::end_vector_page() {
    if (page_.rows == 0) return;
    std::string body;
    body.reserve(page_.values.size() + page_.repetition.size() + page_.definition.size() + 8);
    put_text(body, page_.repetition);
    put_text(body, page_.definition);
    body += page_.values;
    pages_.emplace_back(std::move(body), page_.entries);
    page_ = {};
}

void ParquetWriter::write_page(Chunk& chunk, std::string_view body, std::uint64_t values) {
    if (body.size() > 0x7FFFFFFFU)
        fail(ErrorCode::unsupported, "parquet: one page of data: expected less than 2 GB, found {} bytes", body.size());
    ThriftWriter header;
    header.i32(1, static_cast<std::int32_t>(PageType::data));
    header.i32(2, static_cast<std::int32_t>(body.size()));
    header.i32(3, static_cast<std::int32_t>(body.size()));
    header.begin(5);
    header.i32(1, static_cast<std::int32_t>(values));
    header.i32(2, static_cast<std::int32_t>(Encoding::plain));
    header.i32(3, static_cast<std::int32_t>(Encoding::rle));
    header.i32(4, static_cast<std::int32_t>(Encoding::rle));
    header.end();
    const std::string bytes = header.take();
    if (chunk.bytes == 0) chunk.offset = written_;
    append(bytes);
    append(body);
    chunk.bytes += bytes.size() + body.size();
    chunk.values += values;
}

void ParquetWriter::end_row_group() {
    if (group_.rows == 0) return;
    end_vector_page();
    group_.offset = written_;
    write_page(group_.columns[position_column], positions_, group_.rows);
    write_page(group_.columns[id_column], ids_, group_.rows);
    std::string levels;
    for (std::size_t i = 0; i < metadata_levels_.size();) {
        std::size_t j = i;
        while (j < metadata_levels_.size() && metadata_levels_[j] == metadata_levels_[i]) ++j;
        put_run(levels, j - i, metadata_levels_[i]);
        i = j;
    }
    std::string body;
    put_text(body, levels);
    write_page(group_.columns[metadata_column], body + metadata_, group_.rows);
    for (const auto& [bytes, entries] : pages_) write_page(group_.columns[vectors_column], bytes, entries);
    groups_.push_back(group_);
    group_ = {};
    positions_.clear();
    ids_.clear();
    metadata_.clear();
    metadata_levels_.clear();
    pages_.clear();
    group_bytes_ = 0;
}

std::string ParquetWriter::footer() const {
    ThriftWriter t;
    t.i32(1, 1);
    t.list(2, ThriftType::structure, std::size(schema));
    for (const SchemaNode& node : schema) {
        t.begin_element();
        if (node.type >= 0) t.i32(1, node.type);
        if (&node != schema) t.i32(3, static_cast<std::int32_t>(node.repetition));
        t.text(4, node.name);
        if (node.children > 0) t.i32(5, node.children);
        if (node.converted >= 0) t.i32(6, node.converted);
        if (node.logical >= 0) {
            t.begin(10);
            t.begin(node.logical);
            t.end();
            t.end();
        }
        t.end();
    }
    t.i64(3, static_cast<std::int64_t>(rows_));
    t.list(4, ThriftType::structure, groups_.size());
    for (const RowGroup& group : groups_) {
        std::uint64_t total = 0;
        t.begin_element();
        t.list(1, ThriftType::structure, columns);
        for (int c = 0; c < columns; ++c) {
            const Chunk& chunk = group.columns[c];
            total += chunk.bytes;
            t.begin_element();
            t.i64(2, static_cast<std::int64_t>(chunk.offset));
            t.begin(3);
            t.i32(1, static_cast<std::int32_t>(paths[c].type));
            t.list(2, ThriftType::i32, 2);
            t.element(static_cast<std::int32_t>(Encoding::plain));
            t.element(static_cast<std::int32_t>(Encoding::rle));
            t.list(3, ThriftType::binary, paths[c].path.size());
            for (const std::string_view name : paths[c].path) t.element(name);
            t.i32(4, static_cast<std::int32_t>(Codec::none));
            t.i64(5, static_cast<std::int64_t>(chunk.values));
            t.i64(6, static_cast<std::int64_t>(chunk.bytes));
            t.i64(7, static_cast<std::int64_t>(chunk.bytes));
            t.i64(9, static_cast<std::int64_t>(chunk.offset));
            t.end();
            t.end();
        }
        t.i64(2, static_cast<std::int64_t>(total));
        t.i64(3, static_cast<std::int64_t>(group.rows));
        t.i64(5, static_cast<std::int64_t>(group.offset));
        t.i64(6, static_cast<std::int64_t>(total));
        t.end();
    }
    t.text(6, std::string("marginmerge version ") + version());
    return t.take();
}

std::uint64_t ParquetWriter::commit() {
    end_row_group();
    const std::string text = footer();
    append(text);
    std::string tail;
    put_u32(tail, static_cast<std::uint32_t>(text.size()));
    tail += magic;
    append(tail);
    file_.commit();
    return written_;
}

}  // namespace marginmerge
