#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "marginmerge/core/progress.h"

namespace marginmerge {

/// What the machine can do, measured in the same run as everything else.
struct MachineLimits {
    std::string cpu;        ///< model name as the system gives it
    std::string kernel;     ///< level the kernels run with
    std::size_t cores = 0;  ///< we may run on
    double fma = 0;         ///< GFLOP/s of one core, float32 multiply-adds on registers
    double int8 = 0;        ///< Gop/s of one core, the int8 kernel's step on registers
    double read_one = 0;    ///< GB/s, one thread reading memory
    double read_all = 0;    ///< GB/s, all threads
};

/// One measurement.
struct BenchRow {
    std::string what;  ///< the kernel, stage or store
    std::string size;  ///< of the problem
    std::size_t threads = 1;
    double milliseconds = 0;  ///< best of several
    double rate = 0;          ///< in `unit`, 0 when there is none
    std::string unit;
    double share = 0;   ///< of what the machine allows, 0 when that is not defined
    std::string limit;  ///< what sets that limit, or what `share` is a ratio to
};

struct BenchReport {
    MachineLimits machine;
    std::vector<BenchRow> rows;
    std::vector<std::string> notes;
};

struct BenchOptions {
    std::size_t threads = 0;  ///< most threads used (0: all cores)
    std::size_t dim = 128;
    std::size_t tokens = 20;          ///< of a query
    std::size_t vectors = 52;         ///< of a page, in searches
    std::size_t max_pages = 100'000;  ///< largest search; skipped when memory does not allow it
    double keep = 0.05;               ///< share kept, in page construction
    double seconds = 0.3;             ///< spent on one measurement, about
};

/// Every kernel on data in cache, and MaxSim streaming from memory, beside the peak of the core. One
/// thread, processor time.
BenchReport bench_kernels(const BenchOptions& options, const Progress& progress = {});

/// Construction of pages of 238, 1,175, 2,927 and 4,862 vectors by stage, beside the page's two matrix
/// products. One thread, processor time.
BenchReport bench_page(const BenchOptions& options, const Progress& progress = {});

/// Exact top-10 search over 1,000 to max_pages pages for every store, one and all threads.
BenchReport bench_search(const BenchOptions& options, const Progress& progress = {});

}  // namespace marginmerge
