// The whole lab as one HTML page that needs no network.
#include <fmt/core.h>

#include "jobs/svg_parts.h"
#include "lab/output.h"
#include "lab/statistics.h"

namespace marginmerge::lab {

namespace {

constexpr const char* style = R"(<style>
:root{--bg:#fff;--fg:#1c1f23;--soft:#5b636d;--line:#d9dee4;--card:#f6f8fa;--mine:#eef4fb;--good:#00694b;--bad:#b4440a;--open:#6a5c00}
@media(prefers-color-scheme:dark){:root{--bg:#14171b;--fg:#e6e9ee;--soft:#9aa4b0;--line:#343b44;--card:#1c2127;--mine:#1b2836;--good:#2BC79B;--bad:#F2803A;--open:#F0E442}}
*{box-sizing:border-box}body{margin:0 auto;max-width:84rem;padding:1.5rem 1rem 4rem;background:var(--bg);color:var(--fg);font:16px/1.5 system-ui,sans-serif}
h1{font-size:1.7rem;margin:0 0 .3rem}h2{font-size:1.3rem;margin:2.6rem 0 .4rem;padding-top:.8rem;border-top:1px solid var(--line)}p,li{max-width:52rem}.soft,small{color:var(--soft)}a{color:inherit}
nav{display:flex;flex-wrap:wrap;gap:.3rem 1rem;margin:1rem 0}.scroll{overflow-x:auto;margin:1rem 0}table{border-collapse:collapse;font-size:.86rem;font-variant-numeric:tabular-nums;min-width:40%}
caption{text-align:left;padding:.2rem .4rem .5rem;color:var(--soft);font-size:.9rem}caption b{color:var(--fg)}th,td{padding:.28rem .5rem;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}
th{font-weight:600;color:var(--soft)}th:first-child,td:first-child{text-align:left}th.group{text-align:center}tr.band th{text-align:center;background:var(--card);color:var(--fg)}tr.ours td{background:var(--mine)}
td.text{text-align:left;white-space:normal;min-width:14rem}.paper{display:block;color:var(--soft);font-size:.76rem;line-height:1.1}.paper::before{content:"paper "}
figure{margin:1rem 0;background:var(--card);border:1px solid var(--line);border-radius:8px;padding:.8rem;overflow-x:auto}figure svg{max-width:100%;height:auto;display:block}figcaption{color:var(--soft);font-size:.9rem;padding-top:.4rem}
.v-holds{color:var(--good);font-weight:600}.v-fails{color:var(--bad);font-weight:600}.v-open{color:var(--open);font-weight:600}.v-none{color:var(--soft)}
.counts{display:flex;flex-wrap:wrap;gap:.6rem;padding:0;list-style:none}.counts li{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:.4rem .8rem}
</style>)";

const char* verdict_class(Finding::Verdict v) {
    switch (v) {
        case Finding::Verdict::holds: return "v-holds";
        case Finding::Verdict::fails: return "v-fails";
        case Finding::Verdict::open: return "v-open";
        case Finding::Verdict::untested: break;
    }
    return "v-none";
}

// Shape as well as colour.
const char* verdict_sign(Finding::Verdict v) {
    switch (v) {
        case Finding::Verdict::holds: return "✓";
        case Finding::Verdict::fails: return "✗";
        case Finding::Verdict::open: return "~";
        case Finding::Verdict::untested: break;
    }
    return "–";
}

std::string findings_table(const std::vector<StudyOutput>& studies) {
    std::string out =
        "<div class=\"scroll\"><table><thead><tr><th>Finding</th><th>Verdict</th><th>Mean [95%]</th><th "
        "class=\"text\">Quantity</th><th>Study</th></tr></thead><tbody>\n";
    for (const auto& s : studies)
        for (const auto& f : s.findings) {
            const Interval& i = f.interval;
            std::string interval;
            if (f.verdict != Finding::Verdict::untested)
                interval = i.low == i.high ? fmt::format("{:.4f}", i.mean)
                                           : fmt::format("{:+.4f} [{:+.4f}, {:+.4f}]", i.mean, i.low, i.high);
            out += fmt::format(
                "<tr><td class=\"text\">{}</td><td class=\"{}\">{} {}</td><td>{}</td><td "
                "class=\"text\">{}{}</td><td><a href=\"#{}\">{}</a></td></tr>\n",
                html_escape(f.statement), verdict_class(f.verdict), verdict_sign(f.verdict), to_string(f.verdict),
                interval, html_escape(f.quantity), f.note.empty() ? "" : "; " + html_escape(f.note), html_escape(s.id),
                html_escape(s.id));
        }
    return out + "</tbody></table></div>\n";
}

std::string counts(const std::vector<StudyOutput>& studies) {
    std::size_t number[4] = {};
    for (const auto& s : studies)
        for (const auto& f : s.findings) ++number[static_cast<std::size_t>(f.verdict)];
    std::string out = "<ul class=\"counts\">";
    for (const auto v :
         {Finding::Verdict::holds, Finding::Verdict::fails, Finding::Verdict::open, Finding::Verdict::untested})
        out += fmt::format("<li><span class=\"{}\">{} {}</span> {}</li>", verdict_class(v), verdict_sign(v),
                           to_string(v), number[static_cast<std::size_t>(v)]);
    return out + "</ul>\n";
}

std::string datasets_table(const Workbench& bench) {
    Table t;
    t.title = "Data.";
    t.caption =
        "Redundancy: vectors over effective rank, mean over pages. Split: given = by the dataset's own files; "
        "documents = the paper's (30% of the documents and "
        "all queries about them are judged); queries = 30% of the queries are judged.";
    t.head = "Dataset";
    t.columns = {"documents", "vectors a page", "dim",     "train queries", "test queries",
                 "split",     "labels",         "encoder", "redundancy",    "nDCG@5, full"};
    for (const auto& d : bench.datasets()) {
        const auto cell = [](std::string text) { return Cell{std::move(text), {}}; };
        t.rows.push_back({d->name(),
                          {cell(std::to_string(d->documents.size())), cell(fmt::format("{:.0f}", d->mean_vectors())),
                           cell(std::to_string(d->documents.dim())), cell(std::to_string(d->train.size())),
                           cell(std::to_string(d->test.size())), cell(d->split), cell(d->labels ? "yes" : "no"),
                           cell(d->source.encoder.empty() ? "own" : d->source.encoder),
                           cell(fmt::format("{:.1f}", d->redundancy)), cell(short_number(mean(d->full_ndcg)))},
                          false,
                          false});
    }
    return to_html(t);
}

}  // namespace

std::string html_report(const std::vector<StudyOutput>& studies, const Workbench& bench,
                        const nlohmann::json& provenance) {
    std::string out =
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
        "content=\"width=device-width,initial-scale=1\">"
        "<meta name=\"color-scheme\" content=\"light dark\"><title>MarginMerge lab</title>\n";
    out += style;
    out += "</head><body>\n<h1>MarginMerge lab: what holds on this data</h1>\n";
    out += fmt::format(
        "<p class=\"soft\">{}, build {}, {} kernels{}. Small grey numbers are the paper's for the same cell; in the "
        "average column they are the paper's "
        "average over its own six datasets.</p>\n",
        html_escape(provenance.value("tool", "")), html_escape(provenance.value("build", "")),
        html_escape(provenance.value("kernel", "")),
        provenance.value("quick", false) ? ", quick settings: small data, too few queries for firm verdicts" : "");
    out += "<nav><a href=\"#findings\">findings</a>";
    for (const auto& s : studies)
        out += fmt::format("<a href=\"#{0}\">{1}</a>", html_escape(s.id), html_escape(s.title));
    out += "</nav>\n" + datasets_table(bench);
    out +=
        "<h2 id=\"findings\">Findings</h2>\n<p>Each claim with the interval that decides it (95%, paired bootstrap; "
        "several datasets: mean over datasets, each resampled "
        "by itself). <i>Holds</i> and <i>does not hold</i> need an interval that excludes the opposite; everything "
        "else is <i>not decided</i>.</p>\n";
    out += counts(studies) + findings_table(studies);
    for (const auto& s : studies) {
        out += fmt::format("<h2 id=\"{}\">{}</h2>\n<p>{}</p>\n", html_escape(s.id), html_escape(s.title),
                           html_escape(s.summary));
        for (const auto& f : s.figures)
            out += "<figure>" + f.svg + "<figcaption>" + html_escape(f.caption) + "</figcaption></figure>\n";
        for (const auto& t : s.tables) out += to_html(t);
        if (!s.notes.empty()) {
            out += "<ul class=\"soft\">";
            for (const auto& n : s.notes) out += "<li>" + html_escape(n) + "</li>";
            out += "</ul>\n";
        }
    }
    return out + "</body></html>\n";
}

}  // namespace marginmerge::lab
