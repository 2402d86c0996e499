#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace marginmerge {

// What every drawing of ours is made of.

/// Text that is safe inside HTML and SVG.
std::string html_escape(std::string_view text);

/// Round steps (1, 2, 5 x 10^n) that give about `count` ticks over [low, high], low < high.
std::vector<double> linear_ticks(double low, double high, int count);
/// 1, 2, 5 of every power of ten in [low, high]; low > 0.
std::vector<double> log_ticks(double low, double high);

/// A number for an axis.
std::string number_text(double value);

}  // namespace marginmerge
