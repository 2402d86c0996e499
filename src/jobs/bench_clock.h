#pragma once

#include <ctime>

#include <algorithm>
#include <cstdint>

#include "core/random.h"
#include "marginmerge/core/matrix.h"
#include "marginmerge/jobs/bench.h"

namespace marginmerge {

/// Processor time of this thread: other programs on the machine do not count.
inline double thread_seconds() {
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

inline double wall_seconds() {
    timespec t{};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

/// Best time of one run of f, measured for about `budget` seconds in slices long enough to trust the clock.
template <class F>
double best_seconds(double budget, double (*clock)(), F&& f) {
    f();
    double best = 1e300;
    const double begin = clock();
    do {
        std::size_t runs = 0;
        const double start = clock();
        double elapsed = 0;
        do {
            f();
            ++runs;
            elapsed = clock() - start;
        } while (elapsed < budget / 12);
        best = std::min(best, elapsed / static_cast<double>(runs));
    } while (clock() - begin < budget);
    return best;
}

/// Numbers in (-0.5, 0.5), cheap enough for gigabytes.
inline void fill_random(std::span<float> out, std::uint64_t seed) {
    Random random(seed);
    for (float& x : out) x = static_cast<float>(random.uniform()) - 0.5f;
}

inline void bench_step(const Progress& progress, std::size_t done, std::size_t total) {
    if (progress) progress({"bench", "parts", done, total, ""});
}

/// FMA and int8 peaks, memory bandwidth with one and with `threads` threads.
MachineLimits measure_machine(std::size_t threads, double seconds);

}  // namespace marginmerge
