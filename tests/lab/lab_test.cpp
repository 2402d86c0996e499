// The lab as a user runs it, on two small folders in the published program's layout.
#include <fcntl.h>
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "support/made_files.h"
#include "support/temporary_directory.h"

namespace marginmerge {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

std::string data_arguments() {
    const std::string caches = std::string(MARGINMERGE_TEST_DATA) + "/lab_caches/";
    return fmt::format("--data {0}ArxivQA --data {0}Flickr --encoder colqwen2.5 --quick --quiet", caches);
}

// Every CSV but those of measured times, by path.
std::map<std::string, std::string> csv_files(const fs::path& folder) {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
        const std::string name = entry.path().filename().string();
        if (entry.path().extension() == ".csv" && !name.starts_with("times"))
            files[fs::relative(entry.path(), folder).string()] = test::read_file(entry.path());
    }
    return files;
}

TEST(Lab, StudiesOneToEightRunOnCacheFolders) {
    const test::TemporaryDirectory folder;
    const auto result = test::run_cli(
        fmt::format("lab matched selection budget factorial stability transfer losses compressibility {} --json -o {}",
                    data_arguments(), folder.path().string()));
    ASSERT_EQ(result.status, 0) << result.err;
    const auto report = nlohmann::json::parse(result.out);
    EXPECT_EQ(report["datasets"], (std::vector<std::string>{"ArxivQA", "Flickr"}));
    EXPECT_GT(report["findings"].size(), 20u);
    for (const char* study : {"matched", "selection", "budget", "factorial", "stability", "transfer", "losses"}) {
        for (const char* form : {".md", ".tex", ".csv"})
            EXPECT_TRUE(fs::exists(folder.path() / study / (std::string(study) + form))) << study << form;
        EXPECT_TRUE(fs::exists(folder.path() / study / "study.json"));
    }
    for (const char* file :
         {"matched/matched_curves.svg", "factorial/factorial_overlap.md", "factorial/factorial_effects.tex",
          "compressibility/compressibility_proxies.md", "compressibility/compressibility_content.svg",
          "compressibility/compressibility_controlled.csv"})
        EXPECT_TRUE(fs::exists(folder.path() / file)) << file;
    // The paper's number stands beside ours where it has the cell, and a method without its input says why.
    const std::string html = test::read_file(folder.path() / "report.html");
    EXPECT_THAT(html, HasSubstr("<span class=\"paper\">.927</span>"));
    EXPECT_THAT(html, HasSubstr("SAP on ArxivQA: skipped, no structural scores"));
    EXPECT_THAT(html, testing::Not(HasSubstr("http://localhost")));
    EXPECT_THAT(test::read_file(folder.path() / "matched/study.json"), HasSubstr("\"fingerprint\""));
}

TEST(Lab, TwoRunsAreEqualAndAKilledOneContinues) {
    const test::TemporaryDirectory folder;
    const std::string studies = "lab stability selection pruning " + data_arguments();
    const auto run = [&](const std::string& name, const char* more) {
        return test::run_cli(fmt::format("{} --json {} -o {}", studies, more, (folder / name).string()));
    };
    ASSERT_EQ(run("a", "--threads 1").status, 0);
    ASSERT_EQ(run("b", "--threads 2").status, 0);
    const auto expected = csv_files(folder / "a");
    EXPECT_GE(expected.size(), 8u);
    EXPECT_EQ(csv_files(folder / "b"), expected);

    const std::string command =
        fmt::format("exec {} {} -o {} >/dev/null 2>&1", MARGINMERGE_BINARY, studies, (folder / "c").string());
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
        _exit(127);
    }
    const auto finished_runs = [&] {
        std::size_t count = 0;
        std::error_code error;
        for (fs::directory_iterator it((folder / "c") / "store" / "runs", error), end; !error && it != end;
             it.increment(error))
            ++count;
        return count;
    };
    for (int i = 0; i < 6000 && finished_runs() < 5; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_GE(finished_runs(), 5u);
    const auto result = run("c", "");
    ASSERT_EQ(result.status, 0) << result.err;
    EXPECT_GT(nlohmann::json::parse(result.out)["reused"].get<int>(), 0);
    EXPECT_EQ(csv_files(folder / "c"), expected);
}

TEST(Lab, AStudyAMethodAndADatasetAreOneFileEach) {
    const test::TemporaryDirectory folder;
    test::write_file(folder / "mine.json", R"({"title": "Mine", "kind": "grid", "keeps": [0.2], "seeds": [1],
        "methods": ["full", {"id": "mine", "label": "Coverage means", "kind": "compress", "preset": "paper", "representative": "uniform"}],
        "findings": [{"id": "f", "statement": "s", "a": "mine", "b": "full", "keep": 0.2, "test": "at_least"}]})");
    test::write_file(
        folder / "corpus.json",
        R"({"synthetic": {"kind": "natural", "documents": 30, "queries": 30, "vectors": 40, "redundancy": 4, "dim": 16}})");
    const auto result =
        test::run_cli(fmt::format("lab {0}/mine.json --data {0}/corpus.json -o {0}/out", folder.path().string()));
    ASSERT_EQ(result.status, 0) << result.err;
    EXPECT_THAT(test::read_file(folder / "out/mine/mine.md"), HasSubstr("Coverage means"));
    EXPECT_THAT(test::read_file(folder / "out/mine/runs.csv"), HasSubstr("mine,corpus,mine,0.2"));
}

TEST(Lab, WrongUsageSaysWhatIsThere) {
    const auto unknown = test::run_cli("lab nothing -o /tmp/unused-lab");
    EXPECT_EQ(unknown.status, 2);
    EXPECT_THAT(unknown.err, HasSubstr("matched"));
    EXPECT_EQ(test::run_cli("lab matched --docs x.safetensors -o /tmp/unused-lab").status, 2);
    EXPECT_EQ(test::run_cli("lab matched --data /no/such -o /tmp/unused-lab").status, 1);
}

TEST(Lab, AdviseWithAndWithoutLabels) {
    const test::TemporaryDirectory folder;
    ASSERT_EQ(test::run_cli(fmt::format("synth -o {} --kind natural --docs 40 --queries 50 --vectors 60 --redundancy 5 "
                                        "--dim 32 --difficulty 0.95 --quiet",
                                        (folder / "c").string()))
                  .status,
              0);
    const std::string files = fmt::format(
        "--docs {0}/docs.safetensors --queries {0}/queries.safetensors --keep 1,0.5,0.1 --preset fixed --quiet",
        (folder / "c").string());
    const auto labelled = test::run_cli(fmt::format("advise {} --qrels {}/qrels.tsv --target 0.9 --json -o {}", files,
                                                    (folder / "c").string(), (folder / "out").string()));
    ASSERT_EQ(labelled.status, 0) << labelled.err;
    const auto advice = nlohmann::json::parse(labelled.out);
    EXPECT_TRUE(advice["labels"].get<bool>());
    EXPECT_EQ(advice["points"].size(), 12u);
    EXPECT_FALSE(advice["best"].is_null());
    for (const char* file : {"advice.json", "advice.csv", "frontier.svg"})
        EXPECT_TRUE(fs::exists((folder / "out") / file)) << file;
    const auto unlabelled = test::run_cli(fmt::format("advise {} --target 0.5", files));
    ASSERT_EQ(unlabelled.status, 0) << unlabelled.err;
    EXPECT_THAT(unlabelled.out, HasSubstr("without labels"));
    EXPECT_THAT(unlabelled.out, HasSubstr("marginmerge compress"));
    EXPECT_EQ(test::run_cli(fmt::format("advise {} --target 7", files)).status, 2);
}

TEST(Lab, AdviseRefusesSharesBeforeAnyWork) {
    const auto refused = [](const std::string& option, const char* share) {
        const auto r = test::run_cli("advise --docs d --queries q " + option + " " + share);
        EXPECT_EQ(r.status, 2) << option << " " << share;
        EXPECT_NE(r.err.find(option), std::string::npos) << r.err;
        EXPECT_NE(r.err.find("at most 1"), std::string::npos) << r.err;
    };
    for (const char* share : {"2", "0", "-0.1", "nan", "0.1,1.5"}) refused("--keep", share);
    for (const char* share : {"1.5", "0", "nan"}) refused("--target", share);
    // Shares that are fine get as far as the files.
    EXPECT_EQ(test::run_cli("advise --docs none --queries none --keep 0.1,1 --target 1").status, 1);
}

}  // namespace
}  // namespace marginmerge
