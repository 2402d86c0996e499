#include "core/parallel.h"

#include <tbb/blocked_range.h>
#include <tbb/info.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>

namespace marginmerge {

std::size_t resolve_threads(std::size_t threads) {
    if (threads > 0) return threads;
    return static_cast<std::size_t>(std::max(1, tbb::info::default_concurrency()));
}

void parallel_for_workers(std::size_t count, std::size_t threads,
                          const std::function<void(std::size_t, std::size_t)>& body) {
    const std::size_t n = std::min(resolve_threads(threads), std::max<std::size_t>(count, 1));
    if (n <= 1) {
        for (std::size_t i = 0; i < count; ++i) body(i, 0);
        return;
    }
    tbb::task_arena arena(static_cast<int>(n));
    arena.execute([&] {
        tbb::parallel_for(
            tbb::blocked_range<std::size_t>(0, count, 1),
            [&](const tbb::blocked_range<std::size_t>& range) {
                // Isolation keeps a nested parallel loop from running another of our indices on
                // this thread half-way through this one, which would share its workspace.
                const auto worker = static_cast<std::size_t>(tbb::this_task_arena::current_thread_index());
                tbb::this_task_arena::isolate([&] {
                    for (std::size_t i = range.begin(); i != range.end(); ++i) body(i, worker);
                });
            },
            tbb::simple_partitioner());
    });
}

void parallel_for(std::size_t count, std::size_t threads, const std::function<void(std::size_t)>& body) {
    parallel_for_workers(count, threads, [&](std::size_t i, std::size_t) { body(i); });
}

}  // namespace marginmerge
