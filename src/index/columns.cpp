#include "index/columns.h"

#include <nlohmann/json.hpp>

namespace marginmerge {

namespace {

using nlohmann::json;

const json* lookup(const json& object, std::string_view field) {
    if (!object.is_object()) return nullptr;
    const auto whole = object.find(std::string(field));
    if (whole != object.end()) return &*whole;
    for (std::size_t dot = field.find('.'); dot != std::string_view::npos; dot = field.find('.', dot + 1)) {
        const auto inner = object.find(std::string(field.substr(0, dot)));
        if (inner == object.end()) continue;
        return lookup(*inner, field.substr(dot + 1));
    }
    return nullptr;
}

Scalar scalar(const json& value) {
    Scalar s;
    switch (value.type()) {
        case json::value_t::null: break;
        case json::value_t::boolean:
            s.kind = Scalar::Kind::boolean;
            s.number = value.get<bool>() ? 1 : 0;
            break;
        case json::value_t::number_integer:
        case json::value_t::number_unsigned:
        case json::value_t::number_float:
            s.kind = Scalar::Kind::number;
            s.number = value.get<double>();
            break;
        case json::value_t::string:
            s.kind = Scalar::Kind::string;
            s.text = value.get_ref<const std::string&>();
            break;
        default: s.kind = Scalar::Kind::other;
    }
    return s;
}

}  // namespace

void field_values(const json& object, std::string_view field, std::vector<Scalar>& out) {
    const json* value = lookup(object, field);
    if (value == nullptr) return;
    if (!value->is_array()) {
        out.push_back(scalar(*value));
        return;
    }
    for (const json& element : *value) out.push_back(scalar(element));
}

}  // namespace marginmerge
