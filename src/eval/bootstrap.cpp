#include "marginmerge/eval/bootstrap.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/fail.h"
#include "core/numpy_random.h"

namespace marginmerge {

namespace {

// NumPy's default ("linear") percentile of sorted values.
double percentile(const std::vector<double>& sorted, double percent) {
    const double at = percent / 100 * static_cast<double>(sorted.size() - 1);
    const auto below = static_cast<std::size_t>(std::floor(at));
    const std::size_t above = std::min(below + 1, sorted.size() - 1);
    const double t = at - static_cast<double>(below);
    return sorted[below] + (sorted[above] - sorted[below]) * t;
}

// `statistic` of the drawn queries' indices, for each draw.
template <class Statistic>
void resample(Interval& result, std::size_t n, const BootstrapOptions& o, const Statistic& statistic) {
    NumpyRandom random(o.seed);
    const auto indices = random.randint(static_cast<std::int64_t>(n), o.draws * n);
    std::vector<double> values(o.draws);
    for (std::size_t i = 0; i < o.draws; ++i) values[i] = statistic(std::span(indices).subspan(i * n, n));
    std::sort(values.begin(), values.end());
    result.low = percentile(values, o.low);
    result.high = percentile(values, o.high);
    result.supported = (result.low > 0 || result.high < 0) && std::fabs(result.mean) >= o.least;
}

void check(std::size_t a, std::size_t b, const BootstrapOptions& o) {
    if (a != b || o.draws == 0)
        fail(ErrorCode::invalid_argument,
             "bootstrap: expected pairs and at least one draw, found {} and {} values, {} draws", a, b, o.draws);
}

}  // namespace

Interval paired_bootstrap(std::span<const double> a, std::span<const double> b, const BootstrapOptions& o) {
    check(a.size(), b.size(), o);
    Interval result;
    if (a.empty()) return result;
    std::vector<double> d(a.size());
    for (std::size_t i = 0; i < d.size(); ++i) {
        d[i] = a[i] - b[i];
        result.mean += d[i];
    }
    result.mean /= static_cast<double>(d.size());
    resample(result, d.size(), o, [&](std::span<const std::int64_t> drawn) {
        double sum = 0;
        for (const auto i : drawn) sum += d[static_cast<std::size_t>(i)];
        return sum / static_cast<double>(drawn.size());
    });
    return result;
}

Interval ratio_bootstrap(std::span<const double> part, std::span<const double> whole, const BootstrapOptions& o) {
    check(part.size(), whole.size(), o);
    Interval result;
    if (part.empty()) return result;
    double parts = 0, wholes = 0;
    for (std::size_t i = 0; i < part.size(); ++i) {
        parts += part[i];
        wholes += whole[i];
    }
    result.mean = wholes > 0 ? parts / wholes : 0;
    resample(result, part.size(), o, [&](std::span<const std::int64_t> drawn) {
        double p = 0, w = 0;
        for (const auto i : drawn) {
            p += part[static_cast<std::size_t>(i)];
            w += whole[static_cast<std::size_t>(i)];
        }
        return w > 0 ? p / w : 0;
    });
    return result;
}

}  // namespace marginmerge
