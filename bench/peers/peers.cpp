// MaxSim of one query over many pages, and one page's matrix product, by us and by libraries others
// would use: one thread in processor time, and two threads that share the pages in wall-clock time, best of
// several. Prints tab-separated lines: task, who, milliseconds, largest difference from our scores.
#include <faiss/utils/Heap.h>
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

#include "core/parallel.h"
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

/// Scores some pages, first .. first + count.
using Scorer = std::function<void(std::size_t, std::size_t, std::span<float>)>;

/// Times a way to score all pages, with one thread and with two that take half of them each.
class MaxsimTask {
public:
    MaxsimTask(std::size_t pages, double seconds) : pages_(pages), seconds_(seconds) {}

    void time(const std::string& who, const Scorer& score) {
        std::vector<float> scores(pages_);
        const auto part = [&](std::size_t first, std::size_t count) {
            score(first, count, std::span(scores).subspan(first, count));
        };
        const double one = best_seconds(seconds_, thread_seconds, [&] { part(0, pages_); });
        if (ours_.empty()) ours_ = scores;
        const double away = difference(ours_, scores);
        line(fmt::format("maxsim {} pages", pages_), who, one, away);
        const std::size_t half = pages_ / 2;
        const double two = best_seconds(seconds_, wall_seconds, [&] {
            parallel_for(2, 2, [&](std::size_t i) { part(i * half, i == 0 ? half : pages_ - half); });
        });
        line(fmt::format("maxsim {} pages, two threads", pages_), who, two, away);
    }

private:
    std::size_t pages_;
    double seconds_;
    std::vector<float> ours_;  ///< the first scores timed
};

/// Peers multiply blocks of 20 pages, which keeps their similarities in cache, then take maxima.
constexpr std::size_t block_pages = 20;

/// multiply(rows, count, similarities) fills [count][tokens], or [tokens][count].
Scorer by_blocks(const Matrix& v, bool token_major,
                 const std::function<void(const float*, std::size_t, float*)>& multiply) {
    return [&v, token_major, multiply](std::size_t first, std::size_t count, std::span<float> out) {
        std::vector<float> s(block_pages * vectors * tokens);
        for (std::size_t page = 0; page < count; page += block_pages) {
            const std::size_t rows = std::min(block_pages, count - page) * vectors;
            multiply(v.row((first + page) * vectors), rows, s.data());
            reduce(s.data(), rows, token_major, out.subspan(page, rows / vectors));
        }
    };
}

/// libxsmm page by page. Column-major C [lanes, rows] = A [lanes, d] B [d, rows]; B is our row-major pages as they are.
/// A is padded to `lanes`: its kernels like whole vectors better.
template <int lanes>
Scorer by_libxsmm(const Matrix& v, const Matrix& q) {
    std::vector<float> a(lanes * dim);
    for (std::size_t t = 0; t < tokens; ++t)
        for (std::size_t j = 0; j < dim; ++j) a[j * lanes + t] = q(t, j);
    const float alpha = 1;
    const float beta = 0;
    const int ld_a = lanes;
    const int ld_b = dim;
    const auto kernel = libxsmm_smmdispatch(lanes, vectors, dim, &ld_a, &ld_b, &ld_a, &alpha, &beta, nullptr, nullptr);
    if (kernel == nullptr) return {};
    return [&v, a, kernel](std::size_t first, std::size_t count, std::span<float> out) {
        std::vector<float> c(lanes * vectors);
        for (std::size_t page = 0; page < count; ++page) {
            kernel(a.data(), v.row((first + page) * vectors), c.data());
            float top[lanes];
            std::fill_n(top, lanes, -1e30f);
            for (std::size_t i = 0; i < vectors; ++i)
                for (std::size_t l = 0; l < lanes; ++l) top[l] = std::max(top[l], c[i * lanes + l]);
            float sum = 0;
            for (std::size_t l = 0; l < tokens; ++l) sum += top[l];
            out[page] = sum;
        }
    };
}

void maxsim_task(std::size_t pages, double seconds) {
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
    MaxsimTask task(pages, seconds);
    const auto ours = [&](const std::string& who, const auto& query, const auto& view) {
        task.time(who, [&](std::size_t first, std::size_t count, std::span<float> out) {
            maxsim_many(query, view, std::span(offsets).subspan(first, count + 1), out);
        });
    };

    const VectorsView plain(q.view());
    const PreparedQuery query(plain);
    ours(fmt::format("marginmerge F32 ({})", kernel_name()), query, VectorsView(v.view()));
    {
        std::vector<std::uint16_t> halves(v.size());
        from_float(v.flat(), ScalarType::f16, halves.data());
        ours("marginmerge F16", query, VectorsView(halves.data(), ScalarType::f16, n, dim));
    }
    std::vector<float> scales(n);
    {
        std::vector<std::int8_t> codes(v.size());
        encode_int8(VectorsView(v.view()), codes.data(), scales.data());
        ours("marginmerge int8", PreparedInt8Query(plain), Int8View{codes.data(), scales.data(), n, dim});
    }
    {
        std::vector<std::uint8_t> bits(n * bit_row_bytes(dim));
        encode_bits(VectorsView(v.view()), bits.data(), scales.data());
        ours("marginmerge bits", PreparedBitsQuery(plain), BitsView{bits.data(), scales.data(), n, dim});
    }
    const Eigen::Map<const RowMajor> u(q.data(), tokens, dim);
    task.time("Eigen 3.4 GEMM + max", by_blocks(v, false, [&](const float* rows, std::size_t count, float* s) {
                  const auto many = static_cast<Eigen::Index>(count);
                  Eigen::Map<RowMajor>(s, many, tokens).noalias() =
                      Eigen::Map<const RowMajor>(rows, many, dim) * u.transpose();
              }));
    if (const Scorer score = by_libxsmm<20>(v, q)) task.time("libxsmm 1.17 + max, 20 lanes", score);
    if (const Scorer score = by_libxsmm<24>(v, q)) task.time("libxsmm 1.17 + max, 24 lanes", score);
    if (const Scorer score = by_libxsmm<32>(v, q)) task.time("libxsmm 1.17 + max, 32 lanes", score);
    task.time("faiss 1.7.3 flat inner products + max",
              by_blocks(v, true, [&](const float* rows, std::size_t count, float* s) {
                  for (std::size_t t = 0; t < tokens; ++t)
                      faiss::fvec_inner_products_ny(s + t * count, q.row(t), rows, dim, count);
              }));
    // What its flat index does for a search: less than MaxSim asks for, but by way of BLAS.
    task.time("faiss 1.7.3, 100 nearest of each token, no scores",
              [&](std::size_t first, std::size_t count, std::span<float>) {
                  constexpr std::size_t k = 100;
                  std::vector<float> values(tokens * k);
                  std::vector<std::int64_t> ids(tokens * k);
                  faiss::float_minheap_array_t found{tokens, k, ids.data(), values.data()};
                  faiss::knn_inner_product(q.data(), v.row(first * vectors), dim, tokens, count * vectors, &found);
              });
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
    Eigen::setNbThreads(1);
    maxsim_task(1000, seconds);
    maxsim_task(10000, seconds);
    product_task(seconds);
}
