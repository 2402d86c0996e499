#include "lab/proxies.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "core/parallel.h"
#include "data/redundancy.h"
#include "kernels/convert.h"
#include "merge/baselines.h"

namespace marginmerge::lab {

Proxies page_proxies(const Dataset& data, std::size_t threads) {
    std::map<std::size_t, std::array<double, 3>> of_page;
    for (const auto& r : data.relevance)
        for (const auto p : r.positions) of_page[p] = {};
    std::vector<std::size_t> pages;
    pages.reserve(of_page.size());
    for (const auto& [p, unused] : of_page) pages.push_back(p);
    std::vector<std::array<double, 3>> found(pages.size());
    parallel_for(pages.size(), threads, [&](std::size_t i) {
        const Matrix v = to_float(data.documents.vectors(pages[i]));
        const Matrix x = selector_features(v);
        double nearest = 0;  // mean similarity to the nearest other patch
        for (std::size_t r = 0; r < v.rows(); ++r) nearest += x(r, 2) / static_cast<double>(v.rows());
        found[i] = {static_cast<double>(v.rows()), effective_rank(v), nearest};
    });
    for (std::size_t i = 0; i < pages.size(); ++i) of_page[pages[i]] = found[i];
    Proxies out;
    for (std::size_t q = 0; q < data.relevance.size(); ++q) {
        const auto& positions = data.relevance[q].positions;
        for (std::size_t j = 0; j < 3; ++j) {
            double sum = 0;
            for (const auto p : positions) sum += of_page[p][j];
            out.values[j].push_back(positions.empty() ? 0 : sum / static_cast<double>(positions.size()));
        }
        out.values[3].push_back(static_cast<double>(data.test.vectors_of(q)));
    }
    return out;
}

}  // namespace marginmerge::lab
