#include "jobs/trial.h"

#include <algorithm>
#include <memory>

#include "core/parallel.h"
#include "jobs/page_worker.h"
#include "kernels/convert.h"
#include "merge/registry.h"

namespace marginmerge {

CodedQueries::CodedQueries(const MultiVectorSet& queries, std::span<const VectorCode> codes) {
    const auto wanted = [&](VectorCode code) { return std::find(codes.begin(), codes.end(), code) != codes.end(); };
    for (std::size_t q = 0; q < queries.size(); ++q) {
        tokens_.push_back(queries.vectors_of(q));
        plain_.emplace_back(queries.vectors(q));
        if (wanted(VectorCode::int8)) int8_.emplace_back(queries.vectors(q));
        if (wanted(VectorCode::bits)) bits_.emplace_back(queries.vectors(q));
    }
}

std::size_t CodedQueries::page_bytes(VectorCode code, std::size_t rows, std::size_t dim) {
    switch (code) {
        case VectorCode::f32: return rows * dim * sizeof(float);
        case VectorCode::int8: return rows * (dim + sizeof(float));
        case VectorCode::bits: return rows * (bit_row_bytes(dim) + sizeof(float));
        default: return rows * dim * sizeof(std::uint16_t);
    }
}

void CodedQueries::score(ConstMatrix page, VectorCode code, std::span<float> scores) const {
    const std::size_t n = page.rows, d = page.cols;
    switch (code) {
        case VectorCode::f32:
            for (std::size_t q = 0; q < size(); ++q) scores[q] = maxsim(plain_[q], page);
            return;
        case VectorCode::int8: {
            std::vector<std::int8_t> codes(n * d);
            std::vector<float> scales(n);
            encode_int8(page, codes.data(), scales.data());
            const Int8View view{codes.data(), scales.data(), n, d};
            for (std::size_t q = 0; q < size(); ++q) scores[q] = maxsim(int8_[q], view);
            return;
        }
        case VectorCode::bits: {
            std::vector<std::uint8_t> codes(n * bit_row_bytes(d));
            std::vector<float> scales(n);
            encode_bits(page, codes.data(), scales.data());
            const BitsView view{codes.data(), scales.data(), n, d};
            for (std::size_t q = 0; q < size(); ++q) scores[q] = maxsim(bits_[q], view);
            return;
        }
        default: {
            const auto type = code == VectorCode::bf16 ? ScalarType::bf16 : ScalarType::f16;
            std::vector<std::uint16_t> halves(n * d);
            from_float(page.flat(), type, halves.data());
            const VectorsView view(halves.data(), type, n, d);
            for (std::size_t q = 0; q < size(); ++q) scores[q] = maxsim(plain_[q], view);
        }
    }
}

std::vector<TrialScores> score_made_pages(std::size_t pages, const MakePage& make, const CodedQueries& queries,
                                          std::span<const VectorCode> codes, std::size_t threads) {
    std::vector<TrialScores> out(codes.size());
    for (auto& trial : out) trial.scores = Matrix(queries.size(), pages);
    const std::size_t workers = resolve_threads(threads);
    std::vector<Matrix> made(workers);
    std::vector<std::vector<float>> column(workers, std::vector<float>(queries.size()));
    std::vector<std::size_t> rows(pages), dims(pages);
    parallel_for_workers(pages, threads, [&](std::size_t p, std::size_t worker) {
        make(p, worker, made[worker]);
        rows[p] = made[worker].rows();
        dims[p] = made[worker].cols();
        for (std::size_t c = 0; c < codes.size(); ++c) {
            queries.score(made[worker], codes[c], column[worker]);
            for (std::size_t q = 0; q < queries.size(); ++q) out[c].scores(q, p) = column[worker][q];
        }
    });
    for (std::size_t c = 0; c < codes.size(); ++c) {
        for (std::size_t p = 0; p < pages; ++p) {
            out[c].vectors += rows[p];
            out[c].bytes += CodedQueries::page_bytes(codes[c], rows[p], dims[p]);
        }
    }
    return out;
}

MakePage recipe_pages(const MultiVectorSet& documents, const Model& model, const Recipe& recipe, std::size_t threads) {
    check_recipe(recipe, model);
    const auto workers = std::make_shared<std::vector<PageWorker>>(resolve_threads(threads));
    return [&documents, &model, &recipe, workers](std::size_t p, std::size_t worker, Matrix& out) {
        const Matrix& made =
            (*workers)[worker]
                .compress(documents.vectors(p), documents.grid(p), p, model, recipe, "documents", documents.id(p))
                .representatives;
        out.reshape(made.rows(), made.cols());
        std::copy_n(made.data(), made.size(), out.data());
    };
}

MakePage whole_pages(const MultiVectorSet& documents) {
    return [&documents](std::size_t p, std::size_t, Matrix& out) {
        const VectorsView stored = documents.vectors(p);
        out.reshape(stored.rows, stored.dim);
        to_float(stored, out.data());
    };
}

}  // namespace marginmerge
