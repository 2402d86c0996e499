#include "io/npy_reader.h"

#include <charconv>
#include <cstring>
#include <optional>

#include "core/fail.h"

namespace marginmerge {

namespace {

constexpr std::size_t max_dimensions = 8;

// The header is a Python dictionary literal with three known keys; this reads just that.
class HeaderParser {
public:
    HeaderParser(std::string_view text, const std::string& source) : text_(text), source_(source) {}

    NpyHeader parse() {
        expect('{');
        while (!accept('}')) {
            const std::string_view key = quoted();
            expect(':');
            if (key == "descr") {
                descr();
            } else if (key == "fortran_order") {
                fortran_ = boolean();
            } else if (key == "shape") {
                shape();
            } else {
                bad("keys descr, fortran_order and shape", std::string(key));
            }
            if (!accept(',')) {
                expect('}');
                break;
            }
        }
        if (!descr_seen_ || !fortran_ || !shape_seen_)
            fail(ErrorCode::corrupt, "{}: header: expected descr, fortran_order and shape", source_);
        if (*fortran_ && header_.array.shape.size() > 1)
            fail(ErrorCode::unsupported,
                 "{}: fortran_order: expected False, found True; save numpy.ascontiguousarray(x) instead", source_);
        return header_;
    }

private:
    [[noreturn]] void bad(const char* expected, const std::string& found) const {
        fail(ErrorCode::corrupt, "{}: header: expected {}, found '{}'", source_, expected, found.substr(0, 40));
    }
    void blanks() {
        while (position_ < text_.size() && (text_[position_] == ' ' || text_[position_] == '\n')) ++position_;
    }
    bool accept(char c) {
        blanks();
        if (position_ >= text_.size() || text_[position_] != c) return false;
        ++position_;
        return true;
    }
    void expect(char c) {
        if (!accept(c)) bad(std::string(1, c).c_str(), std::string(text_.substr(std::min(position_, text_.size()))));
    }
    std::string_view quoted() {
        blanks();
        const char quote = position_ < text_.size() ? text_[position_] : '\0';
        if (quote != '\'' && quote != '"')
            bad("a quoted string", std::string(text_.substr(std::min(position_, text_.size()))));
        const auto end = text_.find(quote, position_ + 1);
        if (end == std::string_view::npos) bad("a closing quote", std::string(text_.substr(position_)));
        const auto value = text_.substr(position_ + 1, end - position_ - 1);
        position_ = end + 1;
        return value;
    }
    bool boolean() {
        blanks();
        for (const std::string_view word : {"True", "False"}) {
            if (text_.substr(position_, word.size()) != word) continue;
            position_ += word.size();
            return word == "True";
        }
        bad("True or False", std::string(text_.substr(std::min(position_, text_.size()))));
    }
    void shape() {
        shape_seen_ = true;
        header_.array.shape.clear();
        expect('(');
        while (!accept(')')) {
            blanks();
            std::uint64_t extent = 0;
            const char* end_of_text = text_.data() + text_.size();
            const auto [end, error] = std::from_chars(text_.data() + position_, end_of_text, extent);
            if (error != std::errc()) bad("a shape of whole numbers", std::string(text_.substr(position_)));
            position_ = static_cast<std::size_t>(end - text_.data());
            if (position_ < text_.size() && text_[position_] == 'L') ++position_;  // Python 2 long
            if (header_.array.shape.size() == max_dimensions) bad("at most 8 dimensions", "more");
            header_.array.shape.push_back(extent);
            if (!accept(',')) {
                expect(')');
                break;
            }
        }
    }
    void descr() {
        descr_seen_ = true;
        blanks();
        if (position_ < text_.size() && text_[position_] == '[')
            fail(ErrorCode::unsupported, "{}: descr: expected one number type, found a record type", source_);
        const std::string_view d = quoted();
        const auto unknown = [&](const char* expected) {
            fail(ErrorCode::unsupported, "{}: descr: expected {}, found '{}'", source_, expected, d.substr(0, 40));
        };
        if (d.size() < 2) unknown("a type such as '<f4'");
        const char order = d[0];
        const std::string_view type = d.substr(order == '<' || order == '>' || order == '|' || order == '=' ? 1 : 0);
        if (order == '>') unknown("little-endian data ('<')");
        if (type[0] == 'O')
            unknown("plain numbers (objects would have to be unpickled; save one array per document in .npz)");
        if (type[0] == 'U' || type[0] == 'S') {
            std::uint32_t width = 0;
            const auto [end, error] = std::from_chars(type.data() + 1, type.data() + type.size(), width);
            if (error != std::errc() || end != type.data() + type.size() || width == 0 || width > 65536)
                unknown("strings of 1 to 65536 characters");
            header_.wide_text = type[0] == 'U';
            header_.text_width = header_.wide_text ? width * 4 : width;
            header_.array.type = DType::u8;
            return;
        }
        // NumPy has no bfloat16 of its own; the usual extension types are stored as 2-byte voids.
        constexpr std::pair<std::string_view, DType> types[] = {
            {"f2", DType::f16}, {"f4", DType::f32}, {"f8", DType::f64},    {"V2", DType::bf16}, {"i1", DType::i8},
            {"i2", DType::i16}, {"i4", DType::i32}, {"i8", DType::i64},    {"u1", DType::u8},   {"u2", DType::u16},
            {"u4", DType::u32}, {"u8", DType::u64}, {"b1", DType::boolean}};
        for (const auto& [name, dtype] : types) {
            if (type != name) continue;
            header_.array.type = dtype;
            header_.text_width = 0;
            return;
        }
        unknown("f2, f4, f8, V2 (bfloat16) or an integer type");
    }

    std::string_view text_;
    const std::string& source_;
    std::size_t position_ = 0;
    NpyHeader header_;
    std::optional<bool> fortran_;
    bool descr_seen_ = false;
    bool shape_seen_ = false;
};

void append_utf8(std::string& out, std::uint32_t c, const std::string& source) {
    if (c > 0x10FFFF || (c >= 0xD800 && c < 0xE000))
        fail(ErrorCode::corrupt, "{}: expected Unicode text, found code point {}", source, c);
    if (c < 0x80) {
        out += static_cast<char>(c);
    } else if (c < 0x800) {
        out += static_cast<char>(0xC0 | (c >> 6));
        out += static_cast<char>(0x80 | (c & 0x3F));
    } else if (c < 0x10000) {
        out += static_cast<char>(0xE0 | (c >> 12));
        out += static_cast<char>(0x80 | ((c >> 6) & 0x3F));
        out += static_cast<char>(0x80 | (c & 0x3F));
    } else {
        out += static_cast<char>(0xF0 | (c >> 18));
        out += static_cast<char>(0x80 | ((c >> 12) & 0x3F));
        out += static_cast<char>(0x80 | ((c >> 6) & 0x3F));
        out += static_cast<char>(0x80 | (c & 0x3F));
    }
}

}  // namespace

NpyHeader parse_npy_header(std::span<const std::byte> prefix, const std::string& source) {
    if (prefix.size() < 10 || std::memcmp(prefix.data(), npy_magic.data(), npy_magic.size()) != 0)
        fail(ErrorCode::corrupt, "{}: expected the .npy magic and a header, found {} bytes of something else", source,
             prefix.size());
    const auto major = std::to_integer<unsigned>(prefix[6]);
    if (major < 1 || major > 3)
        fail(ErrorCode::unsupported, "{}: .npy version: expected 1 to 3, found {}", source, major);
    const std::size_t width = major == 1 ? 2 : 4;
    std::uint32_t length = 0;
    if (prefix.size() >= 8 + width) std::memcpy(&length, prefix.data() + 8, width);
    const std::size_t begin = 8 + width;
    if (prefix.size() < begin || length > max_npy_header - begin || length > prefix.size() - begin)
        fail(ErrorCode::corrupt, "{}: header length: expected at most {}, found {}", source,
             std::min(prefix.size(), max_npy_header) - std::min(prefix.size(), begin), length);
    const std::string_view text(reinterpret_cast<const char*>(prefix.data()) + begin, length);
    NpyHeader header = HeaderParser(text, source).parse();
    header.data_begin = begin + length;
    return header;
}

std::vector<std::int64_t> npy_integers(std::span<const std::byte> file, const std::string& source, ArrayInfo& info) {
    const NpyHeader header = parse_npy_header(file, source);
    info = header.array;
    if (header.text_width != 0) fail(ErrorCode::corrupt, "{}: expected whole numbers, found text", source);
    const auto data = file.subspan(header.data_begin);
    const auto bytes = checked_bytes(info.type, info.shape, data.size(), source, "array");
    return to_integers(info.type, data.first(bytes), source, "array");
}

std::vector<std::string> npy_strings(std::span<const std::byte> file, const std::string& source) {
    const NpyHeader header = parse_npy_header(file, source);
    if (header.array.shape.size() != 1)
        fail(ErrorCode::corrupt, "{}: ids: expected 1 dimension, found {}", source, header.array.shape.size());
    std::vector<std::string> strings;
    if (header.text_width == 0) {
        ArrayInfo info;
        for (const auto value : npy_integers(file, source, info)) strings.push_back(std::to_string(value));
        return strings;
    }
    const auto data = file.subspan(header.data_begin);
    const std::uint64_t shape[] = {header.array.shape[0], header.text_width};
    checked_bytes(DType::u8, shape, data.size(), source, "ids");
    strings.reserve(header.array.shape[0]);
    for (std::size_t i = 0; i < header.array.shape[0]; ++i) {
        const auto* item = data.data() + i * header.text_width;
        std::string text;
        if (header.wide_text) {
            for (std::size_t j = 0; j < header.text_width; j += 4) {
                std::uint32_t c = 0;
                std::memcpy(&c, item + j, 4);
                if (c != 0) append_utf8(text, c, source);
            }
        } else {
            text.assign(reinterpret_cast<const char*>(item), header.text_width);
            text.resize(text.find_last_not_of('\0') + 1);
        }
        strings.push_back(std::move(text));
    }
    return strings;
}

}  // namespace marginmerge
