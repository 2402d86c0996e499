#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "jobs/svg_parts.h"
#include "lab/chart.h"

namespace marginmerge::lab {

std::string bar_panel(const Bars& bars) {
    constexpr double left = 58, right = 16, top = 30, bottom = 218;
    double low = 0, high = 1e-6;
    for (const auto& s : bars.series)
        for (std::size_t g = 0; g < s.values.size(); ++g) {
            if (!std::isfinite(s.values[g])) continue;
            low = std::min({low, s.values[g], s.low.empty() ? 0 : s.low[g]});
            high = std::max({high, s.values[g], s.high.empty() ? 0 : s.high[g]});
        }
    high += (high - low) * 0.06;
    if (low < 0) low -= (high - low) * 0.06;
    const auto y = [&](double v) { return bottom - (v - low) / (high - low) * (bottom - top); };
    std::string out = panel_text(left, 17, "start", bars.title, "head");
    for (const double t : linear_ticks(low, high, 5)) {
        out += panel_line(left, y(t), panel_width - right, y(t), "grid");
        out += panel_text(left - 7, y(t) + 4, "end", number_text(t));
    }
    const double slot =
        (panel_width - left - right) / static_cast<double>(std::max<std::size_t>(bars.groups.size(), 1));
    const double width = slot * 0.82 / static_cast<double>(std::max<std::size_t>(bars.series.size(), 1));
    std::vector<std::pair<std::string, std::string>> entries;
    for (std::size_t g = 0; g < bars.groups.size(); ++g) {
        const double x0 = left + slot * (static_cast<double>(g) + 0.09);
        for (std::size_t i = 0; i < bars.series.size(); ++i) {
            const auto& s = bars.series[i];
            if (g >= s.values.size() || !std::isfinite(s.values[g])) continue;
            const double x = x0 + width * static_cast<double>(i);
            out += fmt::format(
                "<rect class=\"f{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"><title>{}: "
                "{}</title></rect>",
                s.style % 8, x, std::min(y(s.values[g]), y(0)), std::max(width - 1, 1.0),
                std::fabs(y(s.values[g]) - y(0)), html_escape(s.name), number_text(s.values[g]));
            if (!s.low.empty())
                out += panel_line(x + (width - 1) / 2, y(s.low[g]), x + (width - 1) / 2, y(s.high[g]), "whisker");
        }
        const std::size_t room = std::max<std::size_t>(4, static_cast<std::size_t>(slot / 6.2));
        std::string name = bars.groups[g];
        if (name.size() > room) name = name.substr(0, room - 1) + "…";
        out += panel_text(left + slot * (static_cast<double>(g) + 0.5), bottom + 16, "middle", name);
    }
    for (const auto& s : bars.series)
        entries.emplace_back(
            fmt::format("<rect class=\"f{}\" x=\"4\" y=\"-5\" width=\"10\" height=\"10\"/>", s.style % 8), s.name);
    out += panel_line(left, y(0), panel_width - right, y(0), "axis");
    out += fmt::format(
        "<text class=\"title\" transform=\"translate(13 {:.0f}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
        (bottom + top) / 2, html_escape(bars.y_title));
    if (entries.size() > 1) out += legend(entries, bottom + 40).first;
    return out;
}

}  // namespace marginmerge::lab
