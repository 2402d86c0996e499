#include "index/limited_json.h"

#include "core/fail.h"

namespace marginmerge {

nlohmann::json parse_limited_json(std::string_view text, const std::string& source, int max_depth) {
    using nlohmann::json;
    const auto guard = [&](int depth, json::parse_event_t, json&) {
        if (depth > max_depth) fail(ErrorCode::corrupt, "{}: JSON: expected at most {} levels", source, max_depth);
        return true;
    };
    json value = json::parse(text.begin(), text.end(), guard, false);
    if (value.is_discarded()) {
        std::string start(text.substr(0, 40));
        for (char& c : start)
            if (static_cast<unsigned char>(c) < 32) c = ' ';
        fail(ErrorCode::corrupt, "{}: expected JSON, found '{}{}'", source, start, text.size() > 40 ? "..." : "");
    }
    return value;
}

}  // namespace marginmerge
