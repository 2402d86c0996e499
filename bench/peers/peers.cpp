// MaxSim of one query over many pages, and one page's matrix product, by us and by libraries others
// would use. One thread, processor time, best of several. Prints tab-separated lines:
// task, who, milliseconds, largest difference from our scores.
#include <faiss/utils/distances.h>
#include <fmt/core.h>
#include <libxsmm.h>

#include <Eigen/Core>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "jobs/bench_clock.h"
#include "kernels/convert.h"
#include "kernels/maxsim.h"
#include "kernels/maxsim_bits.h"
#include "kernels/maxsim_int8.h"
#include "kernels/products.h"

using namespace marginmerge;

namespace {

using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr std::size_t dim = 128;
constexpr std::size_t tokens = 20;
constexpr std::size_t vectors = 52;

void line(const std::string& task, const std::string& who, double seconds, double difference) {
    fmt::print("{}\t{}\t{:.4f}\t{:.2g}\n", task, who, seconds * 1e3, difference);
    std::fflush(stdout);
}

/// Adds up the row maxima of similarities [tokens][rows] page by page, or of [rows][tokens].
void reduce(const float* s, std::size_t rows, bool token_major, std::span<float> out) {
    for (std::size_t page = 0; page < rows / vectors; ++page) {
        float best[tokens];
        std::fill_n(best, tokens, -1e30f);
        if (token_major) {
            for (std::size_t t = 0; t < tokens; ++t)
                for (std::size_t i = 0; i < vectors; ++i) best[t] = std::max(best[t], s[t * rows + page * vectors + i]);
        } else {
            for (std::size_t i = 0; i < vectors; ++i)
                for (std::size_t t = 0; t < tokens; ++t)
                    best[t] = std::max(best[t], s[(page * vectors + i) * tokens + t]);
        }
        float sum = 0;
        for (const float b : best) sum += b;
        out[page] = sum;
    }
}

double difference(std::span<const float> a, std::span<const float> b) {
    double most = 0;
    for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, static_cast<double>(std::abs(a[i] - b[i])));
    return most;
}

void maxsim_task(std::size_t pages, double seconds) {
    const std::string task = fmt::format("maxsim {} pages", pages);
    const std::size_t n = pages * vectors;
    Matrix v;
    v.reshape(n, dim);
    fill_random(v.flat(), 1);
    normalise_rows(v);
    Matrix q;
    q.reshape(tokens, dim);
    fill_random(q.flat(), 2);
    normalise_rows(q);
    std::vector<std::int64_t> offsets;
    for (std::size_t i = 0; i <= pages; ++i) offsets.push_back(static_cast<std::int64_t>(i * vectors));
    std::vector<float> ours(pages);
    std::vector<float> theirs(pages);
    const auto time = [&](const std::function<void()>& f) { return best_seconds(seconds, thread_seconds, f); };

    const PreparedQuery query(VectorsView(q.view()));
    line(task, fmt::format("marginmerge F32 ({})", kernel_name()),
         time([&] { maxsim_many(query, VectorsView(v.view()), offsets, ours); }), 0);
    {
        std::vector<std::uint16_t> halves(v.size());
        from_float(v.flat(), ScalarType::f16, halves.data());
        const VectorsView view(halves.data(), ScalarType::f16, n, dim);
        const double t = time([&] { maxsim_many(query, view, offsets, theirs); });
        line(task, "marginmerge F16", t, difference(ours, theirs));
    }
    {
        std::vector<std::int8_t> codes(v.size());
        std::vector<float> scales(n);
        encode_int8(VectorsView(v.view()), codes.data(), scales.data());
        const PreparedInt8Query coded(VectorsView(q.view()));
        const double t = time([&] {
            maxsim_many(coded, Int8View{codes.data(), scales.data(), n, dim}, offsets, theirs);
        });
        line(task, "marginmerge int8", t, difference(ours, theirs));
        std::vector<std::uint8_t> bits(n * bit_row_bytes(dim));
        encode_bits(VectorsView(v.view()), bits.data(), scales.data());
        const PreparedBitsQuery signs(VectorsView(q.view()));
        const double tb = time([&] {
            maxsim_many(signs, BitsView{bits.data(), scales.data(), n, dim}, offsets, theirs);
        });
        line(task, "marginmerge bits", tb, difference(ours, theirs));
    }
    // Peers get their similarities in blocks of 20 pages, which keeps them in cache.
    const std::size_t block_pages = 20;
    const std::size_t block = block_pages * vectors;
    std::vector<float> s(block * tokens);
    const auto blocks = [&](const std::function<void(const float*, std::size_t)>& multiply, bool token_major) {
        for (std::size_t page = 0; page < pages; page += block_pages) {
            const std::size_t rows = std::min(block_pages, pages - page) * vectors;
            multiply(v.row(page * vectors), rows);
            reduce(s.data(), rows, token_major, std::span(theirs).subspan(page, rows / vectors));
        }
    };
    {
        Eigen::setNbThreads(1);
        const Eigen::Map<const RowMajor> u(q.data(), tokens, dim);
        const auto multiply = [&](const float* rows, std::size_t count) {
            const auto many = static_cast<Eigen::Index>(count);
            Eigen::Map<RowMajor>(s.data(), many, tokens).noalias() =
                Eigen::Map<const RowMajor>(rows, many, dim) * u.transpose();
        };
        const double t = time([&] { blocks(multiply, false); });
        line(task, "Eigen 3.4 GEMM + max", t, difference(ours, theirs));
    }
    {
        // Column-major C [lanes, rows] = A [lanes, d] B [d, rows]; B is our row-major pages as they are. The
        // tokens are padded to whole vectors, which suits its kernels better.
        constexpr int lanes = 32;
        std::vector<float> a(lanes * dim);
        for (std::size_t t = 0; t < tokens; ++t)
            for (std::size_t j = 0; j < dim; ++j) a[j * lanes + t] = q(t, j);
        const float alpha = 1;
        const float beta = 0;
        double best = 1e300;
        for (const int width : {20, 24, 32}) {
            const int ld_a = lanes;
            const int ld_b = dim;
            const auto kernel =
                libxsmm_smmdispatch(width, vectors, dim, &ld_a, &ld_b, &width, &alpha, &beta, nullptr, nullptr);
            if (kernel == nullptr) continue;
            std::vector<float> c(static_cast<std::size_t>(width) * vectors);
            const double t = time([&] {
                for (std::size_t page = 0; page < pages; ++page) {
                    kernel(a.data(), v.row(page * vectors), c.data());
                    float top[lanes];
                    std::fill_n(top, lanes, -1e30f);
                    for (std::size_t i = 0; i < vectors; ++i)
                        for (std::size_t l = 0; l < tokens; ++l)
                            top[l] = std::max(top[l], c[i * static_cast<std::size_t>(width) + l]);
                    float sum = 0;
                    for (std::size_t l = 0; l < tokens; ++l) sum += top[l];
                    theirs[page] = sum;
                }
            });
            best = std::min(best, t);
        }
        line(task, "libxsmm 1.17 + max", best, difference(ours, theirs));
    }
    {
        const auto multiply = [&](const float* rows, std::size_t count) {
            for (std::size_t t = 0; t < tokens; ++t)
                faiss::fvec_inner_products_ny(s.data() + t * count, q.row(t), rows, dim, count);
        };
        const double t = time([&] { blocks(multiply, true); });
        line(task, "faiss 1.7.3 flat inner products + max", t, difference(ours, theirs));
    }
}

void product_task(double seconds) {
    const std::size_t n = 5000;
    const std::string task = "product 128 x 5000 x 128";
    Matrix z;
    z.reshape(128, dim);
    fill_random(z.flat(), 3);
    Matrix v;
    v.reshape(n, dim);
    fill_random(v.flat(), 4);
    Matrix ours;
    ours.reshape(n, 128);
    Matrix theirs;
    theirs.reshape(n, 128);
    const auto time = [&](const std::function<void()>& f) { return best_seconds(seconds, thread_seconds, f); };
    line(task, "marginmerge", time([&] { product(v, z, ours); }), 0);
    {
        const Eigen::Map<const RowMajor> a(v.data(), n, dim);
        const Eigen::Map<const RowMajor> b(z.data(), 128, dim);
        Eigen::Map<RowMajor> c(theirs.data(), n, 128);
        const double t = time([&] { c.noalias() = a * b.transpose(); });
        line(task, "Eigen 3.4", t, difference(ours.flat(), theirs.flat()));
    }
    {
        std::vector<float> a(128 * dim);
        for (std::size_t t = 0; t < 128; ++t)
            for (std::size_t j = 0; j < dim; ++j) a[j * 128 + t] = z(t, j);
        const float alpha = 1;
        const float beta = 0;
        const int size = 128;
        const auto kernel = libxsmm_smmdispatch(128, 50, dim, &size, &size, &size, &alpha, &beta, nullptr, nullptr);
        if (kernel != nullptr) {
            const double t = time([&] {
                for (std::size_t r = 0; r < n; r += 50) kernel(a.data(), v.row(r), theirs.row(r));
            });
            line(task, "libxsmm 1.17, prototypes packed beforehand", t, difference(ours.flat(), theirs.flat()));
        }
    }
}

}  // namespace

int main(int argc, char** argv) {
    const double seconds = argc > 1 ? std::atof(argv[1]) : 1.0;
    libxsmm_init();
    maxsim_task(1000, seconds);
    maxsim_task(10000, seconds);
    product_task(seconds);
}
