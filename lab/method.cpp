#include "lab/method.h"

#include <algorithm>
#include <array>

#include "core/fail.h"
#include "lab/resources.h"

namespace marginmerge::lab {

namespace {

constexpr std::array method_kinds = {"full", "single", "query_conditioned", "structural", "select", "compress"};

}  // namespace

Method parse_method(const nlohmann::json& description) {
    if (description.is_string()) {
        auto found = resource("methods", description.get<std::string>());
        found["id"] = description;
        return parse_method(found);
    }
    if (!description.is_object()) fail(ErrorCode::invalid_argument, "method: expected a name or an object");
    Method m;
    m.settings = description;
    m.id = description.value("id", "");
    m.label = description.value("label", m.id);
    m.kind = description.value("kind", "");
    m.seeded = description.value("seeded", false);
    m.reference = description.value("reference", false);
    m.ours = description.value("ours", false);
    m.remark = description.value("remark", "");
    if (m.id.empty()) fail(ErrorCode::invalid_argument, "method: id: expected a name, found none");
    if (std::find(method_kinds.begin(), method_kinds.end(), m.kind) == method_kinds.end())
        fail(ErrorCode::invalid_argument,
             "method {}: kind: expected full, single, query_conditioned, structural, select or compress, found '{}'",
             m.id, m.kind);
    // What a method is called does not change what it does.
    for (const char* field : {"id", "label", "kind", "seeded", "reference", "ours", "remark"}) m.settings.erase(field);
    return m;
}

std::vector<Method> parse_methods(const nlohmann::json& list) {
    std::vector<Method> methods;
    for (const auto& entry : list) methods.push_back(parse_method(entry));
    return methods;
}

}  // namespace marginmerge::lab
