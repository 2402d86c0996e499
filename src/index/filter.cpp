#include "marginmerge/index/filter.h"

#include <fmt/core.h>

#include <algorithm>

#include "index/filter_node.h"
#include "index/limited_json.h"

namespace marginmerge {

namespace {

using Node = Filter::Node;
using Kind = Scalar::Kind;

bool equal(const Scalar& v, const Literal& l) {
    if (l.loose && v.kind == Kind::string) return v.text == l.value.text;
    if (v.kind != l.value.kind) return false;
    switch (v.kind) {
        case Kind::null: return true;
        case Kind::boolean:
        case Kind::number: return v.number == l.value.number;
        case Kind::string: return v.text == l.value.text;
        default: return false;
    }
}

// Negative, zero, positive; nothing when the two have no order.
bool ordered(const Scalar& v, const Literal& l, int& order) {
    if (v.kind == Kind::number && l.value.kind == Kind::number) {
        order = v.number < l.value.number ? -1 : v.number > l.value.number ? 1 : 0;
        return true;
    }
    if (v.kind == Kind::string && (l.value.kind == Kind::string || l.loose)) {
        order = v.text.compare(l.value.text);
        return true;
    }
    return false;
}

bool any_equal(std::span<const Scalar> found, const Literal& l) {
    if (found.empty()) return l.value.kind == Kind::null;
    return std::any_of(found.begin(), found.end(), [&](const Scalar& v) { return equal(v, l); });
}

bool in_range(const Scalar& v, Node::Operator op, const Literal& l) {
    int order = 0;
    if (!ordered(v, l, order)) return false;
    switch (op) {
        case Node::Operator::lt: return order < 0;
        case Node::Operator::lte: return order <= 0;
        case Node::Operator::gt: return order > 0;
        default: return order >= 0;
    }
}

bool compare(const Node& node, std::span<const Scalar> found) {
    const Literal& l = node.values.front();
    if (node.op == Node::Operator::eq) return any_equal(found, l);
    if (node.op == Node::Operator::ne) return !any_equal(found, l);
    return std::any_of(found.begin(), found.end(), [&](const Scalar& v) { return in_range(v, node.op, l); });
}

std::string in_quotes(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') out += '\\';
        out += c;
    }
    return out + "\"";
}

std::string literal_text(const Literal& l) {
    switch (l.value.kind) {
        case Kind::null: return "null";
        case Kind::boolean: return l.value.number != 0 ? "true" : "false";
        case Kind::number: return l.loose ? l.value.text : fmt::format("{}", l.value.number);
        default: return in_quotes(l.value.text);
    }
}

std::string text_of(const Node& node) {
    static constexpr const char* operators[] = {"=", "!=", "<", "<=", ">", ">="};
    const auto joined = [&](const char* word) {
        std::string out;
        for (const auto& child : node.children) out += (out.empty() ? "" : word) + text_of(*child);
        return fmt::format("({})", out);
    };
    switch (node.kind) {
        case Node::Kind::all: return joined(" and ");
        case Node::Kind::any: return joined(" or ");
        case Node::Kind::negation: return "not " + text_of(*node.children.front());
        case Node::Kind::existence: return in_quotes(node.field) + " exists";
        case Node::Kind::comparison:
            return in_quotes(node.field) + operators[static_cast<std::size_t>(node.op)] +
                   literal_text(node.values.front());
        case Node::Kind::membership: break;
    }
    std::string out;
    for (const auto& l : node.values) out += (out.empty() ? "" : ", ") + literal_text(l);
    return in_quotes(node.field) + " in (" + out + ")";
}

}  // namespace

bool evaluate_filter(const Node& node, const FieldLookup& lookup) {
    const auto holds = [&](const auto& child) { return evaluate_filter(*child, lookup); };
    switch (node.kind) {
        case Node::Kind::all: return std::all_of(node.children.begin(), node.children.end(), holds);
        case Node::Kind::any: return std::any_of(node.children.begin(), node.children.end(), holds);
        case Node::Kind::negation: return !holds(node.children.front());
        case Node::Kind::comparison: return compare(node, lookup(node.field));
        case Node::Kind::membership: {
            const auto found = lookup(node.field);
            return std::any_of(node.values.begin(), node.values.end(),
                               [&](const Literal& l) { return any_equal(found, l); });
        }
        case Node::Kind::existence: break;
    }
    const auto found = lookup(node.field);
    return std::any_of(found.begin(), found.end(), [](const Scalar& v) { return v.kind != Kind::null; });
}

void filter_fields(const Node& node, std::vector<std::string>& fields) {
    for (const auto& child : node.children) filter_fields(*child, fields);
    if (!node.field.empty() && std::find(fields.begin(), fields.end(), node.field) == fields.end())
        fields.push_back(node.field);
}

bool Filter::matches(std::string_view metadata) const {
    if (empty()) return true;
    const auto object = metadata.empty() ? nlohmann::json::object() : parse_limited_json(metadata, "metadata");
    std::vector<Scalar> values;
    return evaluate_filter(*root_, [&](const std::string& field) {
        values.clear();
        field_values(object, field, values);
        return std::span<const Scalar>(values);
    });
}

std::string Filter::to_string() const { return empty() ? "" : text_of(*root_); }

Filter operator&(const Filter& a, const Filter& b) {
    if (a.empty()) return b;
    if (b.empty()) return a;
    auto node = std::make_shared<Filter::Node>();
    node->children = {a.root_, b.root_};
    return Filter(node);
}

}  // namespace marginmerge
