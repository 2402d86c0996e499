#include "select/registry.h"

#include <array>

#include "core/fail.h"

namespace marginmerge {

namespace {

constexpr std::array anchor_table = {
    AnchorRule{"coverage", "greedy coverage of the prototype bank (the paper's)", true, true, select_coverage},
    AnchorRule{"kcenter", "farthest-first from a seeded start", false, false, select_kcenter},
    AnchorRule{"random", "a seeded draw", false, false, select_random},
    AnchorRule{"plusplus", "k-means++ seeding", false, false, select_plusplus},
};

constexpr std::array fill_table = {
    FillRule{"farthest", "the patch farthest from the anchors so far", false, fill_farthest},
    FillRule{"relevance", "falling prototype relevance", true, fill_relevance},
    FillRule{"index", "the lowest patch numbers, as the paper's program does", false, fill_index},
};

template <class Table>
const auto& look_up(const Table& table, std::string_view name, std::string_view kind) {
    std::string names;
    for (const auto& rule : table) {
        if (rule.name == name) return rule;
        names += (names.empty() ? "" : ", ") + std::string(rule.name);
    }
    fail(ErrorCode::invalid_argument, "{}: expected one of {}, found '{}'", kind, names, name);
}

}  // namespace

std::span<const AnchorRule> anchor_rules() { return anchor_table; }
std::span<const FillRule> fill_rules() { return fill_table; }
const AnchorRule& anchor_rule(std::string_view name) { return look_up(anchor_table, name, "anchors"); }
const FillRule& fill_rule(std::string_view name) { return look_up(fill_table, name, "fill"); }

}  // namespace marginmerge
