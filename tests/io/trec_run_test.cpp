#include "io/trec_run.h"

#include "support/expect_error.h"
#include "support/temporary_directory.h"

namespace marginmerge {
namespace {

using test::expect_error;

TEST(TrecRun, RoundTripKeepsOrderAndScores) {
    const test::TemporaryDirectory directory;
    RankedRun run;
    run["q1"] = {{"b", 12.345678f}, {"a", 1.0 / 3}, {"c", 1.0 / 3}};
    run["query two"] = {{"x y", -1}};
    write_trec_run(directory / "run", run);
    const RankedRun back = read_trec_run(directory / "run");
    ASSERT_EQ(back.size(), 2U);
    EXPECT_EQ(back.at("q1")[1].id, "a");  // equal scores keep their rank
    EXPECT_EQ(back.at("q1")[2].id, "c");
    EXPECT_FLOAT_EQ(static_cast<float>(back.at("q1")[0].score), 12.345678f);
    EXPECT_EQ(back.at("query two")[0].id, "x y");
}

TEST(TrecRun, LinesAreTheUsualSixColumns) {
    std::string text;
    const RankedDocument hit{"d7", 2.5};
    append_trec_lines(text, "q", {&hit, 1}, "tag");
    EXPECT_EQ(text, "q Q0 d7 1 2.5 tag\n");
}

TEST(TrecRun, RefusesBadLines) {
    expect_error(ErrorCode::corrupt, {"line 1", "6 columns", "found 5"}, [] { parse_trec_run("q Q0 d 1 2.5\n", "f"); });
    expect_error(ErrorCode::corrupt, {"rank", "'x'"}, [] { parse_trec_run("q Q0 d x 2.5 t\n", "f"); });
    expect_error(ErrorCode::corrupt, {"score"}, [] { parse_trec_run("q Q0 d 1 nan t\n", "f"); });
    expect_error(ErrorCode::corrupt, {"'d' twice"}, [] { parse_trec_run("q Q0 d 1 2 t\nq Q0 d 2 1 t\n", "f"); });
    std::string text;
    const RankedDocument bad{"tab\tid", 1};
    expect_error(ErrorCode::unsupported, {"tab"}, [&] { append_trec_lines(text, "q", {&bad, 1}, "t"); });
}

}  // namespace
}  // namespace marginmerge
