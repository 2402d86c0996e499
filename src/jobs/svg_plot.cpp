#include "jobs/svg_plot.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace marginmerge {

namespace {

constexpr double width = 640, height = 340, left = 64, right = 24, top = 16, bottom = 52;

struct Frame {
    double x0, x1, y0, y1;
    bool log_x;
    double x(double v) const {
        const double t = log_x ? (std::log(v) - std::log(x0)) / (std::log(x1) - std::log(x0)) : (v - x0) / (x1 - x0);
        return left + t * (width - left - right);
    }
    double y(double v) const { return height - bottom - (v - y0) / (y1 - y0) * (height - top - bottom); }
};

std::string open_svg(const std::string& title, double total_height = height) {
    return fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">", width, total_height,
                       html_escape(title));
}

std::string text_at(double x, double y, const char* anchor, const std::string& text, const char* kind = "label") {
    return fmt::format("<text class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>", kind, x, y, anchor,
                       html_escape(text));
}

std::string line(double x1, double y1, double x2, double y2, const char* kind) {
    return fmt::format("<line class=\"{}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>", kind, x1, y1, x2,
                       y2);
}

std::string y_axis(const Frame& f, const std::string& title) {
    std::string out;
    for (const double t : linear_ticks(f.y0, f.y1, 5)) {
        out += line(left, f.y(t), width - right, f.y(t), "grid");
        out += text_at(left - 8, f.y(t) + 4, "end", number_text(t));
    }
    out += fmt::format(
        "<text class=\"title\" transform=\"translate(14 {:.0f}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
        (height - bottom + top) / 2, html_escape(title));
    return out;
}

}  // namespace

std::string scatter_plot(const std::vector<PlotPoint>& points, const PlotAxes& axes) {
    if (points.empty()) return {};
    Frame f{points[0].x, points[0].x, points[0].low, points[0].high, axes.log_x};
    for (const auto& p : points) {
        f.x0 = std::min(f.x0, p.x);
        f.x1 = std::max(f.x1, p.x);
        f.y0 = std::min({f.y0, p.low, p.y});
        f.y1 = std::max({f.y1, p.high, p.y});
    }
    const double pad = std::max((f.y1 - f.y0) * 0.12, 1e-3);
    f.y0 -= pad;
    f.y1 += pad;
    f.x0 = axes.log_x ? std::max(f.x0, 1e-9) / 1.3 : f.x0 - 1;
    f.x1 = axes.log_x ? std::max(f.x1, 1e-9) * 1.3 : f.x1 + 1;
    std::string out = open_svg(axes.y_title + " against " + axes.x_title) + y_axis(f, axes.y_title);
    double last_tick = -100;
    for (const double t : axes.log_x ? log_ticks(f.x0, f.x1) : linear_ticks(f.x0, f.x1, 6)) {
        out += line(f.x(t), height - bottom, f.x(t), height - bottom + 5, "axis");
        if (f.x(t) - last_tick < 44) continue;
        out += text_at(f.x(t), height - bottom + 18, "middle", number_text(t));
        last_tick = f.x(t);
    }
    out += line(left, height - bottom, width - right, height - bottom, "axis");
    out += text_at((left + width - right) / 2, height - 8, "middle", axes.x_title, "title");
    // Labels go above their point, and below the label of a higher point that is close: from top to bottom, so that
    // they stand in the order of their points.
    std::vector<std::pair<double, double>> placed;
    std::vector<PlotPoint> falling(points);
    std::stable_sort(falling.begin(), falling.end(), [](const PlotPoint& a, const PlotPoint& b) { return a.y > b.y; });
    for (const auto& p : falling) {
        const double x = f.x(p.x), y = f.y(p.y);
        const auto series = p.series % series_colours;
        if (p.low < p.high)
            out += fmt::format("<line class=\"bar s{}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>",
                               series, x, f.y(p.low), x, f.y(p.high));
        out += fmt::format(
            "<circle class=\"point s{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5\"><title>{}: {} at {}</title></circle>",
            series, x, y, html_escape(p.label), number_text(p.y), number_text(p.x));
        const bool at_right = x > width - right - 110;
        double ly = y - 10;
        for (const auto& [px, py] : placed)
            if (std::fabs(px - x) < 110 && std::fabs(py - ly) < 13) ly = std::max(ly, py) + 14;
        placed.emplace_back(x, ly);
        out += text_at(at_right ? x - 8 : x + 8, ly, at_right ? "end" : "start", p.label, "name");
    }
    return out + "</svg>";
}

std::string bar_plot(const std::vector<std::string>& groups, const std::vector<std::vector<double>>& values,
                     const std::vector<std::vector<std::string>>& notes, const PlotAxes& axes) {
    double most = 1e-6;
    for (const auto& series : values)
        for (const double v : series) most = std::max(most, v);
    const Frame f{0, static_cast<double>(groups.size()), 0, most * 1.08, false};
    std::string out = open_svg(axes.y_title + " by " + axes.x_title) + y_axis(f, axes.y_title);
    const double slot = (width - left - right) / static_cast<double>(std::max<std::size_t>(groups.size(), 1));
    const double bar = slot * 0.8 / static_cast<double>(std::max<std::size_t>(values.size(), 1));
    for (std::size_t g = 0; g < groups.size(); ++g) {
        const double x = left + slot * static_cast<double>(g);
        for (std::size_t s = 0; s < values.size(); ++s)
            out += fmt::format(
                "<rect class=\"s{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" "
                "height=\"{:.1f}\"><title>{}</title></rect>",
                (s + 1) % series_colours, x + slot * 0.1 + bar * static_cast<double>(s), f.y(values[s][g]),
                std::max(bar - 1, 1.0), f.y(0) - f.y(values[s][g]), html_escape(notes[s][g]));
        out += text_at(x + slot / 2, height - bottom + 18, "middle", groups[g]);
    }
    out += line(left, f.y(0), width - right, f.y(0), "axis");
    return out + text_at((left + width - right) / 2, height - 8, "middle", axes.x_title, "title") + "</svg>";
}

std::string diverging_plot(const std::vector<DivergingBar>& bars, const std::string& title) {
    double most = 0.05;
    for (const auto& b : bars) most = std::max(most, std::fabs(b.value));
    constexpr double row = 20, label_width = 150;
    const double total = row * static_cast<double>(bars.size()) + 28;
    const double middle = label_width + (width - label_width - 60) / 2, unit = (width - label_width - 190) / 2 / most;
    std::string out = open_svg(title, total);
    for (std::size_t i = 0; i < bars.size(); ++i) {
        const auto& b = bars[i];
        const double y = 6 + row * static_cast<double>(i), w = std::fabs(b.value) * unit;
        out += text_at(label_width - 8, y + 13, "end", b.label.size() > 22 ? b.label.substr(0, 20) + ".." : b.label);
        out += fmt::format(
            "<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"14\"><title>{}</title></rect>",
            b.value < 0 ? "worse" : "better", b.value < 0 ? middle - w : middle, y + 2, std::max(w, 0.5),
            html_escape(b.note));
        out += text_at(b.value < 0 ? middle - w - 5 : middle + w + 5, y + 13, b.value < 0 ? "end" : "start",
                       fmt::format("{:+.3f}", b.value));
    }
    out += line(middle, 2, middle, total - 22, "axis");
    return out + text_at(middle, total - 6, "middle", title, "title") + "</svg>";
}

}  // namespace marginmerge
