#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "index/columns.h"
#include "marginmerge/index/filter.h"

namespace marginmerge {

/// The value a condition compares with.
struct Literal {
    Scalar value;
    bool loose = false;  ///< an unquoted number: also equals the string spelled the same way (in value.text)
};

struct Filter::Node {
    enum class Kind { all, any, negation, comparison, membership, existence };
    enum class Operator { eq, ne, lt, lte, gt, gte };

    Kind kind = Kind::all;
    std::vector<std::shared_ptr<const Node>> children;  ///< all, any, negation (one)
    std::string field;                                  ///< the leaves
    Operator op = Operator::eq;
    std::vector<Literal> values;  ///< one for a comparison, any number for membership
};

/// The values of a field of the page at hand.
using FieldLookup = std::function<std::span<const Scalar>(const std::string& field)>;

bool evaluate_filter(const Filter::Node& node, const FieldLookup& lookup);

/// Every field the filter mentions.
void filter_fields(const Filter::Node& node, std::vector<std::string>& fields);

/// Nesting beyond this is refused by both parsers.
inline constexpr int max_filter_depth = 64;

}  // namespace marginmerge
