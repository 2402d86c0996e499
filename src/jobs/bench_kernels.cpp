#include <fmt/core.h>

#include "jobs/bench_clock.h"
#include "kernels/convert.h"
#include "kernels/elementwise.h"
#include "kernels/maxsim.h"
#include "kernels/maxsim_bits.h"
#include "kernels/maxsim_int8.h"
#include "kernels/products.h"
#include "kernels/sha256_lanes.h"

namespace marginmerge {

namespace {

struct Bench {
    const BenchOptions& options;
    BenchReport& report;

    /// One kernel of `flops` operations; `limit` GFLOP/s is what the core could do (0: not defined).
    template <class F>
    void add(std::string what, std::string size, double flops, double limit, std::string of, F&& f) {
        const double t = best_seconds(options.seconds, thread_seconds, f);
        const double rate = flops / t / 1e9;
        report.rows.push_back({std::move(what), std::move(size), 1, t * 1e3, rate, "GFLOP/s",
                               limit > 0 ? rate / limit : 0, std::move(of)});
    }
};

/// All stores, `pages` pages against one query.
void maxsim_stores(Bench& bench, std::size_t tokens, std::size_t pages, const char* where) {
    const BenchOptions& o = bench.options;
    const MachineLimits& machine = bench.report.machine;
    const std::size_t n = pages * o.vectors;
    Matrix v;
    v.reshape(n, o.dim);
    fill_random(v.flat(), 1);
    Matrix query;
    query.reshape(tokens, o.dim);
    fill_random(query.flat(), 2);
    const VectorsView u{ConstMatrix(query)};
    std::vector<std::int64_t> offsets;
    for (std::size_t i = 0; i <= pages; ++i) offsets.push_back(static_cast<std::int64_t>(i * o.vectors));
    std::vector<float> out(pages);
    const double flops = 2.0 * static_cast<double>(tokens * n * o.dim);
    const std::string size = fmt::format("{} tokens, {} x {} x {}, {}", tokens, pages, o.vectors, o.dim, where);

    const PreparedQuery plain(u);
    bench.add("maxsim F32", size, flops, machine.fma, "FMA peak",
              [&] { maxsim_many(plain, VectorsView(v.view()), offsets, out); });
    std::vector<std::uint16_t> halves(n * o.dim);
    for (const ScalarType type : {ScalarType::f16, ScalarType::bf16}) {
        from_float(v.flat(), type, halves.data());
        bench.add(fmt::format("maxsim {}", to_string(type)), size, flops, machine.fma, "FMA peak",
                  [&] { maxsim_many(plain, VectorsView(halves.data(), type, n, o.dim), offsets, out); });
    }
    std::vector<float> scales(n);
    {
        std::vector<std::int8_t> codes(n * o.dim);
        encode_int8(VectorsView(v.view()), codes.data(), scales.data());
        const PreparedInt8Query coded(u);
        bench.add("maxsim int8", size, flops, machine.int8, "int8 peak", [&] {
            maxsim_many(coded, Int8View{codes.data(), scales.data(), n, o.dim}, offsets, out);
        });
    }
    std::vector<std::uint8_t> bits(n * bit_row_bytes(o.dim));
    encode_bits(VectorsView(v.view()), bits.data(), scales.data());
    const PreparedBitsQuery coded(u);
    bench.add("maxsim bits", size, flops, 0, "", [&] {
        maxsim_many(coded, BitsView{bits.data(), scales.data(), n, o.dim}, offsets, out);
    });
}

void products(Bench& bench) {
    const std::size_t d = bench.options.dim;
    const double fma = bench.report.machine.fma;
    Matrix z;
    z.reshape(128, d);
    fill_random(z.flat(), 3);
    const PackedRows packed(z.view());
    for (const std::size_t n : {238, 1175, 2927, 4862}) {
        const std::size_t k = (n + 19) / 20;
        Matrix v;
        v.reshape(n, d);
        fill_random(v.flat(), 4);
        Matrix out;
        out.reshape(128, n);
        std::vector<float> best(128);
        std::vector<float> similarity(n);
        std::vector<std::int32_t> index(n);
        const auto flops = [&](std::size_t rows) { return 2.0 * static_cast<double>(rows * n * d); };
        bench.add("responses", fmt::format("128 x {} x {}", n, d), flops(128), fma, "FMA peak",
                  [&] { responses(packed, v, out, best); });
        bench.add("product", fmt::format("{} x 128 x {}", n, d), flops(128), fma, "FMA peak", [&] {
            product(v, z, {out.data(), n, 128});
        });
        bench.add("nearest", fmt::format("{} of {} x {}", n, k, d), flops(k), fma, "FMA peak",
                  [&] { nearest(v, v.view().middle_rows(0, k), index, similarity); });
    }
}

void elements(Bench& bench) {
    constexpr std::size_t count = 16384;
    Matrix x;
    x.reshape(1, count);
    fill_random(x.flat(), 5);
    std::vector<float> out(count);
    const auto add = [&](const char* name, auto function) {
        const double t = best_seconds(bench.options.seconds, thread_seconds, [&] { function(x.flat(), out); });
        bench.report.rows.push_back(
            {name, fmt::format("{}", count), 1, t * 1e3, static_cast<double>(count) / t / 1e9, "G/s", 0, ""});
    };
    add("exp", [](std::span<const float> in, std::span<float> to) { exp_of(in, to); });
    add("gelu", [](std::span<const float> in, std::span<float> to) { gelu_of(in, to); });
    add("tanh", [](std::span<const float> in, std::span<float> to) { tanh_of(in, to); });
}

void hashing(Bench& bench) {
    constexpr std::size_t messages = 64, length = 50'000;
    std::vector<std::byte> bytes(messages * length);
    std::vector<std::span<const std::byte>> each;
    for (std::size_t i = 0; i < messages; ++i) each.push_back(std::span(bytes).subspan(i * length, length));
    const auto add = [&](const char* name, auto function) {
        const double t = best_seconds(bench.options.seconds, thread_seconds, function);
        bench.report.rows.push_back({name, fmt::format("{} x {} bytes", messages, length), 1, t * 1e3,
                                     static_cast<double>(bytes.size()) / t / 1e9, "GB/s", 0, ""});
    };
    add("sha256, one by one", [&] {
        for (const auto& message : each) {
            Sha256 sha;
            sha.update(message);
            sha.finish();
        }
    });
    add("sha256 of each", [&] { sha256_of_each(each); });
}

}  // namespace

BenchReport bench_kernels(const BenchOptions& options, const Progress& progress) {
    BenchReport report;
    const auto step = [&](std::size_t done) { bench_step(progress, done, 6); };
    step(0);
    report.machine = measure_machine(options.threads, options.seconds);
    Bench bench{options, report};
    step(1);
    maxsim_stores(bench, options.tokens, 8, "in cache");
    maxsim_stores(bench, 32, 8, "in cache");
    step(2);
    const std::size_t streaming = (std::size_t{512} << 20) / (options.vectors * options.dim * sizeof(float));
    maxsim_stores(bench, options.tokens, streaming, "from memory");
    step(3);
    products(bench);
    step(4);
    elements(bench);
    step(5);
    hashing(bench);
    step(6);
    report.notes.push_back("processor time of one thread, best of several; flops of the tokens, not of padded lanes");
    return report;
}

}  // namespace marginmerge
