#include "io/parquet_file.h"

#include <cstring>

#include "core/fail.h"
#include "io/thrift.h"

namespace marginmerge {

using namespace parquet;

namespace {

using Field = ThriftReader::Field;

constexpr int max_schema_depth = 24;
constexpr int logical_float16 = 15;

struct SchemaElement {
    std::string name;
    int type = -1, type_length = 0, repetition = 0, children = 0;
    bool half = false;
};

SchemaElement read_element(ThriftReader& in) {
    SchemaElement e;
    in.structure([&](const Field& f) {
        switch (f.id) {
            case 1: e.type = in.small(f); return true;
            case 2: e.type_length = in.small(f); return true;
            case 3: e.repetition = in.small(f); return true;
            case 4: e.name = std::string(in.binary(f)); return true;
            case 5: e.children = in.small(f); return true;
            case 10:
                if (f.type != ThriftType::structure) return false;
                in.structure([&](const Field& logical) {
                    e.half = e.half || logical.id == logical_float16;
                    return false;
                });
                return true;
            default: return false;
        }
    });
    return e;
}

ParquetChunk read_chunk(ThriftReader& in, std::uint64_t file_size, const std::string& source) {
    ParquetChunk chunk;
    std::int64_t data = -1, dictionary = -1, bytes = -1, values = -1;
    in.structure([&](const Field& f) {
        if (f.id == 1)
            fail(ErrorCode::unsupported, "{}: column: expected its data in this file, found a name of another", source);
        if (f.id != 3 || f.type != ThriftType::structure) return false;
        in.structure([&](const Field& m) {
            switch (m.id) {
                case 4: chunk.codec = static_cast<Codec>(in.small(m)); return true;
                case 5: values = in.integer(m); return true;
                case 7: bytes = in.integer(m); return true;
                case 9: data = in.integer(m); return true;
                case 11: dictionary = in.integer(m); return true;
                default: return false;
            }
        });
        return true;
    });
    const std::int64_t begin = dictionary > 0 && dictionary < data ? dictionary : data;
    if (begin < 4 || bytes < 0 || values < 0 || static_cast<std::uint64_t>(begin) > file_size ||
        static_cast<std::uint64_t>(bytes) > file_size - static_cast<std::uint64_t>(begin))
        fail(ErrorCode::corrupt, "{}: column chunk: expected it inside the file, found bytes {} to {} of {}", source,
             begin, begin + bytes, file_size);
    chunk.begin = static_cast<std::uint64_t>(begin);
    chunk.bytes = static_cast<std::uint64_t>(bytes);
    chunk.values = static_cast<std::uint64_t>(values);
    return chunk;
}

ParquetRowGroup read_group(ThriftReader& in, std::uint64_t file_size, const std::string& source) {
    ParquetRowGroup group;
    in.structure([&](const Field& f) {
        if (f.id == 1) {
            const auto list = in.list(f, ThriftType::structure);
            for (std::size_t i = 0; i < list.count; ++i) group.chunks.push_back(read_chunk(in, file_size, source));
            return true;
        }
        if (f.id == 3) {
            const std::int64_t rows = in.integer(f);
            if (rows < 0) fail(ErrorCode::corrupt, "{}: row group: expected a number of rows, found {}", source, rows);
            group.rows = static_cast<std::uint64_t>(rows);
            return true;
        }
        return false;
    });
    return group;
}

/// The elements of the schema, which stand depth first in one list, as leaves with their levels.
class SchemaWalk {
public:
    SchemaWalk(const std::vector<SchemaElement>& elements, const std::string& source)
        : elements_(elements), source_(source) {
        if (elements_.empty()) bad("a root");
        walk({}, true);
        if (next_ != elements_.size()) bad("as many elements as the groups name");
    }
    std::vector<ParquetLeaf> leaves;

private:
    [[noreturn]] void bad(const char* expected) const {
        fail(ErrorCode::corrupt, "{}: schema: expected {}, found otherwise", source_, expected);
    }

    void walk(ParquetLeaf state, bool root) {
        if (next_ == elements_.size()) bad("as many elements as the groups name");
        const SchemaElement& e = elements_[next_++];
        if (!root) {
            state.path.push_back(e.name);
            if (state.path.size() > max_schema_depth) bad("fewer nested groups");
            if (e.repetition < 0 || e.repetition > 2) bad("required, optional or repeated");
            if (e.repetition != static_cast<int>(Repetition::required)) ++state.max_definition;
            if (e.repetition == static_cast<int>(Repetition::repeated)) {
                ++state.max_repetition;
                state.list_definition.push_back(state.max_definition);
            }
        }
        if (e.children < 0) bad("a number of children");
        if (e.children > 0 || root) {
            for (int i = 0; i < e.children; ++i) walk(state, false);
            return;
        }
        if (e.type < 0 || e.type > 7) bad("a known type");
        state.type = static_cast<Type>(e.type);
        state.type_length = e.type_length;
        state.half = e.half && state.type == Type::fixed_bytes && e.type_length == 2;
        leaves.push_back(std::move(state));
    }

    const std::vector<SchemaElement>& elements_;
    const std::string& source_;
    std::size_t next_ = 0;
};

}  // namespace

std::string ParquetLeaf::name() const {
    std::string text;
    for (const auto& part : path) text += (text.empty() ? "" : ".") + part;
    return text;
}

ParquetFile read_parquet_footer(ByteSource bytes) {
    const std::string_view text = bytes.text();
    const std::string source = bytes.name;
    if (text.size() < 12 || text.substr(text.size() - 4) != magic) {
        if (text.size() >= 4 && text.substr(text.size() - 4) == "PARE")
            fail(ErrorCode::unsupported, "{}: expected a plain Parquet file, found an encrypted one", source);
        fail(ErrorCode::corrupt, "{}: footer: expected PAR1 at the end, found something else (a download cut short?)",
             source);
    }
    std::uint32_t length = 0;
    std::memcpy(&length, text.data() + text.size() - 8, sizeof length);
    if (length > text.size() - 12)
        fail(ErrorCode::corrupt, "{}: footer: expected at most {} bytes, found {}", source, text.size() - 12, length);
    ParquetFile file;
    ThriftReader in(bytes.bytes.subspan(text.size() - 8 - length, length), source);
    std::vector<SchemaElement> elements;
    std::int64_t rows = -1;
    in.structure([&](const Field& f) {
        if (f.id == 2) {
            const auto list = in.list(f, ThriftType::structure);
            for (std::size_t i = 0; i < list.count; ++i) elements.push_back(read_element(in));
            return true;
        }
        if (f.id == 3) {
            rows = in.integer(f);
            return true;
        }
        if (f.id == 4) {
            const auto list = in.list(f, ThriftType::structure);
            for (std::size_t i = 0; i < list.count; ++i) file.groups.push_back(read_group(in, text.size(), source));
            return true;
        }
        return false;
    });
    if (rows < 0) fail(ErrorCode::corrupt, "{}: footer: expected a number of rows, found none", source);
    file.leaves = SchemaWalk(elements, source).leaves;
    std::uint64_t sum = 0;
    for (const auto& group : file.groups) {
        if (group.chunks.size() != file.leaves.size())
            fail(ErrorCode::corrupt, "{}: row group: expected {} columns, found {}", source, file.leaves.size(),
                 group.chunks.size());
        sum += group.rows;
    }
    if (sum != static_cast<std::uint64_t>(rows))
        fail(ErrorCode::corrupt, "{}: rows: expected {}, found {} in the row groups", source, rows, sum);
    file.rows = static_cast<std::uint64_t>(rows);
    file.bytes = std::move(bytes);
    return file;
}

}  // namespace marginmerge
