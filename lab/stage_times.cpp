#include "lab/stage_times.h"

#include <algorithm>
#include <chrono>

#include "core/random.h"
#include "kernels/convert.h"
#include "merge/construct.h"
#include "merge/features.h"

namespace marginmerge::lab {

namespace {

using Clock = std::chrono::steady_clock;

double milliseconds(Clock::time_point start) {
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
    if (values.empty()) return 0;
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

}  // namespace

StageTimes paper_stages(const Dataset& data, const Model& model, Recipe recipe, std::size_t pages) {
    StageTimes out;
    out.pages = std::min(pages, data.documents.size());
    const char* names[] = {"prototype responses", "anchors", "assignment", "features", "network", "synthesis"};
    std::vector<std::vector<double>> times(std::size(names));
    std::vector<double> totals;
    PageWorkspace w;
    for (std::size_t i = 0; i < out.pages; ++i) {
        const std::size_t p = i * data.documents.size() / out.pages;
        const Matrix v = to_float(data.documents.vectors(p));
        if (v.rows() == 0) continue;
        const PageInput page{v, data.documents.grid(p), mix_seed(recipe.seed, p)};
        Matrix representatives(recipe.budget.count(v.rows()), v.cols());
        double total = 0;
        std::size_t stage = 0;
        const auto time = [&](const auto& work) {
            const auto start = Clock::now();
            work();
            times[stage].push_back(milliseconds(start));
            total += times[stage++].back();
        };
        time([&] { page_responses(page, model, recipe, w); });
        time([&] { choose_anchors(page, recipe, representatives.rows(), w); });
        time([&] { cluster_page(page, w); });
        time([&] {
            base_weights(recipe, w);
            compute_features(page, model.uses_grid, w, w.clusters.features);
        });
        time([&] { page_residuals(model, recipe, w); });
        time([&] {
            page_alpha(w.residual, w);
            cluster_centroids(w.lists, w.weight, representatives);
        });
        totals.push_back(total);
    }
    for (std::size_t s = 0; s < std::size(names); ++s) out.stages.emplace_back(names[s], median(times[s]));
    out.total = median(totals);
    return out;
}

double page_time(const Dataset& data, const Model& model, const Recipe& recipe, std::size_t pages) {
    const std::size_t count = std::min(pages, data.documents.size());
    std::vector<double> times;
    PageWorkspace w;
    CompressedPage out;
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t p = i * data.documents.size() / count;
        const Matrix v = to_float(data.documents.vectors(p));
        const auto start = Clock::now();
        compress_page({v, data.documents.grid(p), mix_seed(recipe.seed, p)}, model, recipe, w, out);
        times.push_back(milliseconds(start));
    }
    return median(times);
}

double search_time(const MultiVectorSet& documents, const MultiVectorSet& queries, VectorCode code, std::size_t count) {
    const Matrix rows = to_float(documents.all_vectors());
    const std::size_t n = rows.rows(), d = rows.cols();
    std::vector<std::uint16_t> halves;
    std::vector<std::int8_t> bytes;
    std::vector<std::uint8_t> bits;
    std::vector<float> scales(n), scores(documents.size());
    if (code == VectorCode::f16) {
        halves.resize(n * d);
        from_float(rows.flat(), ScalarType::f16, halves.data());
    } else if (code == VectorCode::int8) {
        bytes.resize(n * d);
        encode_int8(rows, bytes.data(), scales.data());
    } else if (code == VectorCode::bits) {
        bits.resize(n * bit_row_bytes(d));
        encode_bits(rows, bits.data(), scales.data());
    }
    std::vector<double> times;
    for (std::size_t q = 0; q < std::min(count, queries.size()); ++q) {
        const auto start = Clock::now();
        switch (code) {
            case VectorCode::int8:
                maxsim_many(PreparedInt8Query(queries.vectors(q)), Int8View{bytes.data(), scales.data(), n, d},
                            documents.offsets(), scores);
                break;
            case VectorCode::bits:
                maxsim_many(PreparedBitsQuery(queries.vectors(q)), BitsView{bits.data(), scales.data(), n, d},
                            documents.offsets(), scores);
                break;
            case VectorCode::f16:
                maxsim_many(PreparedQuery(queries.vectors(q)), VectorsView(halves.data(), ScalarType::f16, n, d),
                            documents.offsets(), scores);
                break;
            default: maxsim_many(PreparedQuery(queries.vectors(q)), VectorsView(rows), documents.offsets(), scores);
        }
        times.push_back(milliseconds(start));
    }
    return median(times);
}

}  // namespace marginmerge::lab
