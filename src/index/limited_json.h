#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace marginmerge {

/// Parses JSON that strangers wrote: nesting is limited, so that neither walking nor writing the
/// value again can exhaust the stack. Throws Error(code) that names `source`.
nlohmann::json parse_limited_json(std::string_view text, const std::string& source, int max_depth = 64);

}  // namespace marginmerge
