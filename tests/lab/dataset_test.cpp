#include "lab/dataset.h"

#include <gtest/gtest.h>

#include <set>

#include "support/expect_error.h"
#include "support/made_files.h"
#include "support/temporary_directory.h"

namespace marginmerge::lab {
namespace {

std::string cache(const char* name) { return std::string(MARGINMERGE_TEST_DATA) + "/lab_caches/" + name; }

TEST(LabDataset, ACacheFolderIsImportedAndDividedByDocuments) {
    const test::TemporaryDirectory work;
    const auto data = load_dataset(dataset_source(cache("ArxivQA")), {}, work.path(), 2);
    EXPECT_EQ(data->documents.size(), 24u);
    EXPECT_EQ(data->train.size() + data->test.size(), 36u);
    EXPECT_EQ(data->split, "documents");
    EXPECT_DOUBLE_EQ(data->hold_out, 0.3);
    std::set<std::size_t> train, test;
    for (const auto& r : data->train_relevant) train.insert(r.begin(), r.end());
    for (const auto& r : data->relevance) test.insert(r.positions.begin(), r.positions.end());
    for (const auto d : test) EXPECT_FALSE(train.contains(d));
    EXPECT_GT(data->redundancy, 1);
    // The same folder again gives the same fingerprint, another one does not.
    EXPECT_EQ(load_dataset(dataset_source(cache("ArxivQA")), {}, work.path(), 1)->fingerprint, data->fingerprint);
    EXPECT_NE(load_dataset(dataset_source(cache("Flickr")), {}, work.path(), 1)->fingerprint, data->fingerprint);
}

TEST(LabDataset, LimitsKeepRelevantDocuments) {
    const test::TemporaryDirectory work;
    const auto data = load_dataset(dataset_source(cache("ArxivQA")), {6, 4, 4}, work.path(), 2);
    EXPECT_LE(data->train.size() + data->test.size(), 8u);
    EXPECT_LT(data->documents.size(), 24u);
    for (const auto& r : data->relevance) EXPECT_FALSE(r.positions.empty());
}

TEST(LabDataset, DescriptionsAreChecked) {
    const test::TemporaryDirectory work;
    test::expect_error(ErrorCode::not_found, {"folder"}, [&] { dataset_source("/no/such/folder"); });
    test::write_file(work / "bad.json", "{\"name\": 3}");
    test::expect_error(ErrorCode::corrupt, {"name", "text"}, [&] { dataset_source((work / "bad.json").string()); });
    test::write_file(work / "role.json", "{\"role\": \"judge\"}");
    test::expect_error(ErrorCode::invalid_argument, {"role", "judge"},
                       [&] { dataset_source((work / "role.json").string()); });
    test::write_file(work / "good.json",
                     "{\"cache\": \"c\", \"encoder\": \"e\", \"role\": \"bank\", \"content\": \"dense\"}");
    const DatasetSource good = dataset_source((work / "good.json").string());
    EXPECT_EQ(good.name, "good");
    EXPECT_EQ(good.cache, work.path() / "c");
    EXPECT_EQ(good.role, DataRole::bank);
}

}  // namespace
}  // namespace marginmerge::lab
