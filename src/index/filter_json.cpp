// The JSON form of filters.
#include "core/fail.h"
#include "index/filter_node.h"
#include "index/limited_json.h"

namespace marginmerge {

namespace {

using nlohmann::json;
using Node = Filter::Node;
using NodePtr = std::shared_ptr<const Node>;

Literal literal(const json& value, const std::string& field) {
    if (value.is_structured())
        fail(ErrorCode::invalid_argument, "filter: {}: expected a number, string, boolean or null", field);
    // Wrapped in an object so that a page's value and a literal are read by the same code.
    std::vector<Scalar> values;
    field_values(json{{"v", value}}, "v", values);
    return {values.front(), false};
}

NodePtr membership(const std::string& field, const json& values) {
    auto node = std::make_shared<Node>();
    node->kind = Node::Kind::membership;
    node->field = field;
    if (!values.is_array()) fail(ErrorCode::invalid_argument, "filter: {}: in: expected an array", field);
    for (const json& v : values) node->values.push_back(literal(v, field));
    return node;
}

NodePtr condition(const std::string& field, const std::string& name, const json& value) {
    static constexpr struct {
        const char* name;
        Node::Operator op;
    } operators[] = {{"eq", Node::Operator::eq},   {"ne", Node::Operator::ne}, {"lt", Node::Operator::lt},
                     {"lte", Node::Operator::lte}, {"gt", Node::Operator::gt}, {"gte", Node::Operator::gte}};
    if (name == "in") return membership(field, value);
    auto node = std::make_shared<Node>();
    node->field = field;
    if (name == "exists") {
        if (!value.is_boolean()) fail(ErrorCode::invalid_argument, "filter: {}: exists: expected true or false", field);
        node->kind = Node::Kind::existence;
        if (value.get<bool>()) return node;
        auto negation = std::make_shared<Node>();
        negation->kind = Node::Kind::negation;
        negation->children.push_back(node);
        return negation;
    }
    for (const auto& o : operators) {
        if (name != o.name) continue;
        node->kind = Node::Kind::comparison;
        node->op = o.op;
        node->values.push_back(literal(value, field));
        return node;
    }
    fail(ErrorCode::invalid_argument, "filter: {}: expected eq, ne, lt, lte, gt, gte, in or exists, found '{}'", field,
         name);
}

NodePtr conjunction(const json& object, bool nested = true) {
    if (!object.is_object() || (nested && object.empty()))
        fail(ErrorCode::invalid_argument, "filter: expected a JSON object{}",
             nested ? " with at least one condition" : "");
    auto node = std::make_shared<Node>();
    for (const auto& [field, value] : object.items()) {
        if (field.empty()) fail(ErrorCode::invalid_argument, "filter: expected a field name that is not empty");
        if (field == "$not") {
            auto negation = std::make_shared<Node>();
            negation->kind = Node::Kind::negation;
            negation->children.push_back(conjunction(value));
            node->children.push_back(negation);
        } else if (field == "$or" || field == "$and") {
            if (!value.is_array() || value.empty())
                fail(ErrorCode::invalid_argument, "filter: {}: expected an array of objects", field);
            auto group = std::make_shared<Node>();
            group->kind = field == "$or" ? Node::Kind::any : Node::Kind::all;
            for (const json& v : value) group->children.push_back(conjunction(v));
            node->children.push_back(group);
        } else if (value.is_array()) {
            node->children.push_back(membership(field, value));
        } else if (value.is_object()) {
            if (value.empty()) fail(ErrorCode::invalid_argument, "filter: {}: expected an operator", field);
            for (const auto& [name, operand] : value.items()) node->children.push_back(condition(field, name, operand));
        } else {
            node->children.push_back(condition(field, "eq", value));
        }
    }
    return node;
}

}  // namespace

Filter Filter::parse_json(std::string_view text) {
    json value;
    try {
        value = parse_limited_json(text, "filter", max_filter_depth);
    } catch (const Error& error) {
        fail(ErrorCode::invalid_argument, "{}", error.what());
    }
    const NodePtr node = conjunction(value, false);
    return node->children.empty() ? Filter() : Filter(node);
}

}  // namespace marginmerge
