#pragma once

// FlatBuffers, as far as Arrow's messages need them: a writer that lays tables out front to back and a
// reader that checks every offset before it follows it.
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace marginmerge {

/// Writes one buffer. A table is written before what it refers to; point() then fills the reference in.
class FlatWriter {
public:
    /// A field of a table: a number of 1, 2, 4 or 8 bytes, or a reference (size 0) that is pointed later.
    struct Slot {
        int id = 0;
        int size = 0;
        std::int64_t value = 0;
    };
    static Slot i8(int id, std::int64_t value) { return {id, 1, value}; }
    static Slot i16(int id, std::int64_t value) { return {id, 2, value}; }
    static Slot i32(int id, std::int64_t value) { return {id, 4, value}; }
    static Slot i64(int id, std::int64_t value) { return {id, 8, value}; }
    static Slot reference(int id) { return {id, 0, 0}; }

    FlatWriter() { bytes_.assign(4, '\0'); }

    /// Where a table begins and where its references stand, in the order of the slots.
    struct Table {
        std::size_t position = 0;
        std::vector<std::size_t> references;
    };
    Table table(std::initializer_list<Slot> slots);
    void root(const Table& table) { point(0, table.position); }
    void point(std::size_t reference, std::size_t target);

    std::size_t text(std::string_view value);
    /// A vector of `count` references, which are returned in `references`.
    std::size_t references(std::size_t count, std::vector<std::size_t>& references);
    /// A vector of structs of two 64-bit numbers each.
    std::size_t pairs(std::span<const std::int64_t> values);

    const std::string& bytes() const { return bytes_; }

private:
    void align(std::size_t to, std::size_t after = 0);
    template <class T>
    void put(T value) {
        bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    }

    std::string bytes_;
};

/// A table in hostile bytes. Anything that leads outside throws Error(corrupt).
class FlatTable {
public:
    static FlatTable root(std::span<const std::byte> bytes, const std::string& source);

    std::int64_t number(int id, int size, std::int64_t otherwise) const;
    bool has(int id) const { return field(id) != 0; }
    /// The table a field refers to; has(id) must hold.
    FlatTable table(int id) const;
    std::string_view text(int id) const;
    std::size_t count(int id) const;  ///< of a vector; 0 when absent
    FlatTable table(int id, std::size_t index) const;
    /// A vector of structs of `size` bytes each.
    std::span<const std::byte> structs(int id, std::size_t size) const;

private:
    FlatTable(std::span<const std::byte> bytes, std::size_t position, const std::string* source);
    [[noreturn]] void bad() const;
    std::size_t field(int id) const;  ///< its position, 0 when absent
    std::size_t follow(std::size_t position) const;
    template <class T>
    T at(std::size_t position) const;

    std::span<const std::byte> bytes_;
    std::size_t position_ = 0;
    std::size_t vtable_ = 0;
    std::size_t vtable_size_ = 0;
    std::size_t table_size_ = 0;
    const std::string* source_;
};

}  // namespace marginmerge
