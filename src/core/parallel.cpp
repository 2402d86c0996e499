#include "core/parallel.h"

#include <tbb/blocked_range.h>
#include <tbb/global_control.h>
#include <tbb/info.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <mutex>
#include <utility>

namespace marginmerge {

namespace {

// More are never started, unless there are more cores: TBB promises so many, and each has its workspace.
constexpr std::size_t most_threads = 256;

std::size_t cores() { return static_cast<std::size_t>(std::max(1, tbb::info::default_concurrency())); }

// TBB starts no more threads than there are cores, and warns of a larger arena on stderr, unless told otherwise. The
// limit only rises, and only when asked to: loops side by side should share the cores, not each have its own threads.
void allow_threads(std::size_t threads) {
    static std::mutex mutex;
    static std::size_t allowed = cores();
    static tbb::global_control* limit = nullptr;  // never deleted: loops may run until the process ends
    const std::lock_guard lock(mutex);
    if (threads <= allowed) return;
    // The smallest of all limits counts, so the old one has to go.
    delete std::exchange(limit, new tbb::global_control(tbb::global_control::max_allowed_parallelism, threads));
    allowed = threads;
}

}  // namespace

std::size_t resolve_threads(std::size_t threads) {
    if (threads == 0) return cores();
    return std::min(threads, std::max(most_threads, cores()));
}

void parallel_for_workers(std::size_t count, std::size_t threads,
                          const std::function<void(std::size_t, std::size_t)>& body) {
    const std::size_t n = std::min(resolve_threads(threads), std::max<std::size_t>(count, 1));
    if (n <= 1) {
        for (std::size_t i = 0; i < count; ++i) body(i, 0);
        return;
    }
    allow_threads(n);
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
