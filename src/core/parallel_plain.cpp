// parallel.h on plain threads, for builds under the thread sanitizer: it cannot see the handing-over inside a TBB that
// was not built for it, and would report every loop.
#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "core/parallel.h"

namespace marginmerge {

std::size_t resolve_threads(std::size_t threads) {
    const std::size_t cores = std::max<std::size_t>(1, std::thread::hardware_concurrency());
    return threads > 0 ? std::min(threads, std::max<std::size_t>(256, cores)) : cores;
}

void parallel_for_workers(std::size_t count, std::size_t threads,
                          const std::function<void(std::size_t, std::size_t)>& body) {
    const std::size_t n = std::min(resolve_threads(threads), std::max<std::size_t>(count, 1));
    std::atomic<std::size_t> next{0};
    std::mutex guard;
    std::exception_ptr first;
    const auto work = [&](std::size_t worker) {
        try {
            for (std::size_t i = next++; i < count; i = next++) body(i, worker);
        } catch (...) {
            next = count;
            const std::lock_guard lock(guard);
            if (!first) first = std::current_exception();
        }
    };
    {
        std::vector<std::jthread> helpers;
        for (std::size_t worker = 1; worker < n; ++worker) helpers.emplace_back(work, worker);
        work(0);
    }
    if (first) std::rethrow_exception(first);
}

void parallel_for(std::size_t count, std::size_t threads, const std::function<void(std::size_t)>& body) {
    parallel_for_workers(count, threads, [&](std::size_t i, std::size_t) { body(i); });
}

}  // namespace marginmerge
