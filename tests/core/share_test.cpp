#include "core/share.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "marginmerge/core/error.h"
#include "support/thread_cluster.h"

namespace marginmerge {

TEST(Slice, PartsFollowEachOtherAndMissNothing) {
    for (const std::size_t count : {0u, 1u, 2u, 7u, 100u})
        for (const std::size_t size : {1u, 2u, 3u, 8u}) {
            std::size_t at = 0;
            for (std::size_t r = 0; r < size; ++r) {
                const Slice s = slice_of(count, r, size);
                EXPECT_EQ(s.begin, at);
                EXPECT_LE(s.end - s.begin, count / size + 1);
                at = s.end;
            }
            EXPECT_EQ(at, count);
        }
}

TEST(ShareFor, EveryProcessLearnsEveryResultAndComputesItsPart) {
    constexpr std::size_t count = 23;
    for (const std::size_t size : {1u, 2u, 3u, 30u}) {
        std::atomic<std::size_t> computed = 0;
        const auto results = test::on_cluster(size, [&](Cluster* cluster) {
            std::vector<double> values(count, -1);
            share_for(
                cluster, count, 2,
                [&](std::size_t i, std::size_t) {
                    values[i] = std::sqrt(static_cast<double>(i));
                    ++computed;
                },
                [&](std::size_t i, ByteWriter& out) { out.put(values[i]); },
                [&](std::size_t i, ByteReader& in) { values[i] = in.take<double>(); });
            return values;
        });
        EXPECT_EQ(computed, count);
        for (const auto& values : results)
            for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(values[i], std::sqrt(static_cast<double>(i)));
    }
}

TEST(ShareFor, AloneItIsAPlainLoop) {
    std::vector<int> seen(5, 0);
    share_for(
        nullptr, 5, 1, [&](std::size_t i, std::size_t) { ++seen[i]; },
        [](std::size_t, ByteWriter&) { FAIL() << "nobody to write to"; },
        [](std::size_t, ByteReader&) { FAIL() << "nobody to read from"; });
    EXPECT_EQ(std::accumulate(seen.begin(), seen.end(), 0), 5);
}

TEST(CheckSame, NamesTheProcessThatDiffers) {
    const auto messages = test::on_cluster(3, [](Cluster* cluster) -> std::string {
        try {
            check_same(cluster, cluster->rank() == 2 ? "AVX2" : "AVX3", "kernel");
        } catch (const Error& error) {
            return error.what();
        }
        return "";
    });
    for (const auto& message : messages)
        EXPECT_EQ(message, "process 2: kernel: expected AVX3 as in process 0, found AVX2");
    EXPECT_NO_THROW(check_same(nullptr, "x", "kernel"));
}

TEST(ByteReader, RefusesToReadPastTheEnd) {
    ByteWriter out;
    out.put(1.5f);
    ByteReader in(out.bytes());
    EXPECT_EQ(in.take<float>(), 1.5f);
    EXPECT_THROW(in.take<float>(), Error);
}

}  // namespace marginmerge
