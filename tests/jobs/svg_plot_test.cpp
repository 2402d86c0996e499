#include "jobs/svg_plot.h"

#include <gtest/gtest.h>

#include <string>

namespace marginmerge {
namespace {

// How far down the label with this text stands.
double height_of(const std::string& svg, const std::string& label) {
    const auto text = svg.find(">" + label + "</text>");
    EXPECT_NE(text, std::string::npos) << label;
    const auto y = svg.rfind(" y=\"", text);
    return std::stod(svg.substr(y + 4));
}

TEST(SvgPlot, LabelsOfPointsThatAreCloseStandInTheirOrder) {
    const PlotPoint low{10, 0.700, 0.700, 0.700, "low", 1}, high{10, 0.705, 0.705, 0.705, "high", 2};
    const PlotPoint far{10, 0.2, 0.2, 0.2, "far", 3};
    for (const auto& points : {std::vector{low, high, far}, std::vector{high, far, low}}) {
        const std::string svg = scatter_plot(points, {"x", "y", true});
        EXPECT_LE(height_of(svg, "high") + 13, height_of(svg, "low"));
        EXPECT_LT(height_of(svg, "low"), height_of(svg, "far"));
    }
}

}  // namespace
}  // namespace marginmerge
