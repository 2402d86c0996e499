// An evaluation for programs: JSON and CSV.
#include <fmt/core.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "marginmerge/jobs/evaluate.h"

namespace marginmerge {

namespace {

using nlohmann::ordered_json;

ordered_json to_json(const Quality& q) {
    return {{"ndcg", q.ndcg},
            {"recall_1", q.recall_1},
            {"recall_5", q.recall_5},
            {"recall_10", q.recall_10},
            {"mrr", q.reciprocal_rank}};
}

ordered_json to_json(const Interval& i) {
    return {{"mean", i.mean}, {"low", i.low}, {"high", i.high}, {"supported", i.supported}};
}

ordered_json to_json(const IndexStats& s) {
    const double pages = s.pages > 0 ? static_cast<double>(s.pages) : 1;
    return {{"pages", s.pages},
            {"vectors", s.vectors},
            {"source_vectors", s.source_vectors},
            {"kept", s.source_vectors > 0 ? static_cast<double>(s.vectors) / static_cast<double>(s.source_vectors) : 0},
            {"vectors_per_page", static_cast<double>(s.vectors) / pages},
            {"code", to_string(s.code)},
            {"bytes", s.bytes},
            {"vector_bytes", s.vector_bytes},
            {"vector_bytes_per_page", static_cast<double>(s.vector_bytes) / pages}};
}

ordered_json to_json(const Fidelity& f) {
    ordered_json bins = ordered_json::array();
    for (std::size_t b = 0; b < Fidelity::margin_bins; ++b) {
        ordered_json bin = {{"below", nullptr}, {"pairs", f.by_margin[b].pairs}, {"flips", f.by_margin[b].flips}};
        if (b + 1 < Fidelity::margin_bins) bin["below"] = Fidelity::margin_edges[b];
        bins.push_back(std::move(bin));
    }
    return {{"pairs", f.pairs},
            {"flip_rate", f.flip_rate()},
            {"reversal_rate", f.reversal_rate()},
            {"margin_error", f.mean_margin_error()},
            {"score_error", f.mean_score_error()},
            {"by_margin_per_token", std::move(bins)}};
}

ordered_json to_json(const QueryFigures& q) {
    return {
        {"query", q.query}, {"full", to_json(q.full)}, {"index", to_json(q.index)},  {"pairs", q.pairs},
        {"flips", q.flips}, {"overlap", q.overlap},    {"first_full", q.first_full}, {"first_index", q.first_index}};
}

std::string csv_field(const std::string& text) {
    if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"') out += '"';
        out += c;
    }
    return out + "\"";
}

}  // namespace

std::string evaluate_json(const EvaluateReport& r) {
    ordered_json out = {{"schema", "marginmerge.evaluation"},
                        {"version", "1"},
                        {"writer", "marginmerge " + r.version},
                        {"kernel", r.kernel},
                        {"threads", r.threads},
                        {"k", r.k},
                        {"top", r.top},
                        {"labels", r.labels},
                        {"queries", r.queries},
                        {"queries_without_relevant_pages", r.skipped},
                        {"judged_queries_not_in_file", r.unknown_queries},
                        {"full",
                         {{"path", r.full_path},
                          {"quality", to_json(r.full_quality)},
                          {"store", to_json(r.full)},
                          {"search_ms", r.full_search_ms}}}};
    out["indexes"] = ordered_json::array();
    for (const IndexFigures& f : r.indexes) {
        ordered_json per_query = ordered_json::array();
        for (const QueryFigures& q : f.per_query) per_query.push_back(to_json(q));
        out["indexes"].push_back({{"name", f.name},
                                  {"path", f.path},
                                  {"store", to_json(f.stats)},
                                  {"missing_pages", f.missing},
                                  {"quality", to_json(f.quality)},
                                  {"retention", f.retention},
                                  {"ndcg_difference", to_json(f.ndcg_difference)},
                                  {"ndcg_against_first", to_json(f.ndcg_against_first)},
                                  {"flips", to_json(f.flips)},
                                  {"fidelity", to_json(f.fidelity)},
                                  {"overlap_1", f.overlap_1},
                                  {"overlap_5", f.overlap_5},
                                  {"overlap_top", f.overlap_top},
                                  {"search_ms", f.search_ms},
                                  {"search_recall", f.search_recall},
                                  {"per_query", std::move(per_query)}});
    }
    return out.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

std::string evaluate_csv(const EvaluateReport& r) {
    std::string out =
        "index,query,ndcg_full,ndcg_index,recall_1_full,recall_1_index,recall_5_full,recall_5_index,recall_10_full,"
        "recall_10_index,rr_full,rr_index,pairs,flips,overlap,first_full,first_index\n";
    for (const IndexFigures& f : r.indexes)
        for (const QueryFigures& q : f.per_query)
            out += fmt::format(
                "{},{},{:.6f},{:.6f},{:.6f},{:.6f},{:.6f},{:.6f},{:.6f},{:.6f},{:.6f},{:.6f},{},{},{:.6f},{},{}\n",
                csv_field(f.name), csv_field(q.query), q.full.ndcg, q.index.ndcg, q.full.recall_1, q.index.recall_1,
                q.full.recall_5, q.index.recall_5, q.full.recall_10, q.index.recall_10, q.full.reciprocal_rank,
                q.index.reciprocal_rank, q.pairs, q.flips, q.overlap, csv_field(q.first_full),
                csv_field(q.first_index));
    return out;
}

}  // namespace marginmerge
