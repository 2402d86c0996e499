#include "lab/run_store.h"

#include <gtest/gtest.h>

#include <fstream>

#include "support/temporary_directory.h"

namespace marginmerge::lab {
namespace {

TEST(RunStore, KeepsWhatWasSavedUnderItsKeyOnly) {
    const test::TemporaryDirectory folder;
    const RunStore store(folder.path(), false);
    const auto key = store.complete({{"data", "x"}, {"seed", 42}}),
               other = store.complete({{"data", "x"}, {"seed", 43}});
    EXPECT_FALSE(store.load(key));
    store.save(key, {{"ndcg", {0.1, 1.0 / 3}}});
    EXPECT_EQ((*store.load(key))["ndcg"][1].get<double>(), 1.0 / 3);
    EXPECT_FALSE(store.load(other));
    EXPECT_TRUE(key.contains("program"));
}

TEST(RunStore, ADamagedOrForeignFileCountsAsAbsent) {
    const test::TemporaryDirectory folder;
    const RunStore store(folder.path(), true);
    const auto key = store.complete({{"data", "x"}});
    store.save(key, 1);
    const auto file = folder.path() / "runs" / (RunStore::name(key) + ".json");
    std::ofstream(file) << "{\"key\":{\"data\":\"y\"},\"value\":2}";
    EXPECT_FALSE(store.load(key));
    std::ofstream(file) << "{\"key\":";
    EXPECT_FALSE(store.load(key));
}

}  // namespace
}  // namespace marginmerge::lab
