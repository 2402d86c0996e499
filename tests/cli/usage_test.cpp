// What the command line says to words and numbers it cannot use.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "index/synthetic.h"
#include "io/multi_vector_file.h"
#include "support/made_files.h"
#include "support/temporary_directory.h"

namespace marginmerge {
namespace {

using ::testing::HasSubstr;

// Wrong usage: status 2 and one line that holds all of these words.
void expect_refused(const std::string& arguments, std::initializer_list<const char*> words) {
    const auto r = test::run_cli(arguments);
    EXPECT_EQ(r.status, 2) << arguments << "\n" << r.err;
    EXPECT_EQ(std::count(r.err.begin(), r.err.end(), '\n'), 1) << arguments << "\n" << r.err;
    EXPECT_LT(r.err.size(), 250U) << r.err;
    for (const char* word : words) EXPECT_THAT(r.err, HasSubstr(word)) << arguments;
}

TEST(Usage, RefusesNumbersThatCannotBeCounts) {
    for (const char* arguments :
         {"compress docs -o out --threads -1", "compress docs -o out --vectors -3", "search docs --queries q -k -1",
          "fit --docs docs -o out --epochs -1", "fit --docs docs -o out --prototypes -1", "synth -o out --docs -1",
          "synth -o out --docs 4294967297", "synth -o out --docs 99999999999999999999", "synth -o out --docs ' -1'",
          "serve index --max-batch -1", "evaluate --full d --index d --queries q --candidates -1",
          "synth -o out --docs 1.5"})
        expect_refused(arguments, {"expected a whole number from 0 to 4294967296"});
    expect_refused("synth -o out --docs -1", {"--docs", "'-1'"});
}

TEST(Usage, RefusesRatesThatCannotTrain) {
    for (const char* rate : {"nan", "inf", "-0.1", "0", "1.5", "x"})
        expect_refused(std::string("fit --docs docs -o out --lr ") + rate, {"--lr", "above 0 and at most 1", rate});
    for (const char* redundancy : {"-2", "0", "nan", "inf"})
        expect_refused(std::string("synth -o out --redundancy ") + redundancy, {"--redundancy", "above 0", redundancy});
}

TEST(Usage, AFullDiskIsAFailure) {
    const test::TemporaryDirectory directory;
    const auto docs = (directory / "docs.safetensors").string(), queries = (directory / "q.safetensors").string();
    const auto said = directory / "said";
    write_multi_vectors(docs, test::random_pages(25, 9, 32, 1), ScalarType::f16);
    write_multi_vectors(queries, test::random_pages(40, 6, 32, 2, "q"), ScalarType::f16);
    for (const std::string& arguments :
         {"search " + docs + " --queries " + queries + " --quiet -k 1",  // fits the buffer
          "search " + docs + " --queries " + queries + " --quiet -k 25", "inspect " + docs, std::string("--help"),
          "evaluate --quiet --json --no-labels --full " + docs + " --index " + docs + " --queries " + queries}) {
        // The command's own redirections go first; 'true' takes those of run_cli.
        const auto r = test::run_cli(arguments + " >/dev/full 2>" + said.string() + " || exit $?; true");
        EXPECT_EQ(r.status, 1) << arguments;
        EXPECT_EQ(test::read_file(said), "marginmerge: standard output: cannot write all results\n") << arguments;
    }
}

TEST(Usage, NamesTheWordItDoesNotKnow) {
    expect_refused("bogus", {"unknown command 'bogus'; see 'marginmerge --help'"});
    expect_refused("serch docs --queries q", {"unknown command 'serch', did you mean 'search'?"});
    expect_refused("index ad pages", {"unknown command 'ad', did you mean 'add'?", "marginmerge index --help"});
    expect_refused("x", {"unknown command 'x'; see"});
    expect_refused("encode-reade", {"unknown command 'encode-reade'; see"});  // not a user's command
    expect_refused("--bogus", {"unknown option '--bogus'; see 'marginmerge --help'"});
    expect_refused("import --bogus", {"unknown option '--bogus'; see 'marginmerge import --help'"});
    expect_refused("index add --bogus=1", {"unknown option '--bogus=1'; see 'marginmerge index add --help'"});
    expect_refused("inspect docs more", {"unexpected argument 'more'; see 'marginmerge inspect --help'"});
    // Nothing unknown: what is missing is named as before.
    expect_refused("", {"subcommand is required"});
    expect_refused("import", {"SRC is required", "marginmerge import --help"});
}

TEST(Usage, HelpIsACommandToo) {
    for (const auto& [asked, flag] : {std::pair("help", "--help"), std::pair("help search", "search --help"),
                                      std::pair("help index add", "index add --help")}) {
        const auto r = test::run_cli(asked);
        EXPECT_EQ(r.status, 0) << r.err;
        EXPECT_EQ(r.out, test::run_cli(flag).out) << asked;
    }
    expect_refused("help serch", {"unknown command 'serch', did you mean 'search'?"});
    expect_refused("help index bogus", {"unknown command 'bogus'; see 'marginmerge index --help'"});
}

TEST(Usage, MoreThreadsThanCoresAreNoReasonToWarn) {
    const test::TemporaryDirectory directory;
    const auto docs = (directory / "docs.safetensors").string();
    write_multi_vectors(docs, test::random_pages(300, 9, 32, 1), ScalarType::f16);
    const auto small = [&](const std::string& threads) {
        const auto out = directory / ("small-" + threads);
        const auto r =
            test::run_cli("compress " + docs + " --vectors 2 --quiet -o " + out.string() + " --threads " + threads);
        EXPECT_EQ(r.status, 0) << threads << r.err;
        EXPECT_EQ(r.err, "") << threads;
        return test::read_file(out);
    };
    const std::string one = small("1");
    EXPECT_EQ(small("40"), one);
    EXPECT_EQ(small("4294967296"), one);
}

TEST(Usage, RefusesCutsBeforeAnyWork) {
    expect_refused("search docs --queries q -k 0", {"-k: expected at least 1, found '0'"});
    expect_refused("evaluate --full d --index d --queries q --no-labels -k 0", {"-k: expected at least 1, found '0'"});
    expect_refused("evaluate --full d --index d --queries q --no-labels --top 0", {"--top: expected at least 1"});
    expect_refused("evaluate --full d --index d --queries q --no-labels -k -1", {"-k: expected a whole number"});
}

}  // namespace
}  // namespace marginmerge
