// What each term of the objective adds: gain / flips / reversals against the fixed response centroid.
#include <fmt/core.h>

#include <algorithm>

#include "lab/aggregate.h"
#include "lab/chart.h"
#include "lab/paper.h"
#include "lab/study.h"

namespace marginmerge::lab {

namespace {

struct Variant {
    const char* preset;
    const char* label;
    const char* paper;  ///< name in the paper's table
};

constexpr Variant variants[] = {
    {"paper", "Full objective", "full"},
    {"no_listwise", "Without listwise loss", "no_listwise"},
    {"no_boundary", "Without boundary weighting", "no_boundary"},
    {"no_rank", "Without rank hinge", "no_rank"},
    {"margin", "Margin only", "margin"},
    {"score", "Score reconstruction", "score"},
};

Method variant_method(const Variant& v) {
    return parse_method(
        {{"id", v.preset}, {"label", v.label}, {"kind", "compress"}, {"preset", v.preset}, {"seeded", true}});
}

}  // namespace

StudyOutput study_losses(Workbench& bench, const StudySpec& spec) {
    StudyOutput output;
    RunSettings settings;
    settings.keep = spec.keeps.front();
    const auto wanted = spec.fields.at("variants").get<std::vector<std::string>>();
    Table table;
    table.id = spec.id;
    table.title = fmt::format("Loss-component diagnostic at {} vector retention.", percent(settings.keep));
    table.caption = spec.fields.value("caption", "");
    table.head = "Variant";
    std::vector<Figures> fixed;
    const Method response = parse_method("response");
    for (const auto& data : bench.datasets()) {
        table.columns.push_back(data->name());
        fixed.push_back(gather(bench, *data, response, settings, spec.seeds));
    }
    const auto row_of = [&](const std::string& label, const std::string& paper, const std::vector<Figures>& figures) {
        Table::Row row{label, {}, false, false};
        for (std::size_t d = 0; d < figures.size(); ++d) {
            if (!figures[d].there() || !fixed[d].there()) {
                row.cells.push_back({"–", {}});
                continue;
            }
            row.cells.push_back(
                {fmt::format("{}/{}/{}", signed_number(figures[d].mean_ndcg() - fixed[d].mean_ndcg(), 4),
                             short_number(figures[d].flip_rate(), 4), short_number(figures[d].reversal_rate(), 4)),
                 paper_cell("losses_gain", paper, settings.keep, bench.datasets()[d]->name(),
                            bench.datasets()[d]->source.encoder)});
        }
        table.rows.push_back(std::move(row));
    };
    row_of("Fixed response centroid", "response", fixed);
    Bars bars;
    bars.title = "Gain over the fixed response centroid";
    bars.y_title = "nDCG@5";
    for (const auto& data : bench.datasets()) bars.groups.push_back(data->name());
    std::vector<std::pair<std::string, std::vector<Figures>>> all;
    for (const auto& variant : variants) {
        if (std::find(wanted.begin(), wanted.end(), variant.preset) == wanted.end()) continue;
        std::vector<Figures> figures;
        for (const auto& data : bench.datasets())
            figures.push_back(gather(bench, *data, variant_method(variant), settings, spec.seeds));
        row_of(variant.label, variant.paper, figures);
        Bars::Series series{variant.label, {}, {}, {}, bars.series.size()};
        for (std::size_t d = 0; d < figures.size(); ++d) {
            const Interval i = ndcg_difference({&figures[d], 1}, {&fixed[d], 1});
            series.values.push_back(i.mean);
            series.low.push_back(i.low);
            series.high.push_back(i.high);
        }
        bars.series.push_back(std::move(series));
        all.emplace_back(variant.preset, std::move(figures));
    }
    output.tables.push_back(std::move(table));
    output.figures.push_back({spec.id + "_gains",
                              "Gain of each objective over the fixed response centroid, with 95% intervals.",
                              svg_document({bar_panel(bars)}, "Gain of each objective")});
    const auto find = [&](const char* name) -> const std::vector<Figures>* {
        for (const auto& [preset, figures] : all)
            if (preset == name) return &figures;
        return nullptr;
    };
    for (const auto& variant : variants) {
        const auto* figures = find(variant.preset);
        if (figures == nullptr) continue;
        Finding finding;
        finding.id = std::string("learned-improves-") + variant.preset;
        finding.statement =
            fmt::format("{}: learned weights keep more nDCG@5 than the fixed response centroid", variant.label);
        finding.quantity = fmt::format("nDCG@5 gain at {}", percent(settings.keep));
        finding.interval = ndcg_difference(*figures, fixed);
        finding.verdict = judge(finding.interval, Test::greater);
        output.findings.push_back(std::move(finding));
    }
    if (const auto* full = find("paper"), *margin = find("margin"); full != nullptr && margin != nullptr) {
        Finding finding;
        finding.id = "auxiliary-terms-small";
        finding.statement = "The auxiliary terms change little: full objective and margin alone keep the same nDCG@5";
        finding.quantity = "nDCG@5, full - margin only";
        finding.interval = ndcg_difference(*full, *margin);
        finding.verdict = judge(finding.interval, Test::equal);
        output.findings.push_back(std::move(finding));
    }
    return output;
}

}  // namespace marginmerge::lab
