#pragma once

#include <cstddef>
#include <functional>

namespace marginmerge {

/// How many threads a request for `threads` means here: 0 asks for every core we may run on.
std::size_t resolve_threads(std::size_t threads);

/// Runs body(i) for every i in [0, count) on at most `threads` threads (0 = all cores). Each index
/// is one task, so make them coarse. The order is free: results must go to places of their own.
/// The first exception thrown by a body is rethrown here.
void parallel_for(std::size_t count, std::size_t threads, const std::function<void(std::size_t index)>& body);

/// The same with a worker number in [0, resolve_threads(threads)), for per-thread workspaces; no
/// two bodies run with the same worker number at once.
void parallel_for_workers(std::size_t count, std::size_t threads,
                          const std::function<void(std::size_t index, std::size_t worker)>& body);

}  // namespace marginmerge
