// The text form of filters: a recursive-descent parser over the grammar in filter.h.
#include <cctype>
#include <charconv>
#include <cmath>

#include "core/fail.h"
#include "index/filter_node.h"

namespace marginmerge {

namespace {

using Node = Filter::Node;
using NodePtr = std::shared_ptr<const Node>;

struct Word {
    std::string text;
    bool quoted = false;
};

class Parser {
public:
    explicit Parser(std::string_view text) : text_(text) {}

    NodePtr parse() {
        NodePtr node = expression(0);
        skip_spaces();
        if (at_ < text_.size()) stop("'and', 'or' or the end");
        return node;
    }

private:
    [[noreturn]] void stop(std::string_view expected) {
        const auto rest = text_.substr(std::min(at_, text_.size()), 20);
        fail(ErrorCode::invalid_argument, "filter: expected {} at character {}, found {}", expected, at_ + 1,
             rest.empty() ? "the end" : "'" + std::string(rest) + "'");
    }

    void skip_spaces() {
        while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
    }

    static bool is_word(char c) {
        return std::isspace(static_cast<unsigned char>(c)) == 0 &&
               std::string_view("()=!<>,\"'").find(c) == std::string_view::npos;
    }

    bool take(std::string_view token) {
        skip_spaces();
        if (text_.substr(at_, token.size()) != token) return false;
        at_ += token.size();
        return true;
    }

    // A keyword only counts when the word ends there: "order" does not begin with "or".
    bool take_keyword(std::string_view keyword) {
        skip_spaces();
        if (text_.substr(at_, keyword.size()) != keyword) return false;
        const std::size_t end = at_ + keyword.size();
        if (end < text_.size() && is_word(text_[end])) return false;
        at_ = end;
        return true;
    }

    Word word(std::string_view expected) {
        skip_spaces();
        Word w;
        if (at_ < text_.size() && (text_[at_] == '"' || text_[at_] == '\'')) {
            const char quote = text_[at_++];
            w.quoted = true;
            while (at_ < text_.size() && text_[at_] != quote) {
                if (text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
                w.text += text_[at_++];
            }
            if (at_ >= text_.size()) stop("a closing quote");
            ++at_;
            return w;
        }
        while (at_ < text_.size() && is_word(text_[at_])) w.text += text_[at_++];
        if (w.text.empty()) stop(expected);
        return w;
    }

    Literal literal() {
        const Word w = word("a value");
        Literal l;
        l.value.text = w.text;
        l.value.kind = Scalar::Kind::string;
        if (w.quoted) return l;
        if (w.text == "null") {
            l.value = {};
        } else if (w.text == "true" || w.text == "false") {
            l.value.kind = Scalar::Kind::boolean;
            l.value.number = w.text == "true" ? 1 : 0;
        } else {
            double number = 0;
            const auto [end, error] = std::from_chars(w.text.data(), w.text.data() + w.text.size(), number);
            if (error == std::errc() && end == w.text.data() + w.text.size() && std::isfinite(number)) {
                l.value.kind = Scalar::Kind::number;
                l.value.number = number;
                l.loose = true;
            }
        }
        return l;
    }

    NodePtr list(int depth, Node::Kind kind, std::string_view keyword) {
        const auto element = [&] {
            return kind == Node::Kind::any ? list(depth, Node::Kind::all, "and") : term(depth);
        };
        NodePtr first = element();
        if (!take_keyword(keyword)) return first;
        auto node = std::make_shared<Node>();
        node->kind = kind;
        node->children = {first, element()};
        while (take_keyword(keyword)) node->children.push_back(element());
        return node;
    }

    NodePtr expression(int depth) {
        if (depth > max_filter_depth)
            fail(ErrorCode::invalid_argument, "filter: expected at most {} levels of nesting", max_filter_depth);
        return list(depth, Node::Kind::any, "or");
    }

    NodePtr term(int depth) {
        if (depth > max_filter_depth)
            fail(ErrorCode::invalid_argument, "filter: expected at most {} levels of nesting", max_filter_depth);
        auto node = std::make_shared<Node>();
        if (take_keyword("not")) {
            node->kind = Node::Kind::negation;
            node->children.push_back(term(depth + 1));
            return node;
        }
        if (take("(")) {
            NodePtr inner = expression(depth + 1);
            if (!take(")")) stop("')'");
            return inner;
        }
        node->field = word("a field name").text;
        if (node->field.empty()) stop("a field name that is not empty");
        if (take_keyword("exists")) {
            node->kind = Node::Kind::existence;
            return node;
        }
        if (take_keyword("in")) {
            node->kind = Node::Kind::membership;
            if (!take("(")) stop("'('");
            if (take(")")) return node;
            do node->values.push_back(literal());
            while (take(","));
            if (!take(")")) stop("',' or ')'");
            return node;
        }
        node->kind = Node::Kind::comparison;
        // Longer spellings first; "==" is what programmers type.
        static constexpr struct {
            std::string_view text;
            Node::Operator op;
        } operators[] = {{"==", Node::Operator::eq},  {"!=", Node::Operator::ne}, {"<=", Node::Operator::lte},
                         {">=", Node::Operator::gte}, {"=", Node::Operator::eq},  {"<", Node::Operator::lt},
                         {">", Node::Operator::gt}};
        for (const auto& o : operators) {
            if (!take(o.text)) continue;
            node->op = o.op;
            node->values.push_back(literal());
            return node;
        }
        stop("=, !=, <, <=, >, >=, in or exists");
    }

    std::string_view text_;
    std::size_t at_ = 0;
};

}  // namespace

Filter Filter::parse(std::string_view text) { return Filter(Parser(text).parse()); }

}  // namespace marginmerge
