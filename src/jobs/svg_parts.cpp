#include "jobs/svg_parts.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace marginmerge {

std::vector<double> linear_ticks(double low, double high, int count) {
    const double raw = (high - low) / count;
    const double power = std::pow(10, std::floor(std::log10(raw)));
    const double step = raw / power < 1.5   ? power
                        : raw / power < 3.5 ? 2 * power
                        : raw / power < 7.5 ? 5 * power
                                            : 10 * power;
    std::vector<double> ticks;
    if (!(step > 0)) return ticks;  // low and high are the same
    const double first = std::ceil(low / step);
    const auto steps = static_cast<int>(std::floor(high / step - first + 1e-9));
    for (int i = 0; i <= steps; ++i) ticks.push_back((first + i) * step);
    return ticks;
}

std::vector<double> log_ticks(double low, double high) {
    std::vector<double> ticks;
    const auto first = static_cast<int>(std::floor(std::log10(low)));
    const auto last = static_cast<int>(std::floor(std::log10(high)));
    for (int exponent = first; exponent <= last; ++exponent) {
        const double power = std::pow(10, exponent);
        for (const double m : {1.0, 2.0, 5.0})
            if (m * power >= low && m * power <= high) ticks.push_back(m * power);
    }
    return ticks;
}

std::string number_text(double v) {
    if (v != 0 && (std::fabs(v) >= 10000 || std::fabs(v) < 0.001)) return fmt::format("{:.3g}", v);
    return fmt::format("{:.4g}", v);
}

std::string html_escape(std::string_view text) {
    std::string out;
    for (const char c : text) {
        switch (c) {
            case '&': out += "&amp;"; break;
            case '<': out += "&lt;"; break;
            case '>': out += "&gt;"; break;
            case '"': out += "&quot;"; break;
            case '\'': out += "&#39;"; break;
            default: out += static_cast<unsigned char>(c) < 32 ? ' ' : c;
        }
    }
    return out;
}

}  // namespace marginmerge
