#include "marginmerge/core/error.h"

#include "core/fail.h"

namespace marginmerge {

std::string one_line(std::string text) {
    constexpr std::size_t longest = 1000;
    if (text.size() > longest) {
        text.resize(longest);
        text += "...";
    }
    for (char& c : text)
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = '?';
    return text;
}

const char* to_string(ErrorCode code) {
    switch (code) {
        case ErrorCode::invalid_argument: return "invalid_argument";
        case ErrorCode::not_found: return "not_found";
        case ErrorCode::corrupt: return "corrupt";
        case ErrorCode::unsupported: return "unsupported";
        case ErrorCode::io: return "io";
        case ErrorCode::internal: return "internal";
    }
    return "internal";
}

}  // namespace marginmerge
