#include "io/flat.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "core/fail.h"

namespace marginmerge {

void FlatWriter::align(std::size_t to, std::size_t after) {
    while ((bytes_.size() + after) % to != 0) bytes_ += '\0';
}

FlatWriter::Table FlatWriter::table(std::initializer_list<Slot> slots) {
    // A table is an offset back to its vtable and then its fields, widest first so that nothing is misaligned.
    std::vector<Slot> order(slots);
    const auto width = [](const Slot& s) { return static_cast<std::size_t>(s.size == 0 ? 4 : s.size); };
    std::stable_sort(order.begin(), order.end(), [&](const Slot& a, const Slot& b) { return width(a) > width(b); });
    int fields = 0;
    for (const Slot& s : slots) fields = std::max(fields, s.id + 1);
    std::vector<std::uint16_t> places(static_cast<std::size_t>(fields), 0);
    std::size_t at = 4;
    for (const Slot& s : order) {
        at = (at + width(s) - 1) / width(s) * width(s);
        places[static_cast<std::size_t>(s.id)] = static_cast<std::uint16_t>(at);
        at += width(s);
    }
    const std::size_t vtable_bytes = 4 + 2 * places.size();
    align(8, vtable_bytes);
    const std::size_t vtable = bytes_.size();
    put(static_cast<std::uint16_t>(vtable_bytes));
    put(static_cast<std::uint16_t>(at));
    for (const auto place : places) put(place);
    Table out{bytes_.size(), {}};
    put(static_cast<std::int32_t>(out.position - vtable));
    bytes_.resize(out.position + at, '\0');
    for (const Slot& s : order)
        if (s.size > 0)
            std::memcpy(bytes_.data() + out.position + places[static_cast<std::size_t>(s.id)], &s.value,
                        static_cast<std::size_t>(s.size));
    for (const Slot& s : slots)
        if (s.size == 0) out.references.push_back(out.position + places[static_cast<std::size_t>(s.id)]);
    return out;
}

void FlatWriter::point(std::size_t reference, std::size_t target) {
    const auto offset = static_cast<std::uint32_t>(target - reference);
    std::memcpy(bytes_.data() + reference, &offset, sizeof offset);
}

std::size_t FlatWriter::text(std::string_view value) {
    align(4);
    const std::size_t position = bytes_.size();
    put(static_cast<std::uint32_t>(value.size()));
    bytes_ += value;
    bytes_ += '\0';
    return position;
}

std::size_t FlatWriter::references(std::size_t count, std::vector<std::size_t>& references) {
    align(4);
    const std::size_t position = bytes_.size();
    put(static_cast<std::uint32_t>(count));
    references.clear();
    for (std::size_t i = 0; i < count; ++i) {
        references.push_back(bytes_.size());
        put(std::uint32_t{0});
    }
    return position;
}

std::size_t FlatWriter::pairs(std::span<const std::int64_t> values) {
    align(8, 4);
    const std::size_t position = bytes_.size();
    put(static_cast<std::uint32_t>(values.size() / 2));
    bytes_.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
    return position;
}

void FlatTable::bad() const {
    fail(ErrorCode::corrupt, "{}: message: expected offsets inside the message, found one that leads outside",
         *source_);
}

template <class T>
T FlatTable::at(std::size_t position) const {
    if (position > bytes_.size() || bytes_.size() - position < sizeof(T)) bad();
    T value;
    std::memcpy(&value, bytes_.data() + position, sizeof value);
    return value;
}

FlatTable FlatTable::root(std::span<const std::byte> bytes, const std::string& source) {
    if (bytes.size() < 8)
        fail(ErrorCode::corrupt, "{}: message: expected a table, found {} bytes", source, bytes.size());
    std::uint32_t offset = 0;
    std::memcpy(&offset, bytes.data(), sizeof offset);
    return {bytes, offset, &source};
}

FlatTable::FlatTable(std::span<const std::byte> bytes, std::size_t position, const std::string* source)
    : bytes_(bytes), position_(position), source_(source) {
    const std::int64_t vtable = static_cast<std::int64_t>(position) - at<std::int32_t>(position);
    if (vtable < 0) bad();
    vtable_ = static_cast<std::size_t>(vtable);
    vtable_size_ = at<std::uint16_t>(vtable_);
    table_size_ = at<std::uint16_t>(vtable_ + 2);
    if (vtable_size_ < 4 || vtable_size_ > bytes_.size() - vtable_ || table_size_ > bytes_.size() - position_) bad();
}

std::size_t FlatTable::field(int id) const {
    const std::size_t entry = 4 + 2 * static_cast<std::size_t>(id);
    if (entry + 2 > vtable_size_) return 0;
    const std::size_t offset = at<std::uint16_t>(vtable_ + entry);
    if (offset >= table_size_ && offset != 0) bad();
    return offset == 0 ? 0 : position_ + offset;
}

std::int64_t FlatTable::number(int id, int size, std::int64_t otherwise) const {
    const std::size_t place = field(id);
    if (place == 0) return otherwise;
    switch (size) {
        case 1: return at<std::int8_t>(place);
        case 2: return at<std::int16_t>(place);
        case 4: return at<std::int32_t>(place);
        default: return at<std::int64_t>(place);
    }
}

std::size_t FlatTable::follow(std::size_t position) const {
    const std::size_t target = position + at<std::uint32_t>(position);
    if (target >= bytes_.size()) bad();
    return target;
}

FlatTable FlatTable::table(int id) const {
    const std::size_t place = field(id);
    if (place == 0) bad();
    return {bytes_, follow(place), source_};
}

std::string_view FlatTable::text(int id) const {
    const std::size_t place = field(id);
    if (place == 0) return {};
    const std::size_t begin = follow(place);
    const std::size_t length = at<std::uint32_t>(begin);
    if (length > bytes_.size() - begin - 4) bad();
    return {reinterpret_cast<const char*>(bytes_.data()) + begin + 4, length};
}

std::size_t FlatTable::count(int id) const {
    const std::size_t place = field(id);
    if (place == 0) return 0;
    const std::size_t begin = follow(place);
    const std::size_t n = at<std::uint32_t>(begin);
    if (n > bytes_.size() - begin - 4) bad();
    return n;
}

FlatTable FlatTable::table(int id, std::size_t index) const {
    if (index >= count(id)) bad();
    const std::size_t place = follow(field(id)) + 4 + 4 * index;
    return {bytes_, follow(place), source_};
}

std::span<const std::byte> FlatTable::structs(int id, std::size_t size) const {
    const std::size_t n = count(id);
    if (n == 0) return {};
    const std::size_t begin = follow(field(id)) + 4;
    if (n > (bytes_.size() - begin) / size) bad();
    return bytes_.subspan(begin, n * size);
}

}  // namespace marginmerge
