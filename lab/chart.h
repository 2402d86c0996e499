#pragma once

#include <optional>
#include <string>
#include <vector>

namespace marginmerge::lab {

// Figures as standalone SVG: colours are CSS variables that follow the reader's light or dark scheme, series differ in
// colour (Okabe and Ito's palette), marker and dash, so that no reader depends on colour alone.

struct Line {
    std::string name;
    std::vector<double> x, y;
    std::vector<double> low, high;  ///< band around y; empty: none
    std::size_t style = 0;          ///< colour and marker
    bool dashed = false;
    bool points_only = false;
    std::vector<std::string> labels;  ///< beside the points; empty: none
};

struct Chart {
    std::string title, x_title, y_title;
    std::vector<Line> lines;
    bool log_x = false;
    bool reverse_x = false;           ///< larger values on the left: compression grows to the right
    std::vector<double> x_ticks;      ///< empty: chosen
    bool percent_x = false;           ///< 0.05 is printed as 5%
    std::optional<double> reference;  ///< a horizontal line, for example 1
    std::optional<double> y_low, y_high;
    bool legend = true;
};

struct Bars {
    struct Series {
        std::string name;
        std::vector<double> values;     ///< by group; NaN: none
        std::vector<double> low, high;  ///< empty: no whiskers
        std::size_t style = 0;
    };
    std::string title, y_title;
    std::vector<std::string> groups;
    std::vector<Series> series;
};

/// One panel, 420 x 320 user units, as an SVG group.
std::string line_panel(const Chart& chart);
std::string bar_panel(const Bars& bars);

/// Panels side by side (at most `columns` in a row) as one SVG document.
std::string svg_document(const std::vector<std::string>& panels, const std::string& title, std::size_t columns = 3);

inline constexpr double panel_width = 420, panel_height = 320;

// Shared by the panels.
std::string panel_text(double x, double y, const char* anchor, const std::string& text, const char* kind = "label");
std::string panel_line(double x1, double y1, double x2, double y2, const char* kind);
std::string marker(std::size_t style, double x, double y, const std::string& hint);
/// Names of series below the plot; returns its SVG and the height it takes.
std::pair<std::string, double> legend(const std::vector<std::pair<std::string, std::string>>& entries, double top);

}  // namespace marginmerge::lab
