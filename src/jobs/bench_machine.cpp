#include <fstream>

#include "core/parallel.h"
#include "jobs/bench_clock.h"
#include "kernels/maxsim.h"
#include "kernels/probe.h"

namespace marginmerge {

namespace {

std::string cpu_name() {
    std::ifstream info("/proc/cpuinfo");
    for (std::string line; std::getline(info, line);) {
        const std::size_t colon = line.find(": ");
        if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
    }
    return "unknown";
}

double read_rate(std::span<const float> memory, std::size_t threads, double seconds) {
    const std::size_t part = memory.size() / threads;
    const auto read = [&](std::size_t i) {
        volatile float sink = read_burst(memory.subspan(i * part, part));
        (void)sink;
    };
    const double best = threads == 1
                            ? best_seconds(seconds, thread_seconds, [&] { read(0); })
                            : best_seconds(seconds, wall_seconds, [&] { parallel_for(threads, threads, read); });
    return static_cast<double>(part * threads * sizeof(float)) / best / 1e9;
}

}  // namespace

MachineLimits measure_machine(std::size_t threads, double seconds) {
    MachineLimits machine;
    machine.cpu = cpu_name();
    machine.kernel = kernel_name();
    machine.cores = resolve_threads(0);
    constexpr std::size_t rounds = 100'000;
    double done = 0;
    double best = best_seconds(seconds, thread_seconds, [&] { done = fma_burst(rounds); });
    machine.fma = done / best / 1e9;
    best = best_seconds(seconds, thread_seconds, [&] { done = int8_burst(rounds); });
    machine.int8 = done / best / 1e9;
    Matrix memory;
    memory.reshape(96, std::size_t{1} << 20);  // 384 MiB, far beyond any cache
    std::fill_n(memory.data(), memory.size(), 1.0f);
    machine.read_one = read_rate(memory.flat(), 1, seconds);
    const std::size_t all = resolve_threads(threads);
    machine.read_all = all > 1 ? read_rate(memory.flat(), all, seconds) : machine.read_one;
    return machine;
}

}  // namespace marginmerge
