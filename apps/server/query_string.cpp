#include "query_string.h"

#include <algorithm>
#include <charconv>

namespace marginmerge::server {

namespace {

std::string decoded(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const std::string_view digits = text.substr(i + 1, 2);
        unsigned char byte = 0;
        if (text[i] == '%' && digits.size() == 2 &&
            std::from_chars(digits.data(), digits.data() + 2, byte, 16).ptr == digits.data() + 2) {
            out.push_back(static_cast<char>(byte));
            i += 2;
        } else {
            out.push_back(text[i] == '+' ? ' ' : text[i]);
        }
    }
    return out;
}

}  // namespace

Parameters parse_query(std::string_view target) {
    Parameters parameters;
    target = target.substr(0, target.find('#'));
    const auto mark = target.find('?');
    std::string_view rest = mark == target.npos ? std::string_view() : target.substr(mark + 1);
    while (!rest.empty()) {
        const std::string_view pair = rest.substr(0, rest.find('&'));
        rest.remove_prefix(std::min(pair.size() + 1, rest.size()));
        const std::string_view name = pair.substr(0, pair.find('='));
        if (name.empty()) continue;
        parameters.emplace(decoded(name), decoded(pair.substr(std::min(name.size() + 1, pair.size()))));
    }
    return parameters;
}

}  // namespace marginmerge::server
