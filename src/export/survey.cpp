#include "export/survey.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/fail.h"
#include "core/parallel.h"
#include "index/top_k.h"
#include "kernels/maxsim.h"

namespace marginmerge {

namespace {

// Pages decoded at a time, by their numbers in memory.
constexpr std::size_t block_floats = 4U << 20;
constexpr std::size_t block_pages = 4096;

// Pages [first, result) fit into one block; at least one.
std::size_t block_end(const Index& index, std::size_t first) {
    std::size_t floats = 0, end = first;
    while (end < index.size() && end - first < block_pages && (end == first || floats < block_floats))
        floats += index.vectors_of(end++) * index.dim();
    return end;
}

double norm_of(std::span<const float> row) {
    double squares = 0;
    for (const float x : row) squares += static_cast<double>(x) * static_cast<double>(x);
    return std::sqrt(squares);
}

void check_page(const Index& index, std::size_t p, const ExportTarget& target, const TargetLimits& limits) {
    const std::size_t n = index.vectors_of(p);
    if (limits.page_vectors > 0 && n > limits.page_vectors)
        fail(ErrorCode::unsupported, "{}: page '{}': expected at most {} vectors a page, found {}; compress it further",
             target.name(), index.id(p), limits.page_vectors, n);
    if (limits.page_floats > 0 && n * index.dim() > limits.page_floats)
        fail(ErrorCode::unsupported,
             "{}: page '{}': expected at most {} numbers a page, found {} ({} vectors of {}); compress it further",
             target.name(), index.id(p), limits.page_floats, n * index.dim(), n, index.dim());
    if (limits.id_bytes > 0 && index.id(p).size() > limits.id_bytes)
        fail(ErrorCode::unsupported, "{}: page '{}...': expected an id of at most {} bytes, found {}", target.name(),
             index.id(p).substr(0, 40), limits.id_bytes, index.id(p).size());
    if (!limits.empty_pages && n == 0)
        fail(ErrorCode::unsupported, "{}: page '{}': expected at least one vector, found none; delete the page first",
             target.name(), index.id(p));
}

}  // namespace

void scale_to_unit(Matrix& rows) {
    for (std::size_t i = 0; i < rows.rows(); ++i) {
        const double norm = norm_of(rows.view().row_span(i));
        if (norm == 0) continue;
        for (float& x : rows.view().row_span(i)) x = static_cast<float>(static_cast<double>(x) / norm);
    }
}

IndexSurvey survey_index(const Index& index, const ExportTarget& target, std::size_t threads,
                         const Progress& progress) {
    const TargetLimits limits = target.limits();
    if (limits.dim > 0 && index.dim() > limits.dim)
        fail(ErrorCode::unsupported, "{}: dimensions: expected at most {}, found {}", target.name(), limits.dim,
             index.dim());
    for (std::size_t p = 0; p < index.size(); ++p) check_page(index, p, target, limits);
    IndexSurvey survey;
    survey.shortest = std::numeric_limits<float>::infinity();
    struct Page {
        float shortest = std::numeric_limits<float>::infinity(), longest = 0;
        std::size_t vectors = 0, not_unit = 0;
    };
    std::vector<Page> pages;
    for (std::size_t first = 0; first < index.size();) {
        const std::size_t end = block_end(index, first);
        pages.assign(end - first, {});
        parallel_for(end - first, threads, [&](std::size_t i) {
            const Matrix rows = index.vectors(first + i);
            Page& page = pages[i];
            page.vectors = rows.rows();
            for (std::size_t r = 0; r < rows.rows(); ++r) {
                const auto norm = static_cast<float>(norm_of(rows.view().row_span(r)));
                if (!std::isfinite(norm))
                    fail(ErrorCode::corrupt, "{}: page '{}': row {}: expected finite numbers, found NaN or infinity",
                         index.path().string(), index.id(first + i), r);
                page.shortest = std::min(page.shortest, norm);
                page.longest = std::max(page.longest, norm);
                if (std::abs(norm - 1) > unit_tolerance) ++page.not_unit;
            }
        });
        for (const Page& page : pages) {
            survey.vectors += page.vectors;
            survey.most_vectors = std::max(survey.most_vectors, page.vectors);
            survey.shortest = std::min(survey.shortest, page.shortest);
            survey.longest = std::max(survey.longest, page.longest);
            survey.not_unit += page.not_unit;
        }
        first = end;
        if (progress) progress({"survey", "pages", first, index.size(), {}});
    }
    if (survey.vectors == 0) survey.shortest = 0;
    return survey;
}

std::vector<std::vector<Hit>> exact_search(const Index& index, const MultiVectorSet& queries, bool unit_norm,
                                           std::size_t threads) {
    std::vector<PreparedQuery> prepared;
    for (std::size_t q = 0; q < queries.size(); ++q) prepared.emplace_back(queries.vectors(q));
    std::vector<TopK> best(queries.size(), TopK(10));
    std::vector<float> scores;
    for (std::size_t first = 0; first < index.size();) {
        const std::size_t end = block_end(index, first);
        scores.assign((end - first) * prepared.size(), 0);
        parallel_for(end - first, threads, [&](std::size_t i) {
            Matrix rows = index.vectors(first + i);
            if (unit_norm) scale_to_unit(rows);
            for (std::size_t q = 0; q < prepared.size(); ++q)
                scores[i * prepared.size() + q] = maxsim(prepared[q], rows);
        });
        for (std::size_t i = 0; i < end - first; ++i)
            for (std::size_t q = 0; q < prepared.size(); ++q) best[q].offer(scores[i * prepared.size() + q], first + i);
        first = end;
    }
    std::vector<std::vector<Hit>> out(queries.size());
    for (std::size_t q = 0; q < queries.size(); ++q)
        for (const ScoredPage& page : best[q].take())
            out[q].push_back({page.position, index.id(page.position), page.score});
    return out;
}

NormCost compare_rankings(const std::vector<std::vector<Hit>>& before, const std::vector<std::vector<Hit>>& after) {
    NormCost cost;
    cost.queries = before.size();
    double overlap = 0;
    for (std::size_t q = 0; q < before.size(); ++q) {
        std::size_t kept = 0;
        bool same = before[q].size() == after[q].size();
        for (std::size_t r = 0; r < before[q].size(); ++r) {
            const auto found = std::find_if(after[q].begin(), after[q].end(),
                                            [&](const Hit& h) { return h.position == before[q][r].position; });
            if (found != after[q].end()) ++kept;
            same = same && r < after[q].size() && after[q][r].position == before[q][r].position;
        }
        if (!before[q].empty() && before[q][0].position != after[q][0].position) ++cost.first_changed;
        if (!same) ++cost.list_changed;
        overlap += before[q].empty() ? 1 : static_cast<double>(kept) / static_cast<double>(before[q].size());
    }
    if (cost.queries > 0) cost.overlap = overlap / static_cast<double>(cost.queries);
    return cost;
}

void stream_pages(const Index& index, std::size_t first, bool unit_norm, std::size_t threads,
                  const std::function<std::string(const ExportPage&)>& encode,
                  const std::function<bool(const ExportPage&, std::string)>& sink) {
    while (first < index.size()) {
        const std::size_t end = block_end(index, first);
        std::vector<ExportPage> pages(end - first);
        std::vector<std::string> encoded(end - first);
        parallel_for(end - first, threads, [&](std::size_t i) {
            const std::size_t p = first + i;
            pages[i] = {p, index.id(p), index.metadata(p), index.vectors(p)};
            if (unit_norm) scale_to_unit(pages[i].vectors);
            if (encode) encoded[i] = encode(pages[i]);
        });
        for (std::size_t i = 0; i < pages.size(); ++i)
            if (!sink(pages[i], std::move(encoded[i]))) return;
        first = end;
    }
}

}  // namespace marginmerge
