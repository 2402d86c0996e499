#pragma once

#include <string>
#include <vector>

#include "jobs/svg_parts.h"

namespace marginmerge {

/// Classes s0 to s9; a further series takes the first colour again.
constexpr std::size_t series_colours = 10;

/// Plots as inline SVG. Colours come from the page's CSS (classes s0, s1, … for series, axis, grid,
/// label), so that light and dark need no second drawing.
struct PlotPoint {
    double x = 0, y = 0;
    double low = 0, high = 0;  ///< interval of y, equal when there is none
    std::string label;
    std::size_t series = 0;
};

struct PlotAxes {
    std::string x_title, y_title;
    bool log_x = false;
};

/// Points with error bars and direct labels.
std::string scatter_plot(const std::vector<PlotPoint>& points, const PlotAxes& axes);

/// Groups of bars: values[series][group], drawn side by side in the colours from s1 on; `notes` (same shape) are shown
/// on hover.
std::string bar_plot(const std::vector<std::string>& groups, const std::vector<std::vector<double>>& values,
                     const std::vector<std::vector<std::string>>& notes, const PlotAxes& axes);

/// Horizontal bars around zero with a label each.
struct DivergingBar {
    std::string label;
    double value = 0;
    std::string note;
};
std::string diverging_plot(const std::vector<DivergingBar>& bars, const std::string& title);

}  // namespace marginmerge
