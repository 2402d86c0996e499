#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace marginmerge {

/// A condition on a page's metadata (a JSON object). Immutable, cheap to copy, safe to share
/// between threads. The default filter accepts every page.
///
/// Text form, for people:
///   expression := and-list ("or" and-list)*
///   and-list   := term ("and" term)*
///   term       := "not" term | "(" expression ")" | field "exists" | field "in" "(" [value ("," value)*] ")"
///               | field ("=" | "!=" | "<" | "<=" | ">" | ">=") value
///   field      := a word, dots reach into objects (author.name), or a quoted string
///   value      := a number, true, false, null, a word, or a string in " or ' (backslash escapes the next character)
/// An unquoted number also equals the string of the same spelling, so page=7 finds 7 and "7".
///
/// JSON form, for programs; an object is the conjunction of its entries:
///   {"year": {"gte": 2020, "lt": 2024}, "source": "a.pdf", "language": ["en", "de"],
///    "$or": [{…}, {…}], "$not": {…}}
/// with the operators eq, ne, lt, lte, gt, gte, in and exists. Types are compared strictly.
///
/// Meaning: numbers compare as numbers, strings by bytes; values of different types are unequal and out of
/// every range. When a page's value is an array, a condition holds if it holds for one element.
/// An absent field equals only null and satisfies "!=" with anything else.
class Filter {
public:
    Filter() = default;
    /// Throws Error(invalid_argument) that says where the text stops making sense.
    static Filter parse(std::string_view text);
    static Filter parse_json(std::string_view json);
    /// Both must hold.
    friend Filter operator&(const Filter& a, const Filter& b);

    bool empty() const { return root_ == nullptr; }
    /// Whether one page passes; `metadata` is its JSON object ("" when it has none).
    bool matches(std::string_view metadata) const;
    /// A text form that parses again, for messages and logs; "" for the empty filter.
    std::string to_string() const;

    struct Node;  ///< internal
    const Node* root() const { return root_.get(); }

private:
    explicit Filter(std::shared_ptr<const Node> root) : root_(std::move(root)) {}
    std::shared_ptr<const Node> root_;
};

}  // namespace marginmerge
