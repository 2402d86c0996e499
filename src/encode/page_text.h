#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace marginmerge {

/// left, top, right, bottom in fractions of the page; all zero: nowhere.
using Box = std::array<float, 4>;

/// Where some bytes of a page's text stand.
struct TextSpan {
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
    Box box{};
};

/// A page's text in reading order, words separated by spaces and lines by line feeds, with the
/// place of every character. Spans ascend and do not overlap.
struct PageText {
    std::string text;
    std::vector<TextSpan> spans;

    /// Smallest box around the spans that touch [begin,end); zero when there is none.
    Box box_of(std::uint32_t begin, std::uint32_t end) const;
};

}  // namespace marginmerge
