#include <fmt/core.h>

#include <cstring>
#include <fstream>
#include <functional>

#include "core/parallel.h"
#include "jobs/bench_clock.h"
#include "kernels/convert.h"
#include "kernels/maxsim.h"
#include "kernels/maxsim_bits.h"
#include "kernels/maxsim_int8.h"

namespace marginmerge {

namespace {

constexpr std::size_t results_kept = 10;
constexpr std::size_t batch_queries = 32;

std::size_t available_bytes() {
    std::ifstream info("/proc/meminfo");
    for (std::string line; std::getline(info, line);)
        if (line.starts_with("MemAvailable:")) return std::stoull(line.substr(13)) * 1024;
    return 0;
}

/// `bytes` of memory in which a block repeats: distinct addresses, cheap contents.
AlignedArray<char> repeated(std::span<const char> block, std::size_t bytes) {
    AlignedArray<char> memory(bytes);
    for (std::size_t at = 0; at < bytes; at += block.size())
        std::memcpy(memory.data() + at, block.data(), std::min(block.size(), bytes - at));
    return memory;
}

/// The ten best pages, as a search would have to find them.
void best_ten(std::span<const float> scores, std::vector<std::uint32_t>& order) {
    order.clear();
    float worst = -1e30f;
    const auto better = [&](std::uint32_t a, std::uint32_t b) {
        return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
    };
    for (std::uint32_t i = 0; i < scores.size(); ++i) {
        if (order.size() == results_kept && scores[i] <= worst) continue;
        order.insert(std::upper_bound(order.begin(), order.end(), i, better), i);
        if (order.size() > results_kept) order.pop_back();
        worst = scores[order.back()];
    }
}

struct Searches {
    const BenchOptions& o;
    BenchReport& report;
    std::size_t pages;
    std::vector<std::int64_t> offsets;
    std::vector<float> scores;
    std::vector<std::uint32_t> order;

    Searches(const BenchOptions& options, BenchReport& to, std::size_t count)
        : o(options), report(to), pages(count), scores(count) {
        for (std::size_t i = 0; i <= pages; ++i) offsets.push_back(static_cast<std::int64_t>(i * o.vectors));
    }

    std::size_t rows() const { return pages * o.vectors; }

    /// scan(offsets, out) scores some pages for `queries` queries at once, page-contiguous for each.
    void add(const std::string& store, std::size_t bytes, std::size_t queries, double peak,
             const std::function<void(std::span<const std::int64_t>, std::span<float>)>& scan) {
        const std::size_t all = resolve_threads(o.threads);
        for (std::size_t threads = 1;; threads = all) {
            const std::size_t run = std::max<std::size_t>(1, 1024 / o.vectors);
            const std::size_t runs = (pages + run - 1) / run;
            std::vector<float> buffer(queries * pages);
            const auto one = [&](std::size_t r) {
                const std::size_t first = r * run;
                const std::size_t count = std::min(run, pages - first);
                scan(std::span(offsets).subspan(first, count + 1),
                     std::span(buffer).subspan(first * queries, count * queries));
            };
            const auto search = [&] {
                if (threads == 1) {
                    for (std::size_t r = 0; r < runs; ++r) one(r);
                } else {
                    parallel_for(runs, threads, one);
                }
                // Scores of several queries lie run by run; ranking the first pages' worth for each costs
                // the same as ranking them in place.
                for (std::size_t q = 0; q < queries; ++q) best_ten(std::span(buffer).subspan(q * pages, pages), order);
            };
            const double t = best_seconds(o.seconds, threads == 1 ? thread_seconds : wall_seconds, search);
            const double flops = 2.0 * static_cast<double>(queries * o.tokens * rows() * o.dim);
            const double compute = peak > 0 ? flops / (peak * 1e9 * static_cast<double>(threads)) : 0;
            const bool in_cache = bytes < (std::size_t{16} << 20);
            const double bandwidth = threads == 1 ? report.machine.read_one : report.machine.read_all;
            const double memory = in_cache ? 0 : static_cast<double>(bytes) / (bandwidth * 1e9);
            const double least = std::max(compute, memory);
            report.rows.push_back({store, fmt::format("{} pages", pages), threads,
                                   t * 1e3 / static_cast<double>(queries), static_cast<double>(queries) / t,
                                   "queries/s", least / t,
                                   least == 0          ? ""
                                   : compute >= memory ? "arithmetic"
                                                       : "memory"});
            if (threads == all) break;
        }
    }
};

struct Query {
    Matrix rows;
    Query(const BenchOptions& o, std::uint64_t seed) {
        rows.reshape(o.tokens, o.dim);
        fill_random(rows.flat(), seed);
    }
    VectorsView view() const { return VectorsView(rows.view()); }
};

void all_stores(const BenchOptions& o, BenchReport& report, std::size_t pages) {
    Searches searches(o, report, pages);
    const std::size_t numbers = searches.rows() * o.dim;
    const double fma = report.machine.fma;
    // A block of 4,096 vectors is coded once and repeated.
    const std::size_t block_rows = std::min<std::size_t>(4096, searches.rows());
    Matrix block;
    block.reshape(block_rows, o.dim);
    fill_random(block.flat(), 3);
    const Query query(o, 9);
    std::vector<Query> many;
    std::vector<VectorsView> views;
    for (std::size_t q = 0; q < batch_queries; ++q) many.emplace_back(o, q + 20);
    views.reserve(many.size());
    for (const Query& one : many) views.push_back(one.view());
    const PreparedQuery plain(query.view());
    const PreparedBatch batch{std::span<const VectorsView>(views)};

    for (const ScalarType type : {ScalarType::f32, ScalarType::f16}) {
        const std::size_t bytes = numbers * scalar_size(type);
        if (bytes + (std::size_t{1} << 30) > available_bytes()) {
            report.notes.push_back(fmt::format("{} pages as {}: skipped, {:.1f} GB do not fit", pages, to_string(type),
                                               static_cast<double>(bytes) / 1e9));
            continue;
        }
        std::vector<char> coded(block.size() * scalar_size(type));
        from_float(block.flat(), type, coded.data());
        const AlignedArray<char> memory = repeated(coded, bytes);
        const VectorsView vectors(memory.data(), type, searches.rows(), o.dim);
        searches.add(to_string(type), bytes, 1, fma,
                     [&](auto offsets, auto out) { maxsim_many(plain, vectors, offsets, out); });
        if (pages > 10'000) continue;
        searches.add(fmt::format("{}, batch of {}", to_string(type), batch_queries), bytes, batch_queries, fma,
                     [&](auto offsets, auto out) { maxsim_many(batch, vectors, offsets, out); });
    }
    std::vector<float> block_scales(block_rows);
    const auto repeat_scales = [&] {
        return repeated({reinterpret_cast<const char*>(block_scales.data()), block_scales.size() * sizeof(float)},
                        searches.rows() * sizeof(float));
    };
    {
        std::vector<std::int8_t> codes(block.size());
        encode_int8(VectorsView(block.view()), codes.data(), block_scales.data());
        const AlignedArray<char> memory =
            repeated({reinterpret_cast<const char*>(codes.data()), codes.size()}, numbers);
        const AlignedArray<char> scales = repeat_scales();
        const Int8View vectors{reinterpret_cast<const std::int8_t*>(memory.data()),
                               reinterpret_cast<const float*>(scales.data()), searches.rows(), o.dim};
        const PreparedInt8Query coded(query.view());
        searches.add("int8", numbers + searches.rows() * 4, 1, report.machine.int8,
                     [&](auto offsets, auto out) { maxsim_many(coded, vectors, offsets, out); });
    }
    std::vector<std::uint8_t> codes(block_rows * bit_row_bytes(o.dim));
    encode_bits(VectorsView(block.view()), codes.data(), block_scales.data());
    const std::size_t bytes = searches.rows() * bit_row_bytes(o.dim);
    const AlignedArray<char> memory = repeated({reinterpret_cast<const char*>(codes.data()), codes.size()}, bytes);
    const AlignedArray<char> scales = repeat_scales();
    const BitsView vectors{reinterpret_cast<const std::uint8_t*>(memory.data()),
                           reinterpret_cast<const float*>(scales.data()), searches.rows(), o.dim};
    const PreparedBitsQuery coded(query.view());
    searches.add("bits", bytes + searches.rows() * 4, 1, 0,
                 [&](auto offsets, auto out) { maxsim_many(coded, vectors, offsets, out); });
}

}  // namespace

BenchReport bench_search(const BenchOptions& options, const Progress& progress) {
    BenchReport report;
    std::vector<std::size_t> sizes;
    for (std::size_t pages = 1000; pages <= options.max_pages; pages *= 10) sizes.push_back(pages);
    bench_step(progress, 0, sizes.size());
    report.machine = measure_machine(options.threads, options.seconds);
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        all_stores(options, report, sizes[i]);
        bench_step(progress, i + 1, sizes.size());
    }
    report.notes.push_back(
        "one query at a time unless a batch is named, exact, ten best pages; one thread: processor "
        "time, several: wall-clock time");
    return report;
}

}  // namespace marginmerge
