#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace marginmerge {

/// Walks over the lines of a text without copying: strips "\r\n" or "\n" and a leading UTF-8 byte
/// order mark, skips blank lines, counts from 1.
class TextLines {
public:
    explicit TextLines(std::string_view text);
    /// The next line that is not blank; false at the end.
    bool next(std::string_view& line);
    std::size_t number() const { return number_; }      ///< of the line next() returned last
    std::size_t consumed() const { return consumed_; }  ///< bytes of the text behind us

private:
    std::string_view text_;
    std::size_t consumed_ = 0;
    std::size_t number_ = 0;
};

/// The fields of a line: between tabs when the line has one (fields may then hold spaces),
/// otherwise between runs of blanks.
std::vector<std::string_view> split_fields(std::string_view line);

/// Well-formed UTF-8, no surrogates, nothing overlong.
bool is_utf8(std::string_view text);

}  // namespace marginmerge
