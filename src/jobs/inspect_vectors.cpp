#include "jobs/inspect_vectors.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>

#include "core/fail.h"
#include "core/parallel.h"
#include "data/redundancy.h"
#include "io/mapped_file.h"
#include "io/text_lines.h"
#include "kernels/convert.h"

namespace marginmerge {

namespace {

constexpr std::size_t block_documents = 64;
constexpr std::size_t redundancy_sample = 64;
constexpr std::size_t redundancy_rows = 20'000;  // larger documents would need too much memory
constexpr std::size_t most_problems = 5;

// What one block of documents contributes; blocks are combined in order.
struct BlockSums {
    double least = std::numeric_limits<double>::infinity();
    double most = 0;
    double sum = 0;
    std::uint64_t vectors = 0;
    std::uint64_t zeros = 0;
    std::vector<std::string> problems;
};

// What readers of a file do not look for, since it takes a look at every document.
void check_layout(const MultiVectorSet& set, std::size_t i, const std::string& source,
                  std::vector<std::string>& problems) {
    if (problems.size() >= most_problems) return;
    if (!is_utf8(set.id(i)))
        problems.push_back(
            fmt::format("{}: id of document {}: expected UTF-8 text, found '{}'", source, i, one_line(set.id(i))));
    const PatchGrid grid = set.grid(i);
    const std::size_t patches = static_cast<std::size_t>(grid.columns) * static_cast<std::size_t>(grid.rows);
    const std::size_t vectors = set.has_owner() ? set.source_vectors_of(i) : set.vectors_of(i);
    if (grid.known() && patches > vectors)
        problems.push_back(fmt::format("{}: document '{}': grid {}x{}: expected at least {} vectors, found {}", source,
                                       one_line(set.id(i)), grid.columns, grid.rows, patches, vectors));
}

void scan_document(const MultiVectorSet& set, std::size_t i, const std::string& source, std::vector<float>& values,
                   BlockSums& sums) {
    constexpr std::size_t rows_at_once = 1024;
    const VectorsView v = set.vectors(i);
    for (std::size_t first = 0; first < v.rows; first += rows_at_once) {
        const VectorsView part = v.middle_rows(first, std::min(rows_at_once, v.rows - first));
        values.resize(part.rows * part.dim);
        to_float(part, values.data());
        for (std::size_t r = 0; r < part.rows; ++r) {
            double squares = 0;
            for (std::size_t j = 0; j < part.dim; ++j) {
                const auto x = static_cast<double>(values[r * part.dim + j]);
                squares += x * x;
            }
            if (!std::isfinite(squares)) {
                if (sums.problems.size() < most_problems)
                    sums.problems.push_back(one_line(
                        fmt::format("{}: document '{}': row {}: expected finite numbers, found NaN or infinity", source,
                                    set.id(i), first + r)));
                continue;
            }
            const double norm = std::sqrt(squares);
            sums.zeros += squares == 0 ? 1 : 0;
            sums.least = std::min(sums.least, norm);
            sums.most = std::max(sums.most, norm);
            sums.sum += norm;
            ++sums.vectors;
        }
    }
    release_pages(v.data, v.bytes());
}

void measure_redundancy(const MultiVectorSet& set, std::size_t threads, VectorsReport& report) {
    std::vector<std::size_t> chosen;
    const std::size_t stride = std::max<std::size_t>(1, set.size() / redundancy_sample);
    for (std::size_t i = 0; i < set.size() && chosen.size() < redundancy_sample; i += stride)
        if (set.vectors_of(i) > 0 && set.vectors_of(i) <= redundancy_rows) chosen.push_back(i);
    std::vector<double> values(chosen.size());
    parallel_for(chosen.size(), threads, [&](std::size_t k) {
        const Matrix v = to_float(set.vectors(chosen[k]));
        const double rank = effective_rank(v);
        values[k] = rank > 0 ? static_cast<double>(v.rows()) / rank : 0;
    });
    double sum = 0;
    for (const double value : values) {
        if (!std::isfinite(value) || value == 0) continue;
        sum += value;
        ++report.redundancy_documents;
    }
    if (report.redundancy_documents > 0) report.redundancy = sum / static_cast<double>(report.redundancy_documents);
}

}  // namespace

VectorsReport scan_vectors(const MultiVectorSet& set, const std::string& source, std::size_t sample,
                           std::size_t threads, const Progress& progress, std::vector<std::string>& problems) {
    VectorsReport report;
    report.documents = set.size();
    report.vectors = set.total_vectors();
    report.dim = set.dim();
    report.type = to_string(set.type());
    report.has_boxes = set.has_boxes();
    report.most = set.max_vectors();
    report.fewest = set.size() > 0 ? report.most : 0;
    for (std::size_t i = 0; i < set.size(); ++i) {
        report.fewest = std::min(report.fewest, set.vectors_of(i));
        report.empty_documents += set.vectors_of(i) == 0 ? 1 : 0;
        report.with_grid += set.grid(i).known() ? 1 : 0;
        check_layout(set, i, source, problems);
    }
    const std::size_t stride = sample > 0 && sample < set.size() ? set.size() / sample : 1;
    const std::size_t count = (set.size() + stride - 1) / stride;
    const std::size_t blocks = (count + block_documents - 1) / block_documents;
    std::vector<BlockSums> sums(blocks);
    std::mutex reporting;
    std::size_t done = 0;
    parallel_for(blocks, threads, [&](std::size_t b) {
        std::vector<float> values;
        for (std::size_t k = b * block_documents; k < std::min(count, (b + 1) * block_documents); ++k)
            scan_document(set, k * stride, source, values, sums[b]);
        if (!progress) return;
        const std::lock_guard lock(reporting);
        progress({"inspect", "documents", std::min(count, ++done * block_documents), count, {}});
    });
    BlockSums total;
    for (BlockSums& s : sums) {
        total.least = std::min(total.least, s.least);
        total.most = std::max(total.most, s.most);
        total.sum += s.sum;
        total.vectors += s.vectors;
        total.zeros += s.zeros;
        for (auto& problem : s.problems)
            if (problems.size() < most_problems) problems.push_back(std::move(problem));
    }
    report.scanned = count;
    report.zero_vectors = total.zeros;
    if (total.vectors > 0) {
        report.norm_least = total.least;
        report.norm_most = total.most;
        report.norm_mean = total.sum / static_cast<double>(total.vectors);
    }
    measure_redundancy(set, threads, report);
    return report;
}

}  // namespace marginmerge
