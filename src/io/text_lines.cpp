#include "io/text_lines.h"

#include <algorithm>
#include <cstdint>

namespace marginmerge {

namespace {

constexpr std::string_view blanks = " \t\v\f\r";

bool is_blank(std::string_view line) { return line.find_first_not_of(blanks) == std::string_view::npos; }

}  // namespace

TextLines::TextLines(std::string_view text) : text_(text) {
    if (text_.substr(0, 3) == "\xEF\xBB\xBF") consumed_ = 3;
}

bool TextLines::next(std::string_view& line) {
    while (consumed_ < text_.size()) {
        const std::size_t end = std::min(text_.find('\n', consumed_), text_.size());
        line = text_.substr(consumed_, end - consumed_);
        consumed_ = std::min(end + 1, text_.size());
        ++number_;
        if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
        if (!is_blank(line)) return true;
    }
    return false;
}

std::vector<std::string_view> split_fields(std::string_view line) {
    std::vector<std::string_view> fields;
    if (line.find('\t') != std::string_view::npos) {
        for (std::size_t begin = 0; begin <= line.size();) {
            const std::size_t end = std::min(line.find('\t', begin), line.size());
            fields.push_back(line.substr(begin, end - begin));
            begin = end + 1;
        }
        return fields;
    }
    for (std::size_t begin = line.find_first_not_of(blanks); begin != std::string_view::npos;) {
        const std::size_t end = std::min(line.find_first_of(blanks, begin), line.size());
        fields.push_back(line.substr(begin, end - begin));
        begin = line.find_first_not_of(blanks, end);
    }
    return fields;
}

bool is_utf8(std::string_view text) {
    std::size_t i = 0;
    while (i < text.size()) {
        const auto lead = static_cast<unsigned char>(text[i++]);
        if (lead < 0x80) continue;
        const std::size_t more = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : 1;
        if (lead < 0xC2 || lead > 0xF4 || text.size() - i < more) return false;
        std::uint32_t c = lead & (0x3FU >> more);
        for (std::size_t j = 0; j < more; ++j) {
            const auto next = static_cast<unsigned char>(text[i++]);
            if ((next & 0xC0) != 0x80) return false;
            c = (c << 6) | (next & 0x3FU);
        }
        constexpr std::uint32_t least[] = {0, 0x80, 0x800, 0x10000};
        if (c < least[more] || c > 0x10FFFF || (c >= 0xD800 && c < 0xE000)) return false;
    }
    return true;
}

}  // namespace marginmerge
