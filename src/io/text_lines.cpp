#include "io/text_lines.h"

#include <algorithm>

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

}  // namespace marginmerge
