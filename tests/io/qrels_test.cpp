#include "io/qrels.h"

#include "support/expect_error.h"
#include "support/temporary_directory.h"

namespace marginmerge {
namespace {

using test::expect_error;

TEST(Qrels, ReadsBeirWithHeader) {
    const auto j = parse_qrels("query-id\tcorpus-id\tscore\nq1\td 1\t2\nq1\td2\t0\n", "f");
    EXPECT_EQ(j, (Judgements{{"q1", {{"d 1", 2}, {"d2", 0}}}}));
}

TEST(Qrels, ReadsThreeColumnsWithoutHeader) {
    EXPECT_EQ(parse_qrels("q1\td1\t1\r\n\r\nq2\td1\t3.0", "f"), (Judgements{{"q1", {{"d1", 1}}}, {"q2", {{"d1", 3}}}}));
}

TEST(Qrels, ReadsTrecWithBlanks) {
    EXPECT_EQ(parse_qrels("q1 0 d1 1\nq1  0  d2  -2\n", "f"), (Judgements{{"q1", {{"d1", 1}, {"d2", -2}}}}));
}

TEST(Qrels, ReadsTwoColumns) {
    EXPECT_EQ(parse_qrels("q1\td1\nq1\td2\n", "f"), (Judgements{{"q1", {{"d1", 1}, {"d2", 1}}}}));
    EXPECT_EQ(parse_qrels("query-id\tcorpus-id\nq1\td1\n", "f"), (Judgements{{"q1", {{"d1", 1}}}}));
}

TEST(Qrels, NamesTheLineOfABadGrade) {
    expect_error(ErrorCode::corrupt, {"f: line 2", "grade", "'high1'"},
                 [] { parse_qrels("q1\td1\t1\nq1\td2\thigh1\n", "f"); });
    expect_error(ErrorCode::corrupt, {"line 1", "1.5"}, [] { parse_qrels("q1\td1\t1.5\n", "f"); });
    expect_error(ErrorCode::corrupt, {"line 1"}, [] { parse_qrels("q1\td1\t99999999999\n", "f"); });
}

TEST(Qrels, RefusesOtherShapes) {
    expect_error(ErrorCode::corrupt, {"expected 3 columns", "found 2"},
                 [] { parse_qrels("q1\td1\t1\nq1\td2\n", "f"); });
    expect_error(ErrorCode::corrupt, {"found 1"}, [] { parse_qrels("hello\n", "f"); });
    expect_error(ErrorCode::corrupt, {"found none"}, [] { parse_qrels("\n\n", "f"); });
    expect_error(ErrorCode::corrupt, {"found 1 and 2"}, [] { parse_qrels("q\td\t1\nq\td\t2\n", "f"); });
    expect_error(ErrorCode::corrupt, {"empty column"}, [] { parse_qrels("q\t\t1\n", "f"); });
}

TEST(Qrels, RoundTrip) {
    const test::TemporaryDirectory directory;
    const Judgements j{{"q 1", {{"d1", 1}, {"d2", 0}}}, {"q2", {{"d1", 4}}}};
    write_qrels(directory / "q.tsv", j);
    EXPECT_EQ(read_qrels(directory / "q.tsv"), j);
    expect_error(ErrorCode::not_found, {"none.tsv"}, [&] { read_qrels(directory / "none.tsv"); });
}

}  // namespace
}  // namespace marginmerge
