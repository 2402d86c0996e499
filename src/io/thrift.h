#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace marginmerge {

/// Wire types of Thrift's compact protocol, in which Parquet writes everything but its values.
enum class ThriftType : std::uint8_t {
    stop = 0,
    yes = 1,  ///< a boolean field that is true; in lists: any boolean
    no = 2,
    i8 = 3,
    i16 = 4,
    i32 = 5,
    i64 = 6,
    real = 7,
    binary = 8,
    list = 9,
    set = 10,
    map = 11,
    structure = 12,
};

/// Appends one struct, field by field, ids ascending.
class ThriftWriter {
public:
    void i32(int id, std::int32_t value) { integer(id, ThriftType::i32, value); }
    void i64(int id, std::int64_t value) { integer(id, ThriftType::i64, value); }
    void flag(int id, bool value) { field(id, value ? ThriftType::yes : ThriftType::no); }
    void text(int id, std::string_view value);
    void begin(int id);  ///< a struct as a field
    void end();          ///< of that, or of an element
    void list(int id, ThriftType type, std::size_t count);
    // Elements of the list begun last.
    void element(std::int32_t value);
    void element(std::string_view value);
    void begin_element() { last_.push_back(0); }

    /// Ends the outermost struct.
    std::string take();

private:
    void field(int id, ThriftType type);
    void integer(int id, ThriftType type, std::int64_t value);
    void varint(std::uint64_t value);

    std::string out_;
    std::vector<int> last_{0};
};

/// Reads structs from hostile bytes. Every call checks bounds and throws Error(corrupt).
class ThriftReader {
public:
    ThriftReader(std::span<const std::byte> bytes, std::string source) : bytes_(bytes), source_(std::move(source)) {}

    struct Field {
        int id = 0;
        ThriftType type = ThriftType::stop;
    };
    struct List {
        ThriftType type = ThriftType::stop;
        std::size_t count = 0;  ///< at most the bytes that are left
    };

    /// Walks over one struct: body(field) must read the field's value or return false to have it skipped.
    template <class Body>
    void structure(Body&& body) {
        enter();
        int last = 0;
        for (Field f; next(f, last);) {
            if (!body(f)) skip(f.type);
        }
        --depth_;
    }
    /// The value of a field of any integer type; a value of another type is an error.
    std::int64_t integer(const Field& field);
    std::int32_t small(const Field& field);  ///< within int32
    bool boolean(const Field& field);
    std::string_view binary(const Field& field);
    List list(const Field& field, ThriftType elements);
    std::int64_t integer() { return zigzag(varint()); }  ///< an element of a list
    std::string_view binary();

    std::size_t position() const { return position_; }

private:
    [[noreturn]] void bad(const char* what) const;
    bool next(Field& field, int& last);
    void enter();
    void skip(ThriftType type);
    void skip_element(ThriftType type);
    std::uint8_t byte();
    std::uint64_t varint();
    static std::int64_t zigzag(std::uint64_t v) {
        return static_cast<std::int64_t>(v >> 1) ^ -static_cast<std::int64_t>(v & 1);
    }

    std::span<const std::byte> bytes_;
    std::string source_;
    std::size_t position_ = 0;
    int depth_ = 0;
};

}  // namespace marginmerge
