#include "marginmerge/jobs/search.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "core/clock.h"
#include "io/atomic_file.h"
#include "io/finite_vectors.h"
#include "io/multi_vector_file.h"
#include "io/trec_run.h"
#include "kernels/maxsim.h"

namespace marginmerge {

namespace {

double recall_against(const std::vector<std::vector<Hit>>& exact, const std::vector<std::vector<Hit>>& found) {
    std::size_t wanted = 0, kept = 0;
    for (std::size_t q = 0; q < exact.size(); ++q) {
        std::set<std::size_t> positions;
        for (const Hit& h : found[q]) positions.insert(h.position);
        for (const Hit& h : exact[q]) kept += positions.count(h.position);
        wanted += exact[q].size();
    }
    return wanted > 0 ? static_cast<double>(kept) / static_cast<double>(wanted) : 1;
}

}  // namespace

SearchJobReport search_job(const SearchJobOptions& o) {
    const auto index = Index::open(o.index);
    const MultiVectorSet queries = read_finite_vectors(o.queries, o.search.threads);
    SearchJobReport report;
    report.index = index->stats();
    report.kernel = kernel_name();
    for (std::size_t q = 0; q < queries.size(); ++q) report.queries.push_back(queries.id(q));
    const auto start = Clock::now();
    report.hits = index->search_batch(queries, o.search);
    report.seconds = seconds_since(start);
    if (o.measure_recall) {
        SearchOptions exact = o.search;
        exact.first_pass = FirstPass::none;
        report.recall = recall_against(index->search_batch(queries, exact), report.hits);
    }
    return report;
}

std::string trec_run_text(const SearchJobReport& report) {
    std::string text;
    std::vector<RankedDocument> ranking;
    for (std::size_t q = 0; q < report.queries.size(); ++q) {
        ranking.clear();
        for (const Hit& h : report.hits[q]) ranking.push_back({h.id, static_cast<double>(h.score)});
        append_trec_lines(text, report.queries[q], ranking, "marginmerge");
    }
    return text;
}

std::string search_json(const SearchJobReport& report) {
    using nlohmann::ordered_json;
    ordered_json out = {{"pages", report.index.pages},
                        {"vectors", report.index.vectors},
                        {"code", to_string(report.index.code)},
                        {"kernel", report.kernel},
                        {"seconds", report.seconds}};
    if (report.recall) out["recall"] = *report.recall;
    out["results"] = ordered_json::array();
    for (std::size_t q = 0; q < report.queries.size(); ++q) {
        ordered_json hits = ordered_json::array();
        for (const Hit& h : report.hits[q]) {
            ordered_json hit = {{"id", h.id}, {"score", nullptr}};
            // JSON has no infinity: a page without vectors has the score null.
            if (std::isfinite(h.score)) hit["score"] = h.score;
            hits.push_back(std::move(hit));
        }
        out["results"].push_back({{"query", report.queries[q]}, {"hits", std::move(hits)}});
    }
    return out.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

void write_results(const std::filesystem::path& path, const std::string& text) { write_text_file(path, text); }

}  // namespace marginmerge
