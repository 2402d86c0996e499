#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "marginmerge/core/error.h"
#include "select/registry.h"
#include "support/compress_case.h"

namespace marginmerge {
namespace {

using test::CompressCase;

PageResponses responses_of(ConstMatrix v, const Model& model, double tau) {
    PageResponses page;
    page.omega = model.bank.weights();
    compute_responses(v, model.bank.prototypes, tau, page);
    return page;
}

AnchorSelection select(const std::string& rule, const std::string& fill, ConstMatrix v, std::size_t k,
                       const PageResponses* page, std::uint64_t seed = 42, std::optional<std::size_t> start = {}) {
    AnchorRequest request;
    request.vectors = v;
    request.count = k;
    request.responses = page;
    request.fill = &fill_rule(fill);
    request.seed = seed;
    request.start = start;
    AnchorWorkspace workspace;
    AnchorSelection out;
    anchor_rule(rule).select(request, workspace, out);
    return out;
}

// What lazy evaluation must equal: every gain of every patch anew for each pick.
std::vector<std::int32_t> exhaustive(const PageResponses& page, std::size_t k) {
    const std::size_t n = page.coverage.rows();
    const std::size_t m = page.omega.size();
    std::vector<double> covered(m, 0);
    std::vector<char> picked(n, 0);
    std::vector<std::int32_t> order;
    while (order.size() < k) {
        double best = -1;
        std::size_t winner = n;
        for (std::size_t i = 0; i < n; ++i) {
            if (picked[i]) continue;
            double lanes[8] = {};
            for (std::size_t t = 0; t < m; ++t)
                lanes[t % 8] += static_cast<double>(page.omega[t]) *
                                std::max(0.0, static_cast<double>(page.coverage(i, t)) - covered[t]);
            const double gain =
                ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
            if (gain > best) best = gain, winner = i;
        }
        picked[winner] = 1;
        order.push_back(static_cast<std::int32_t>(winner));
        for (std::size_t t = 0; t < m; ++t)
            covered[t] = std::max(covered[t], static_cast<double>(page.coverage(winner, t)));
    }
    return order;
}

class Oracle : public testing::TestWithParam<std::string> {};

TEST_P(Oracle, ResponsesAndCoverage) {
    const CompressCase c = test::load_case(GetParam());
    const PageResponses page = responses_of(c.V, c.model, c.recipe.constants.tau_c);
    const Matrix omega = c.floats("omega"), responses = c.floats("responses"), coverage = c.floats("coverage");
    ASSERT_EQ(page.omega.size(), omega.size());
    for (std::size_t t = 0; t < page.omega.size(); ++t) {
        EXPECT_NEAR(page.omega[t], omega.flat()[t], 1e-6);
        for (std::size_t i = 0; i < c.V.rows(); ++i) {
            ASSERT_NEAR(page.responses(i, t), responses(t, i), 1e-5);
            ASSERT_NEAR(page.coverage(i, t), coverage(t, i), 1e-5);
        }
    }
    EXPECT_LE(test::largest_gap({page.relevance.data(), 1, page.relevance.size()}, c.floats("relevance")), 1e-5);
}

// Given the reference's own coverage values, every pick is the same.
TEST_P(Oracle, AuthorsAnchors) {
    const CompressCase c = test::load_case(GetParam());
    PageResponses page = responses_of(c.V, c.model, c.recipe.constants.tau_c);
    const Matrix coverage = c.floats("coverage");
    for (std::size_t t = 0; t < coverage.rows(); ++t)
        for (std::size_t i = 0; i < coverage.cols(); ++i) page.coverage(i, t) = coverage(t, i);
    const AnchorSelection found = select("coverage", "index", c.V, c.k(), &page);
    EXPECT_EQ(found.order, c.ints("greedy_order"));
    EXPECT_EQ(found.reasoned, c.meta.at("greedy_picks_with_positive_gain").get<std::size_t>());
    auto sorted = found.order;
    std::sort(sorted.begin(), sorted.end());
    EXPECT_EQ(sorted, c.ints("anchors"));
}

// With our own coverage too, except that of several copies of one vector we take the first, while
// the reference's rounding happened to favour another copy in saturated_600.
TEST_P(Oracle, AuthorsAnchorsFromOurCoverage) {
    const CompressCase c = test::load_case(GetParam());
    const PageResponses page = responses_of(c.V, c.model, c.recipe.constants.tau_c);
    const AnchorSelection found = select("coverage", "index", c.V, c.k(), &page);
    const auto expected = c.ints("greedy_order");
    const Matrix gains = c.floats("greedy_gains");
    ASSERT_EQ(found.reasoned, c.meta.at("greedy_picks_with_positive_gain").get<std::size_t>());
    std::size_t copies = 0;
    for (std::size_t p = 0; p < found.reasoned; ++p) {
        const auto ours = static_cast<std::size_t>(found.order[p]), theirs = static_cast<std::size_t>(expected[p]);
        EXPECT_TRUE(std::ranges::equal(c.V.view().row_span(ours), c.V.view().row_span(theirs))) << "pick " << p;
        EXPECT_LE(ours, theirs);
        copies += ours != theirs;
        EXPECT_NEAR(found.gains[p], gains.flat()[p], 1e-5);
    }
    EXPECT_LE(copies, c.name == "saturated_600" ? 1u : 0u);
    if (copies == 0) {
        EXPECT_EQ(found.order, expected);
    }
}

TEST_P(Oracle, FarthestFirst) {
    const CompressCase c = test::load_case(GetParam());
    const auto found =
        select("kcenter", "farthest", c.V, c.k(), nullptr, 42, c.meta.at("kcenter_start").get<std::size_t>());
    EXPECT_EQ(found.order, c.ints("kcenter_anchors"));
}

TEST_P(Oracle, EveryRuleAndFillPicksDistinctPatches) {
    const CompressCase c = test::load_case(GetParam());
    const PageResponses page = responses_of(c.V, c.model, c.recipe.constants.tau_c);
    for (const AnchorRule& rule : anchor_rules())
        for (const FillRule& fill : fill_rules()) {
            const auto found = select(std::string(rule.name), std::string(fill.name), c.V, c.k(), &page);
            const std::set<std::int32_t> distinct(found.order.begin(), found.order.end());
            EXPECT_EQ(distinct.size(), c.k()) << rule.name << ' ' << fill.name;
            EXPECT_GE(*distinct.begin(), 0);
            EXPECT_LT(*distinct.rbegin(), static_cast<std::int32_t>(c.V.rows()));
        }
}

INSTANTIATE_TEST_SUITE_P(Cases, Oracle, testing::ValuesIn(test::compress_cases()),
                         [](const auto& value) { return value.param; });

TEST(Coverage, LazyPicksWhatExhaustiveSearchPicks) {
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        const std::size_t n = 5 + seed * 3;
        const std::size_t m = 1 + seed % 23;
        const Matrix v =
            test::random_page(n, 16, 1 + seed % 7, seed % 3 == 0 ? 0.0 : 0.5, seed);  // spread 0: many exact ties
        const Model model = test::random_model(m, 16, seed);
        const PageResponses page = responses_of(v, model, 0.05);
        const auto lazy = select("coverage", "index", v, n, &page);
        EXPECT_EQ(lazy.order, exhaustive(page, n)) << "seed " << seed;
    }
}

TEST(Coverage, FillsFromWhereTheGainEnds) {
    const Matrix v = test::random_page(200, 16, 60, 0.3, 5);
    const Model model = test::random_model(6, 16, 5);
    const PageResponses page = responses_of(v, model, 0.05);
    const auto farthest = select("coverage", "farthest", v, 50, &page);
    const auto relevance = select("coverage", "relevance", v, 50, &page);
    ASSERT_LT(farthest.reasoned, 20u);
    EXPECT_TRUE(std::equal(farthest.order.begin(),
                           farthest.order.begin() + static_cast<std::ptrdiff_t>(farthest.reasoned),
                           relevance.order.begin()));
    for (std::size_t p = relevance.reasoned + 1; p < relevance.order.size(); ++p)
        EXPECT_GE(page.relevance[static_cast<std::size_t>(relevance.order[p - 1])],
                  page.relevance[static_cast<std::size_t>(relevance.order[p])]);
}

TEST(Random, SeedDecides) {
    const Matrix v = test::random_page(100, 16, 10, 0.3, 5);
    EXPECT_EQ(select("random", "index", v, 20, nullptr, 7).order, select("random", "index", v, 20, nullptr, 7).order);
    EXPECT_NE(select("random", "index", v, 20, nullptr, 7).order, select("random", "index", v, 20, nullptr, 8).order);
}

TEST(Registry, UnknownNamesAreWrongUsage) {
    try {
        anchor_rule("nonsense");
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
        EXPECT_NE(std::string(error.what()).find("kcenter"), std::string::npos);
    }
}

}  // namespace
}  // namespace marginmerge
