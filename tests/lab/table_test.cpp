#include "lab/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lab/chart.h"
#include "lab/findings.h"
#include "lab/paper.h"

namespace marginmerge::lab {
namespace {

using testing::HasSubstr;

Table example() {
    Table t;
    t.id = "x";
    t.title = "A & B.";
    t.columns = {"one", "two"};
    t.groups = {{"5% kept", 2}};
    t.rows = {{"a_b", {{".900", 0.941}, {".700", {}}}, false, true},
              {"c|d", {{".897", {}}, {"<x>", {}}}, false, false}};
    return t;
}

TEST(Table, MarksTheBestAndWhatIsWithinTheTolerance) {
    Table t = example();
    mark_best(t, {{0.9, 0.7}, {0.897, 0.65}});
    EXPECT_EQ(t.rows[0].cells[0].mark, Cell::Mark::best);
    EXPECT_EQ(t.rows[1].cells[0].mark, Cell::Mark::near);
    EXPECT_EQ(t.rows[1].cells[1].mark, Cell::Mark::none);
}

TEST(Table, EveryFormEscapesItsOwnSpecialCharacters) {
    Table t = example();
    mark_best(t, {{0.9, 0.7}, {0.897, 0.65}});
    EXPECT_THAT(to_markdown(t), HasSubstr("| a_b | **.900** (.941) |"));
    EXPECT_THAT(to_markdown(t), HasSubstr("c\\|d"));
    EXPECT_THAT(to_latex(t), HasSubstr("a\\_b & \\textbf{.900}"));
    EXPECT_THAT(to_latex(t), HasSubstr("\\multicolumn{2}{c}{5\\% kept}"));
    EXPECT_THAT(to_html(t), HasSubstr("&lt;x&gt;"));
    EXPECT_THAT(to_html(t), HasSubstr("<span class=\"paper\">.941</span>"));
    EXPECT_THAT(to_csv(t), HasSubstr("a_b,.900,.700\n"));
    EXPECT_EQ(csv_field("a,\"b\""), "\"a,\"\"b\"\"\"");
}

TEST(Table, NumbersAsThePaperPrintsThem) {
    EXPECT_EQ(short_number(0.9271), ".927");
    EXPECT_EQ(short_number(-0.031), "-.031");
    EXPECT_EQ(short_number(1.0021), "1.002");
    EXPECT_EQ(signed_number(0.0244), "+.024");
    EXPECT_EQ(signed_number(-0.003), "-.003");
}

TEST(Paper, CellsByDatasetMethodAndBackbone) {
    EXPECT_EQ(paper_cell("matched", "marginmerge", 0.05, "ArxivQA", "colqwen2.5"), 0.927);
    EXPECT_EQ(paper_cell("matched", "marginmerge", 0.1, "flickr_test", "vidore/colpali-v1.3"), 0.952);
    EXPECT_EQ(paper_cell("matched", "merging", 0.05, "Avg"), 0.839);
    EXPECT_EQ(paper_cell("factorial", "coverage_learned_margin", 0.1, "tatdqa"), 0.901);
    EXPECT_EQ(paper_cell("redundancy", "multiplicity", 0.1, "Flickr30k"), 4.8);
    EXPECT_FALSE(paper_cell("matched", "marginmerge", 0.05, "cranfield"));
    EXPECT_FALSE(paper_cell("matched", "marginmerge", 0.02, "ArxivQA"));
}

TEST(Findings, VerdictsFollowTheInterval) {
    using V = Finding::Verdict;
    EXPECT_EQ(judge({0.02, 0.01, 0.03, true}, lab::Test::greater), V::holds);
    EXPECT_EQ(judge({0.02, -0.01, 0.03, false}, lab::Test::greater), V::open);
    EXPECT_EQ(judge({-0.02, -0.03, -0.01, true}, lab::Test::greater), V::fails);
    EXPECT_EQ(judge({-0.02, -0.03, -0.01, true}, lab::Test::less), V::holds);
    EXPECT_EQ(judge({0, -0.004, 0.004, false}, lab::Test::at_least), V::holds);
    EXPECT_EQ(judge({0, -0.009, 0.009, false}, lab::Test::equal), V::holds);
    EXPECT_EQ(judge({0.05, 0.03, 0.07, true}, lab::Test::equal), V::fails);
}

TEST(Chart, StandsAloneAndFollowsTheReadersScheme) {
    Chart chart;
    chart.title = "a < b";
    chart.lines = {{"first", {0.05, 0.1}, {0.5, 0.6}, {0.4, 0.5}, {0.6, 0.7}, 0, false, false, {}},
                   {"second", {0.05, 0.1}, {0.3, 0.4}, {}, {}, 1, true, false, {}}};
    chart.log_x = true;
    const std::string svg = svg_document({line_panel(chart)}, "t");
    EXPECT_THAT(svg, HasSubstr("prefers-color-scheme:dark"));
    EXPECT_THAT(svg, HasSubstr("a &lt; b"));
    EXPECT_THAT(svg, HasSubstr("<polygon class=\"band f0\""));
    EXPECT_THAT(svg, testing::Not(HasSubstr("nan")));
    Chart empty;
    EXPECT_THAT(svg_document({line_panel(empty)}, "t"), testing::Not(HasSubstr("nan")));
}

}  // namespace
}  // namespace marginmerge::lab
