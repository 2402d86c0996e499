// The evaluation as one HTML page that needs no network: tables and inline SVG.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "jobs/svg_plot.h"
#include "marginmerge/jobs/evaluate.h"

namespace marginmerge {

namespace {

constexpr const char* style = R"(<style>
:root{--bg:#fff;--fg:#1c1f23;--soft:#5b636d;--line:#d9dee4;--card:#f6f8fa;--s0:#57606a;--s1:#1f6feb;--s2:#bf5b04;--s3:#1a7f37;--s4:#8250df;--s5:#bf3989;--s6:#0e7a8a;--s7:#7a6200;--s8:#8a4b3c;--s9:#2b3a8f;--bad:#c93c37;--good:#1a7f37}
@media(prefers-color-scheme:dark){:root{--bg:#14171b;--fg:#e6e9ee;--soft:#9aa4b0;--line:#343b44;--card:#1c2127;--s0:#9aa4b0;--s1:#58a6ff;--s2:#f0883e;--s3:#56d364;--s4:#bc8cff;--s5:#f778ba;--s6:#56d4dd;--s7:#e3b341;--s8:#d7a08f;--s9:#8f9dff;--bad:#ff7b72;--good:#56d364}}
*{box-sizing:border-box}body{margin:0 auto;max-width:78rem;padding:1.5rem 1rem 4rem;background:var(--bg);color:var(--fg);font:16px/1.5 system-ui,sans-serif}
h1{font-size:1.6rem;margin:0 0 .3rem}h2{font-size:1.15rem;margin:2.2rem 0 .6rem}p,li{max-width:46rem}.soft,small{color:var(--soft)}
.scroll{overflow-x:auto}table{border-collapse:collapse;width:100%;font-size:.92rem;font-variant-numeric:tabular-nums}th,td{padding:.35rem .5rem;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}
th{font-weight:600;color:var(--soft);font-size:.85rem}th:first-child,td:first-child{text-align:left}td.text{text-align:left}
figure{margin:0;background:var(--card);border:1px solid var(--line);border-radius:8px;padding:.8rem}figcaption{color:var(--soft);font-size:.9rem;padding-top:.4rem}
.plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,27rem),1fr));gap:1rem}svg{width:100%;height:auto;display:block}
svg text{font:12px system-ui,sans-serif;fill:var(--soft)}svg text.name{fill:var(--fg);font-weight:600}svg text.title{fill:var(--fg)}
svg .grid{stroke:var(--line)}svg .axis{stroke:var(--soft)}svg .bar{stroke-width:2;fill:none}svg rect.worse{fill:var(--bad)}svg rect.better{fill:var(--good)}
.s0{fill:var(--s0);stroke:var(--s0)}.s1{fill:var(--s1);stroke:var(--s1)}.s2{fill:var(--s2);stroke:var(--s2)}.s3{fill:var(--s3);stroke:var(--s3)}.s4{fill:var(--s4);stroke:var(--s4)}.s5{fill:var(--s5);stroke:var(--s5)}.s6{fill:var(--s6);stroke:var(--s6)}.s7{fill:var(--s7);stroke:var(--s7)}.s8{fill:var(--s8);stroke:var(--s8)}.s9{fill:var(--s9);stroke:var(--s9)}
rect.s0,rect.s1,rect.s2,rect.s3,rect.s4,rect.s5,rect.s6,rect.s7{stroke:none}.key{display:inline-block;width:.8rem;height:.8rem;border-radius:2px;margin-right:.4rem;vertical-align:-1px}
.b0{background:var(--s0)}.b1{background:var(--s1)}.b2{background:var(--s2)}.b3{background:var(--s3)}.b4{background:var(--s4)}.b5{background:var(--s5)}.b6{background:var(--s6)}.b7{background:var(--s7)}.b8{background:var(--s8)}.b9{background:var(--s9)}
.loss{color:var(--bad);font-weight:600}.gain{color:var(--good);font-weight:600}dl{display:grid;grid-template-columns:max-content 1fr;gap:.2rem 1rem}dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}
</style>)";

double bytes_per_page(const IndexStats& s) {
    return s.pages > 0 ? static_cast<double>(s.vector_bytes) / static_cast<double>(s.pages) : 0;
}

double kept(const IndexStats& s) {
    return s.source_vectors > 0 ? static_cast<double>(s.vectors) / static_cast<double>(s.source_vectors) : 0;
}

std::string row(const std::vector<std::string>& cells, const char* tag = "td") {
    std::string out = "<tr>";
    for (const auto& c : cells) out += fmt::format("<{0}>{1}</{0}>", tag, c);
    return out + "</tr>\n";
}

std::string name_cell(const std::string& name, std::size_t series) {
    return fmt::format("<span class=\"key b{}\"></span>{}", series % series_colours, html_escape(name));
}

std::string interval(const Interval& i) { return fmt::format("{:+.4f} [{:+.4f}, {:+.4f}]", i.mean, i.low, i.high); }

std::string summary(const EvaluateReport& r) {
    std::string out = "<div class=\"scroll\"><table><thead>";
    out += row({"index", fmt::format("nDCG@{}", r.k), "of full", "difference, 95%", "flips", "95%", "KB a page",
                "vectors kept", "code", "search, ms"},
               "th");
    out += "</thead><tbody>";
    out += row({name_cell("full", 0), fmt::format("{:.4f}", r.full_quality.ndcg), "1", "", "0", "",
                fmt::format("{:.1f}", bytes_per_page(r.full) / 1024), fmt::format("{:.1f}%", 100 * kept(r.full)),
                to_string(r.full.code), fmt::format("{:.2f}", r.full_search_ms)});
    for (std::size_t i = 0; i < r.indexes.size(); ++i) {
        const IndexFigures& f = r.indexes[i];
        const std::string difference = interval(f.ndcg_difference);
        out += row(
            {name_cell(f.name, i + 1), fmt::format("{:.4f}", f.quality.ndcg), fmt::format("{:.1f}%", 100 * f.retention),
             f.ndcg_difference.supported
                 ? fmt::format("<span class=\"{}\">{}</span>", f.ndcg_difference.mean < 0 ? "loss" : "gain", difference)
                 : difference,
             fmt::format("{:.4f}", f.fidelity.flip_rate()), fmt::format("[{:.4f}, {:.4f}]", f.flips.low, f.flips.high),
             fmt::format("{:.2f}", bytes_per_page(f.stats) / 1024), fmt::format("{:.1f}%", 100 * kept(f.stats)),
             to_string(f.stats.code), fmt::format("{:.2f}", f.search_ms)});
    }
    return out + "</tbody></table></div>\n";
}

std::string details(const EvaluateReport& r) {
    std::string out = "<h2>More measures</h2><div class=\"scroll\"><table><thead>";
    out += row({"index", "recall@1", "recall@5", "recall@10", "MRR", "reversals", "margin error", "score error",
                "same first", "overlap@5", fmt::format("overlap@{}", r.top), "pages missing"},
               "th");
    out += "</thead><tbody>";
    const Quality& q = r.full_quality;
    out +=
        row({name_cell("full", 0), fmt::format("{:.4f}", q.recall_1), fmt::format("{:.4f}", q.recall_5),
             fmt::format("{:.4f}", q.recall_10), fmt::format("{:.4f}", q.reciprocal_rank), "", "", "", "", "", "", ""});
    for (std::size_t i = 0; i < r.indexes.size(); ++i) {
        const IndexFigures& f = r.indexes[i];
        out += row({name_cell(f.name, i + 1), fmt::format("{:.4f}", f.quality.recall_1),
                    fmt::format("{:.4f}", f.quality.recall_5), fmt::format("{:.4f}", f.quality.recall_10),
                    fmt::format("{:.4f}", f.quality.reciprocal_rank), fmt::format("{:.4f}", f.fidelity.reversal_rate()),
                    fmt::format("{:.4f}", f.fidelity.mean_margin_error()),
                    fmt::format("{:.4f}", f.fidelity.mean_score_error()), fmt::format("{:.1f}%", 100 * f.overlap_1),
                    fmt::format("{:.1f}%", 100 * f.overlap_5), fmt::format("{:.1f}%", 100 * f.overlap_top),
                    std::to_string(f.missing)});
    }
    return out + "</tbody></table></div>\n";
}

std::string quality_plot(const EvaluateReport& r) {
    std::vector<PlotPoint> points;
    points.push_back(
        {bytes_per_page(r.full) / 1024, r.full_quality.ndcg, r.full_quality.ndcg, r.full_quality.ndcg, "full", 0});
    for (std::size_t i = 0; i < r.indexes.size(); ++i) {
        const IndexFigures& f = r.indexes[i];
        const double base = r.full_quality.ndcg;
        points.push_back({bytes_per_page(f.stats) / 1024, f.quality.ndcg, base + f.ndcg_difference.low,
                          base + f.ndcg_difference.high, f.name, i + 1});
    }
    return "<figure>" + scatter_plot(points, {"KB a page (vectors, logarithmic)", fmt::format("nDCG@{}", r.k), true}) +
           "<figcaption>Quality against bytes. Bars: 95% interval of the difference from the full "
           "index.</figcaption></figure>";
}

std::string flips_plot(const EvaluateReport& r) {
    std::vector<std::string> groups;
    for (const double edge : Fidelity::margin_edges) groups.push_back(fmt::format("<{:g}", edge));
    groups.push_back(fmt::format("{:g}+", Fidelity::margin_edges[Fidelity::margin_bins - 2]));
    std::vector<std::vector<double>> values;
    std::vector<std::vector<std::string>> notes;
    for (const IndexFigures& f : r.indexes) {
        values.emplace_back();
        notes.emplace_back();
        for (std::size_t b = 0; b < Fidelity::margin_bins; ++b) {
            const auto& bin = f.fidelity.by_margin[b];
            values.back().push_back(bin.pairs > 0 ? static_cast<double>(bin.flips) / static_cast<double>(bin.pairs)
                                                  : 0);
            notes.back().push_back(fmt::format("{}: {} of {} pairs flipped", f.name, bin.flips, bin.pairs));
        }
    }
    return "<figure>" +
           bar_plot(groups, values, notes,
                    {"|margin| in the full index, a query token", "share of pairs flipped", false}) +
           "<figcaption>Flips by margin: pairs the full index hardly told apart flip first; flips on the right cost "
           "quality.</figcaption></figure>";
}

std::string changed_queries(const EvaluateReport& r) {
    std::string out = "<h2>Queries that changed most</h2><div class=\"plots\">";
    for (const IndexFigures& f : r.indexes) {
        std::vector<const QueryFigures*> order;
        for (const auto& q : f.per_query) order.push_back(&q);
        const auto change = [&](const QueryFigures* q) {
            return r.labels ? std::fabs(q->index.ndcg - q->full.ndcg) : 1 - q->overlap;
        };
        std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return change(a) > change(b); });
        std::vector<DivergingBar> bars;
        for (const auto* q : order) {
            if (bars.size() == 15 || change(q) == 0) break;
            bars.push_back(
                {q->query, r.labels ? q->index.ndcg - q->full.ndcg : q->overlap - 1,
                 fmt::format("{}: nDCG {:.3f} -> {:.3f}, overlap {:.2f}, first page {} -> {}, {} of {} pairs flipped",
                             q->query, q->full.ndcg, q->index.ndcg, q->overlap, q->first_full, q->first_index, q->flips,
                             q->pairs)});
        }
        const std::string title =
            r.labels ? fmt::format("change of nDCG@{}", r.k) : fmt::format("overlap@{} - 1", r.top);
        out += "<figure>" + (bars.empty() ? "<p>No query changed.</p>" : diverging_plot(bars, title)) + "<figcaption>" +
               html_escape(f.name) + ": point at a bar for its pages.</figcaption></figure>";
    }
    return out + "</div>\n";
}

std::string against_first(const EvaluateReport& r) {
    if (r.indexes.size() < 2) return {};
    std::string out = "<h2>Against " + html_escape(r.indexes[0].name) + "</h2><div class=\"scroll\"><table><thead>";
    out += row({"index", fmt::format("difference of nDCG@{}, 95%", r.k), "supported"}, "th") + "</thead><tbody>";
    for (std::size_t i = 1; i < r.indexes.size(); ++i)
        out += row({name_cell(r.indexes[i].name, i + 1), interval(r.indexes[i].ndcg_against_first),
                    r.indexes[i].ndcg_against_first.supported ? "yes" : "no"});
    return out + "</tbody></table></div>\n";
}

}  // namespace

std::string evaluate_html(const EvaluateReport& r) {
    std::string out =
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
        "content=\"width=device-width,initial-scale=1\"><meta name=\"color-scheme\" content=\"light dark\">"
        "<title>MarginMerge evaluation</title>\n";
    out += style;
    out += "</head><body>\n<h1>How much ranking survived</h1>\n";
    out += fmt::format(
        "<p class=\"soft\">{} queries judged {}; {} pages; MarginMerge {}, {} kernels, {} threads.</p>\n", r.queries,
        r.labels ? "with relevance labels"
                 : fmt::format("without labels: the full index's first {} count as relevant", r.top),
        r.full.pages, r.version, r.kernel, r.threads);
    out += summary(r);
    out +=
        "<p><small>Flips: share of (relevant, other) pairs that the index orders differently from the full one. A "
        "difference in colour is supported, a loss red and a gain green: its interval excludes zero and it is at least "
        "0.005. KB count vectors only. Search: median of single searches, all timed in this run.</small></p>\n";
    out += "<div class=\"plots\">" + quality_plot(r) + flips_plot(r) + "</div>\n";
    out += against_first(r);
    out += changed_queries(r);
    out += details(r);
    out += "<h2>Data</h2><dl>";
    const auto item = [&](const char* name, const std::string& value) {
        out += fmt::format("<dt>{}</dt><dd>{}</dd>", name, html_escape(value));
    };
    item("full documents", r.full_path);
    item("queries", r.queries_path);
    if (r.labels) item("judgements", r.qrels_path);
    for (const auto& f : r.indexes) item(html_escape(f.name).c_str(), f.path);
    if (r.skipped > 0) item("left out", fmt::format("{} queries without a relevant page", r.skipped));
    return out + "</dl>\n</body></html>\n";
}

}  // namespace marginmerge
