#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "lab/advise.h"
#include "lab/chart.h"

namespace marginmerge::lab {

std::string advice_json(const Advice& a) {
    auto points = nlohmann::json::array();
    for (const auto& p : a.points)
        points.push_back({{"keep", p.keep},
                          {"code", to_string(p.code)},
                          {"vectors_per_page", p.vectors_per_page},
                          {"bytes_per_page", p.bytes_per_page},
                          {"retention", p.retention.mean},
                          {"retention_low", p.retention.low},
                          {"flips", p.flips},
                          {"tested", p.tested},
                          {"passes", p.passes}});
    nlohmann::json j = {{"target", a.target},       {"confidence", a.confidence},
                        {"queries", a.queries},     {"documents", a.documents},
                        {"labels", a.labels},       {"method", a.method},
                        {"full_ndcg", a.full_ndcg}, {"notes", a.notes},
                        {"points", points},         {"full_bytes_per_page_f16", a.full_bytes},
                        {"best", nullptr}};
    if (a.best) j["best"] = points[*a.best];
    return j.dump(2) + "\n";
}

std::string advice_csv(const Advice& a) {
    std::string out = "keep,code,vectors_per_page,bytes_per_page,retention,retention_low,flips,tested,passes,best\n";
    for (std::size_t i = 0; i < a.points.size(); ++i) {
        const auto& p = a.points[i];
        out += fmt::format("{:g},{},{:.3f},{:.1f},{:.6f},{:.6f},{:.6f},{},{},{}\n", p.keep, to_string(p.code),
                           p.vectors_per_page, p.bytes_per_page, p.retention.mean, p.retention.low, p.flips,
                           p.tested ? 1 : 0, p.passes ? 1 : 0, a.best && *a.best == i ? 1 : 0);
    }
    return out;
}

std::string frontier_panel(const Advice& a, const std::string& title) {
    Chart chart;
    chart.title = title;
    chart.x_title = "KB a page";
    chart.y_title = a.labels ? "nDCG / full index" : "nDCG against the full index";
    chart.log_x = chart.reverse_x = true;
    chart.reference = a.target;
    for (std::size_t i = 0; i < a.points.size(); ++i) {
        const auto& p = a.points[i];
        if (chart.lines.empty() || chart.lines.back().name != to_string(p.code)) {
            chart.lines.push_back({});
            chart.lines.back().name = to_string(p.code);
            chart.lines.back().style = chart.lines.size() - 1;
        }
        Line& line = chart.lines.back();
        line.x.push_back(p.bytes_per_page / 1024);
        line.y.push_back(p.retention.mean);
        line.labels.push_back(a.best && *a.best == i ? fmt::format("{:g}%, {}", p.keep * 100, to_string(p.code)) : "");
    }
    return line_panel(chart);
}

}  // namespace marginmerge::lab
