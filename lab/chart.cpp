#include "lab/chart.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "jobs/svg_parts.h"

namespace marginmerge::lab {

namespace {

constexpr double left = 58, right = 16, top = 30, plot_bottom = 218;
constexpr std::size_t styles = 8;

// Okabe and Ito's colours; on dark ground the two darkest are lightened, black becomes white.
constexpr const char* chart_style = R"(<style>
.mm{--fg:#1c1f23;--soft:#5b636d;--line:#dfe3e8;--ground:#fff;--c0:#0072B2;--c1:#D55E00;--c2:#009E73;--c3:#CC79A7;--c4:#E69F00;--c5:#56B4E9;--c6:#1c1f23;--c7:#8a7f00}
@media(prefers-color-scheme:dark){.mm{--fg:#e6e9ee;--soft:#9aa4b0;--line:#343b44;--ground:#14171b;--c0:#4AA8E8;--c1:#F2803A;--c2:#2BC79B;--c3:#E29CC4;--c4:#F0B429;--c5:#8ACBF0;--c6:#f2f4f7;--c7:#F0E442}}
.mm .ground{fill:var(--ground)}.mm text{font:11px system-ui,sans-serif;fill:var(--soft)}.mm text.head{font-weight:600;font-size:13px;fill:var(--fg)}.mm text.title,.mm text.name{fill:var(--fg)}
.mm .grid{stroke:var(--line)}.mm .axis{stroke:var(--soft)}.mm .reference{stroke:var(--soft);stroke-dasharray:2 3}
.mm .l0,.mm .l1,.mm .l2,.mm .l3,.mm .l4,.mm .l5,.mm .l6,.mm .l7{fill:none;stroke-width:2;stroke-linejoin:round}.mm .dash{stroke-dasharray:6 4}.mm .band{opacity:.16;stroke:none}
.mm .l0{stroke:var(--c0)}.mm .l1{stroke:var(--c1)}.mm .l2{stroke:var(--c2)}.mm .l3{stroke:var(--c3)}.mm .l4{stroke:var(--c4)}.mm .l5{stroke:var(--c5)}.mm .l6{stroke:var(--c6)}.mm .l7{stroke:var(--c7)}
.mm .f0{fill:var(--c0)}.mm .f1{fill:var(--c1)}.mm .f2{fill:var(--c2)}.mm .f3{fill:var(--c3)}.mm .f4{fill:var(--c4)}.mm .f5{fill:var(--c5)}.mm .f6{fill:var(--c6)}.mm .f7{fill:var(--c7)}.mm .whisker{stroke:var(--fg);stroke-width:1.2}
</style>)";

struct Scale {
    double x0 = 0, x1 = 1, y0 = 0, y1 = 1;
    bool log_x = false, reverse = false;
    double x(double v) const {
        double t = log_x ? std::log(v / x0) / std::log(x1 / x0) : (v - x0) / (x1 - x0);
        if (reverse) t = 1 - t;
        return left + t * (panel_width - left - right);
    }
    double y(double v) const { return plot_bottom - (v - y0) / (y1 - y0) * (plot_bottom - top); }
};

Scale scale_of(const Chart& chart) {
    Scale s;
    s.log_x = chart.log_x;
    s.reverse = chart.reverse_x;
    bool first = true;
    const auto see = [&](double x, double y) {
        if (!std::isfinite(x) || !std::isfinite(y)) return;
        if (first) s.x0 = s.x1 = x, s.y0 = s.y1 = y;
        first = false;
        s.x0 = std::min(s.x0, x), s.x1 = std::max(s.x1, x);
        s.y0 = std::min(s.y0, y), s.y1 = std::max(s.y1, y);
    };
    for (const auto& l : chart.lines)
        for (std::size_t i = 0; i < l.x.size(); ++i) {
            see(l.x[i], l.y[i]);
            if (!l.low.empty()) see(l.x[i], l.low[i]), see(l.x[i], l.high[i]);
        }
    if (first) return {};
    if (chart.reference) see(s.x0, *chart.reference);
    const double pad = std::max((s.y1 - s.y0) * 0.08, 1e-3);
    s.y0 = chart.y_low.value_or(s.y0 - pad);
    s.y1 = chart.y_high.value_or(s.y1 + pad);
    if (chart.log_x) {
        const double stretch = std::max(std::pow(s.x1 / s.x0, 0.06), 1.05);
        s.x0 /= stretch, s.x1 *= stretch;
    } else {
        const double stretch = std::max((s.x1 - s.x0) * 0.06, 1e-6);
        s.x0 -= stretch, s.x1 += stretch;
    }
    return s;
}

std::string axes(const Chart& chart, const Scale& s) {
    std::string out;
    for (const double t : linear_ticks(s.y0, s.y1, 5)) {
        out += panel_line(left, s.y(t), panel_width - right, s.y(t), "grid");
        out += panel_text(left - 7, s.y(t) + 4, "end", number_text(t));
    }
    auto ticks = chart.x_ticks;
    if (ticks.empty()) ticks = chart.log_x ? log_ticks(s.x0, s.x1) : linear_ticks(s.x0, s.x1, 5);
    std::vector<double> used;
    for (const double t : ticks) {
        const double x = s.x(t);
        if (std::any_of(used.begin(), used.end(), [&](double u) { return std::fabs(u - x) < 30; })) continue;
        used.push_back(x);
        out += panel_line(x, plot_bottom, x, plot_bottom + 4, "axis");
        out += panel_text(x, plot_bottom + 16, "middle", chart.percent_x ? number_text(t * 100) + "%" : number_text(t));
    }
    out += panel_line(left, plot_bottom, panel_width - right, plot_bottom, "axis");
    if (chart.reference)
        out += panel_line(left, s.y(*chart.reference), panel_width - right, s.y(*chart.reference), "reference");
    out += panel_text((left + panel_width - right) / 2, plot_bottom + 33, "middle", chart.x_title, "title");
    out += fmt::format(
        "<text class=\"title\" transform=\"translate(13 {:.0f}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
        (plot_bottom + top) / 2, html_escape(chart.y_title));
    return out + panel_text(left, 17, "start", chart.title, "head");
}

std::string band_path(const Line& l, const Scale& s) {
    std::string points;
    for (std::size_t i = 0; i < l.x.size(); ++i) points += fmt::format("{:.1f},{:.1f} ", s.x(l.x[i]), s.y(l.low[i]));
    for (std::size_t i = l.x.size(); i-- > 0;) points += fmt::format("{:.1f},{:.1f} ", s.x(l.x[i]), s.y(l.high[i]));
    return fmt::format("<polygon class=\"band f{}\" points=\"{}\"/>", l.style % styles, points);
}

}  // namespace

std::string panel_text(double x, double y, const char* anchor, const std::string& text, const char* kind) {
    return fmt::format("<text class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>", kind, x, y, anchor,
                       html_escape(text));
}

std::string panel_line(double x1, double y1, double x2, double y2, const char* kind) {
    return fmt::format("<line class=\"{}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>", kind, x1, y1, x2,
                       y2);
}

std::string marker(std::size_t number, double x, double y, const std::string& hint) {
    const std::size_t s = number % styles;
    const std::string end = hint.empty() ? "/>" : "><title>" + html_escape(hint) + "</title>";
    const auto shape = [&](const std::string& name, const std::string& attributes) {
        return fmt::format("<{} class=\"f{}\" {}{}", name, s, attributes, end) +
               (hint.empty() ? "" : "</" + name + ">");
    };
    const auto polygon = [&](std::initializer_list<std::pair<double, double>> corners) {
        std::string points;
        for (const auto& [dx, dy] : corners) points += fmt::format("{:.1f},{:.1f} ", x + dx, y + dy);
        return shape("polygon", "points=\"" + points + "\"");
    };
    switch (s % 4) {
        case 0: return shape("circle", fmt::format("cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.8\"", x, y));
        case 1:
            return shape("rect", fmt::format("x=\"{:.1f}\" y=\"{:.1f}\" width=\"7\" height=\"7\"", x - 3.5, y - 3.5));
        case 2: return polygon({{0, -4.8}, {4.4, 3.4}, {-4.4, 3.4}});
        default: return polygon({{0, -5}, {5, 0}, {0, 5}, {-5, 0}});
    }
}

std::pair<std::string, double> legend(const std::vector<std::pair<std::string, std::string>>& entries,
                                      double top_edge) {
    std::string out;
    double x = left - 30, y = top_edge;
    for (const auto& [symbol, name] : entries) {
        const double width = 26 + 6.0 * static_cast<double>(name.size());
        if (x + width > panel_width - 4 && x > left - 30) x = left - 30, y += 15;
        out += fmt::format("<g transform=\"translate({:.1f} {:.1f})\">{}</g>", x, y - 4, symbol);
        out += panel_text(x + 22, y, "start", name, "name");
        x += width + 6;
    }
    return {out, y + 8 - top_edge};
}

std::string line_panel(const Chart& chart) {
    const Scale s = scale_of(chart);
    std::string out = axes(chart, s);
    for (const auto& l : chart.lines)
        if (!l.low.empty()) out += band_path(l, s);
    std::vector<std::pair<std::string, std::string>> entries;
    for (const auto& l : chart.lines) {
        std::string points;
        for (std::size_t i = 0; i < l.x.size(); ++i) points += fmt::format("{:.1f},{:.1f} ", s.x(l.x[i]), s.y(l.y[i]));
        const std::string dash = l.dashed ? " dash" : "";
        if (!l.points_only)
            out += fmt::format("<polyline class=\"l{}{}\" points=\"{}\"/>", l.style % styles, dash, points);
        for (std::size_t i = 0; i < l.x.size(); ++i) {
            out += marker(l.style, s.x(l.x[i]), s.y(l.y[i]),
                          fmt::format("{}: {} at {}", l.name, number_text(l.y[i]), number_text(l.x[i])));
            if (i < l.labels.size() && !l.labels[i].empty()) {
                const bool at_right = s.x(l.x[i]) > panel_width - 110;
                out += panel_text(s.x(l.x[i]) + (at_right ? -7 : 7), s.y(l.y[i]) - 6, at_right ? "end" : "start",
                                  l.labels[i], "name");
            }
        }
        const std::string stroke =
            l.points_only
                ? ""
                : fmt::format("<line class=\"l{}{}\" x1=\"0\" y1=\"0\" x2=\"18\" y2=\"0\"/>", l.style % styles, dash);
        if (!l.name.empty()) entries.emplace_back(stroke + marker(l.style, 9, 0, ""), l.name);
    }
    if (chart.legend && entries.size() > 1) out += legend(entries, plot_bottom + 54).first;
    return out;
}

std::string svg_document(const std::vector<std::string>& panels, const std::string& title, std::size_t columns) {
    const std::size_t across = std::min(columns, std::max<std::size_t>(panels.size(), 1));
    const std::size_t down = (panels.size() + across - 1) / across;
    const double width = panel_width * static_cast<double>(across), height = panel_height * static_cast<double>(down);
    std::string out = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"mm\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
        "role=\"img\" "
        "aria-label=\"{2}\">{3}<rect class=\"ground\" width=\"{0}\" height=\"{1}\"/>\n",
        width, height, html_escape(title), chart_style);
    for (std::size_t i = 0; i < panels.size(); ++i) {
        const std::size_t line = i / across;
        out += fmt::format("<g transform=\"translate({} {})\">{}</g>\n", panel_width * static_cast<double>(i % across),
                           panel_height * static_cast<double>(line), panels[i]);
    }
    return out + "</svg>\n";
}

}  // namespace marginmerge::lab
