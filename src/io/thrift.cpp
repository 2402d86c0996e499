#include "io/thrift.h"

#include <limits>

#include "core/fail.h"

namespace marginmerge {

namespace {

// Nothing in a Parquet footer nests deeper than a handful of levels.
constexpr int deepest_struct = 32;

}  // namespace

void ThriftWriter::varint(std::uint64_t value) {
    while (value >= 0x80) {
        out_ += static_cast<char>(value | 0x80);
        value >>= 7;
    }
    out_ += static_cast<char>(value);
}

void ThriftWriter::field(int id, ThriftType type) {
    const int delta = id - last_.back();
    if (delta > 0 && delta <= 15) {
        out_ += static_cast<char>(delta << 4 | static_cast<int>(type));
    } else {
        out_ += static_cast<char>(type);
        varint(static_cast<std::uint64_t>(id) << 1);
    }
    last_.back() = id;
}

void ThriftWriter::integer(int id, ThriftType type, std::int64_t value) {
    field(id, type);
    varint(static_cast<std::uint64_t>(value) << 1 ^ static_cast<std::uint64_t>(value >> 63));
}

void ThriftWriter::text(int id, std::string_view value) {
    field(id, ThriftType::binary);
    element(value);
}

void ThriftWriter::begin(int id) {
    field(id, ThriftType::structure);
    last_.push_back(0);
}

void ThriftWriter::end() {
    out_ += '\0';
    last_.pop_back();
}

void ThriftWriter::list(int id, ThriftType type, std::size_t count) {
    field(id, ThriftType::list);
    if (count < 15) {
        out_ += static_cast<char>(count << 4 | static_cast<std::size_t>(type));
    } else {
        out_ += static_cast<char>(0xF0 | static_cast<int>(type));
        varint(count);
    }
}

void ThriftWriter::element(std::int32_t value) {
    varint(static_cast<std::uint64_t>(std::int64_t{value}) << 1 ^
           static_cast<std::uint64_t>(std::int64_t{value} >> 63));
}

void ThriftWriter::element(std::string_view value) {
    varint(value.size());
    out_ += value;
}

std::string ThriftWriter::take() {
    out_ += '\0';
    return std::move(out_);
}

void ThriftReader::bad(const char* what) const {
    fail(ErrorCode::corrupt, "{}: metadata at byte {}: expected {}", source_, position_, what);
}

std::uint8_t ThriftReader::byte() {
    if (position_ >= bytes_.size()) bad("more bytes, found the end");
    return static_cast<std::uint8_t>(bytes_[position_++]);
}

std::uint64_t ThriftReader::varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        const std::uint8_t b = byte();
        value |= static_cast<std::uint64_t>(b & 0x7F) << shift;
        if (b < 0x80) return value;
    }
    bad("a number of at most ten bytes");
}

void ThriftReader::enter() {
    if (++depth_ > deepest_struct) bad("fewer nested structures");
}

bool ThriftReader::next(Field& field, int& last) {
    const std::uint8_t head = byte();
    field.type = static_cast<ThriftType>(head & 15);
    if (field.type == ThriftType::stop) return false;
    if (field.type > ThriftType::structure) bad("a known field type");
    if (head >> 4 != 0) {
        field.id = last + (head >> 4);
    } else {
        const std::int64_t id = zigzag(varint());
        if (id < 0 || id > std::numeric_limits<std::int16_t>::max()) bad("a field number");
        field.id = static_cast<int>(id);
    }
    if (field.id > std::numeric_limits<std::int16_t>::max()) bad("a field number");
    last = field.id;
    return true;
}

std::int64_t ThriftReader::integer(const Field& field) {
    if (field.type == ThriftType::i8) return static_cast<std::int8_t>(byte());
    if (field.type != ThriftType::i16 && field.type != ThriftType::i32 && field.type != ThriftType::i64)
        bad("a whole number");
    return zigzag(varint());
}

std::int32_t ThriftReader::small(const Field& field) {
    const std::int64_t value = integer(field);
    if (value < std::numeric_limits<std::int32_t>::min() || value > std::numeric_limits<std::int32_t>::max())
        bad("a 32-bit number");
    return static_cast<std::int32_t>(value);
}

bool ThriftReader::boolean(const Field& field) {
    if (field.type != ThriftType::yes && field.type != ThriftType::no) bad("true or false");
    return field.type == ThriftType::yes;
}

std::string_view ThriftReader::binary() {
    const std::uint64_t length = varint();
    if (length > bytes_.size() - position_) bad("text that ends inside the file");
    const std::string_view text(reinterpret_cast<const char*>(bytes_.data()) + position_, length);
    position_ += length;
    return text;
}

std::string_view ThriftReader::binary(const Field& field) {
    if (field.type != ThriftType::binary) bad("text");
    return binary();
}

ThriftReader::List ThriftReader::list(const Field& field, ThriftType elements) {
    if (field.type != ThriftType::list) bad("a list");
    const std::uint8_t head = byte();
    List list{static_cast<ThriftType>(head & 15), static_cast<std::size_t>(head >> 4)};
    if (list.count == 15) list.count = varint();
    // Every element takes a byte at least, so this also bounds what a caller allocates.
    if (list.count > bytes_.size() - position_) bad("a list that ends inside the file");
    if (list.count > 0 && list.type != elements) bad("a list of another type");
    return list;
}

void ThriftReader::skip(ThriftType type) {
    switch (type) {
        case ThriftType::yes:
        case ThriftType::no: return;
        case ThriftType::i8: byte(); return;
        case ThriftType::i16:
        case ThriftType::i32:
        case ThriftType::i64: varint(); return;
        case ThriftType::real:
            if (bytes_.size() - position_ < 8) bad("8 bytes");
            position_ += 8;
            return;
        case ThriftType::binary: binary(); return;
        case ThriftType::structure: structure([](const Field&) { return false; }); return;
        case ThriftType::list:
        case ThriftType::set: {
            const std::uint8_t head = byte();
            std::uint64_t count = head >> 4;
            if (count == 15) count = varint();
            if (count > bytes_.size() - position_) bad("a list that ends inside the file");
            enter();
            for (; count > 0; --count) skip_element(static_cast<ThriftType>(head & 15));
            --depth_;
            return;
        }
        case ThriftType::map: {
            const std::uint64_t count = varint();
            if (count == 0) return;
            if (count > bytes_.size() - position_) bad("a map that ends inside the file");
            const std::uint8_t types = byte();
            enter();
            for (std::uint64_t i = 0; i < count; ++i) {
                skip_element(static_cast<ThriftType>(types >> 4));
                skip_element(static_cast<ThriftType>(types & 15));
            }
            --depth_;
            return;
        }
        default: bad("a known field type");
    }
}

// Inside lists a boolean is a byte of its own.
void ThriftReader::skip_element(ThriftType type) {
    if (type == ThriftType::yes || type == ThriftType::no)
        byte();
    else
        skip(type);
}

}  // namespace marginmerge
