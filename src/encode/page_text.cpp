#include "encode/page_text.h"

#include <algorithm>

namespace marginmerge {

Box PageText::box_of(std::uint32_t begin, std::uint32_t end) const {
    Box box{};
    bool any = false;
    auto it = std::upper_bound(spans.begin(), spans.end(), begin,
                               [](std::uint32_t at, const TextSpan& s) { return at < s.end; });
    for (; it != spans.end() && it->begin < end; ++it) {
        const Box& b = it->box;
        if (!any) box = b;
        box = {std::min(box[0], b[0]), std::min(box[1], b[1]), std::max(box[2], b[2]), std::max(box[3], b[3])};
        any = true;
    }
    return box;
}

}  // namespace marginmerge
