#pragma once

#include <atomic>
#include <barrier>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "marginmerge/core/cluster.h"

namespace marginmerge::test {

/// Threads in the role of processes, so that jobs for several can be tested in one.
class ThreadCluster final : public Cluster {
public:
    struct Shared {
        explicit Shared(std::size_t n) : size(n), meet(static_cast<std::ptrdiff_t>(n)), parts(n) {}
        std::size_t size;
        std::barrier<> meet;
        std::vector<std::vector<std::byte>> parts;
        std::vector<std::size_t> tasks;
        std::atomic<std::size_t> next{0};
        std::mutex mutex;
        std::vector<std::pair<std::size_t, std::vector<std::byte>>> results;
    };
    ThreadCluster(Shared& shared, std::size_t rank) : shared_(shared), rank_(rank) {}

    std::size_t rank() const override { return rank_; }
    std::size_t size() const override { return shared_.size; }
    std::size_t local_size() const override { return shared_.size; }

    void run(std::span<const std::size_t> tasks, const Compute& compute, const Collect& collect) override {
        if (leads()) {
            shared_.tasks.assign(tasks.begin(), tasks.end());
            shared_.next = 0;
            shared_.results.clear();
        }
        shared_.meet.arrive_and_wait();
        for (std::size_t i; (i = shared_.next++) < shared_.tasks.size();) {
            auto bytes = compute(shared_.tasks[i]);
            const std::lock_guard lock(shared_.mutex);
            shared_.results.emplace_back(shared_.tasks[i], std::move(bytes));
        }
        shared_.meet.arrive_and_wait();
        if (leads())
            for (const auto& [task, bytes] : shared_.results) collect(task, bytes);
        shared_.meet.arrive_and_wait();
    }

    std::vector<std::vector<std::byte>> gather(std::span<const std::byte> mine) override {
        shared_.parts[rank_].assign(mine.begin(), mine.end());
        shared_.meet.arrive_and_wait();
        auto all = shared_.parts;
        shared_.meet.arrive_and_wait();
        return all;
    }

    [[noreturn]] void abort(int) override { std::abort(); }

private:
    Shared& shared_;
    std::size_t rank_;
};

/// Runs `job` once for each of `size` processes at the same time. What it returns is collected by rank.
template <class Job>
auto on_cluster(std::size_t size, const Job& job) {
    ThreadCluster::Shared shared(size);
    using Result = decltype(job(std::declval<Cluster*>()));
    std::vector<Result> results(size);
    std::vector<std::thread> threads;
    for (std::size_t r = 0; r < size; ++r)
        threads.emplace_back([&, r] {
            ThreadCluster cluster(shared, r);
            results[r] = job(&cluster);
        });
    for (auto& thread : threads) thread.join();
    return results;
}

}  // namespace marginmerge::test
