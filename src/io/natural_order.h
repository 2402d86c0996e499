#pragma once

#include <string_view>

namespace marginmerge {

/// Less-than for names as people number them: runs of digits compare as numbers ("page2" before
/// "page10"), everything else byte by byte; equal but for leading zeros: plain comparison.
inline bool natural_less(std::string_view a, std::string_view b) {
    const auto digit = [](char c) { return c >= '0' && c <= '9'; };
    std::size_t i = 0, j = 0;
    while (i < a.size() && j < b.size()) {
        if (digit(a[i]) && digit(b[j])) {
            while (i < a.size() && a[i] == '0') ++i;
            while (j < b.size() && b[j] == '0') ++j;
            const std::size_t i0 = i, j0 = j;
            while (i < a.size() && digit(a[i])) ++i;
            while (j < b.size() && digit(b[j])) ++j;
            if (i - i0 != j - j0) return i - i0 < j - j0;
            const int order = a.substr(i0, i - i0).compare(b.substr(j0, j - j0));
            if (order != 0) return order < 0;
            continue;
        }
        if (a[i] != b[j]) return static_cast<unsigned char>(a[i]) < static_cast<unsigned char>(b[j]);
        ++i;
        ++j;
    }
    const bool a_done = i == a.size(), b_done = j == b.size();
    return a_done != b_done ? a_done : a < b;
}

}  // namespace marginmerge
