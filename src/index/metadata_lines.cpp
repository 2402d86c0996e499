#include <fmt/core.h>

#include "core/fail.h"
#include "index/limited_json.h"
#include "marginmerge/index/index_writer.h"

namespace marginmerge {

namespace {

using nlohmann::json;

std::string take_id(json& object, const std::string& where) {
    for (const char* name : {"id", "_id"}) {
        const auto found = object.find(name);
        if (found == object.end()) continue;
        if (!found->is_string() && !found->is_number_integer())
            fail(ErrorCode::corrupt, "{}: {}: expected a string or an integer, found {}", where, name,
                 found->type_name());
        std::string id = found->is_string() ? found->get<std::string>() : found->dump();
        object.erase(found);
        return id;
    }
    fail(ErrorCode::corrupt, "{}: expected the page's id under \"id\", found none", where);
}

}  // namespace

std::vector<std::string> parse_metadata_lines(std::string_view text, const MultiVectorSet& pages,
                                              const std::string& source) {
    std::vector<std::string> result(pages.size());
    for (std::size_t line = 1; !text.empty(); ++line) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        std::string_view row = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        if (!row.empty() && row.back() == '\r') row.remove_suffix(1);
        if (row.find_first_not_of(" \t") == std::string_view::npos) continue;
        const std::string where = fmt::format("{}: line {}", source, line);
        json object = parse_limited_json(row, where);
        if (!object.is_object())
            fail(ErrorCode::corrupt, "{}: expected a JSON object, found {}", where, object.type_name());
        const std::string id = take_id(object, where);
        const auto position = pages.find(id);
        if (!position) fail(ErrorCode::corrupt, "{}: id: expected a page of the file, found '{}'", where, id);
        if (!result[*position].empty()) fail(ErrorCode::corrupt, "{}: id: '{}' has metadata already", where, id);
        if (object.size() == 1 && object.contains("metadata") && object["metadata"].is_object()) {
            json inner = object["metadata"];
            object = std::move(inner);
        }
        result[*position] = object.dump(-1, ' ', false, json::error_handler_t::replace);
    }
    return result;
}

}  // namespace marginmerge
