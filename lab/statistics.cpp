#include "lab/statistics.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "core/numpy_random.h"

namespace marginmerge::lab {

namespace {

std::vector<double> ranks(std::span<const double> values) {
    std::vector<std::size_t> order(values.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return values[a] < values[b]; });
    std::vector<double> out(values.size());
    for (std::size_t i = 0; i < order.size();) {
        std::size_t end = i + 1;
        while (end < order.size() && values[order[end]] == values[order[i]]) ++end;
        for (std::size_t j = i; j < end; ++j) out[order[j]] = static_cast<double>(i + end - 1) / 2;
        i = end;
    }
    return out;
}

double percentile(const std::vector<double>& sorted, double percent) {
    const double at = percent / 100 * static_cast<double>(sorted.size() - 1);
    const auto below = static_cast<std::size_t>(at);
    const std::size_t above = std::min(below + 1, sorted.size() - 1);
    return sorted[below] + (sorted[above] - sorted[below]) * (at - static_cast<double>(below));
}

void set_interval(Interval& interval, std::vector<double> values, const BootstrapOptions& o) {
    std::sort(values.begin(), values.end());
    interval.low = percentile(values, o.low);
    interval.high = percentile(values, o.high);
    interval.supported = (interval.low > 0 || interval.high < 0) && std::fabs(interval.mean) >= o.least;
}

// Sum over datasets of statistic(dataset, drawn observations), for each draw.
std::vector<double> resampled(std::span<const std::size_t> sizes, const BootstrapOptions& o,
                              const std::function<double(std::size_t, std::span<const std::int64_t>)>& statistic) {
    std::vector<double> values(o.draws, 0);
    NumpyRandom random(o.seed);
    for (std::size_t d = 0; d < sizes.size(); ++d) {
        const auto indices = random.randint(static_cast<std::int64_t>(sizes[d]), o.draws * sizes[d]);
        for (std::size_t i = 0; i < o.draws; ++i)
            values[i] +=
                statistic(d, std::span(indices).subspan(i * sizes[d], sizes[d])) / static_cast<double>(sizes.size());
    }
    return values;
}

double ratio(std::span<const double> part, std::span<const double> whole, std::span<const std::int64_t> drawn) {
    double p = 0, w = 0;
    for (const auto i : drawn) {
        p += part[static_cast<std::size_t>(i)];
        w += whole[static_cast<std::size_t>(i)];
    }
    return w > 0 ? p / w : 0;
}

}  // namespace

double mean(std::span<const double> values) {
    return values.empty() ? 0 : std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double deviation(std::span<const double> values) {
    const double m = mean(values);
    double sum = 0;
    for (const double v : values) sum += (v - m) * (v - m);
    return values.empty() ? 0 : std::sqrt(sum / static_cast<double>(values.size()));
}

double rank_correlation(std::span<const double> x, std::span<const double> y) {
    const auto a = ranks(x), b = ranks(y);
    const double ma = mean(a), mb = mean(b);
    double ab = 0, aa = 0, bb = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        ab += (a[i] - ma) * (b[i] - mb);
        aa += (a[i] - ma) * (a[i] - ma);
        bb += (b[i] - mb) * (b[i] - mb);
    }
    return aa > 0 && bb > 0 ? ab / std::sqrt(aa * bb) : 0;
}

Interval rank_correlation_interval(std::span<const double> x, std::span<const double> y, const BootstrapOptions& o) {
    Interval interval;
    interval.mean = rank_correlation(x, y);
    if (x.size() < 3) return interval;
    const std::size_t sizes[] = {x.size()};
    std::vector<double> a(x.size()), b(x.size());
    set_interval(interval,
                 resampled(sizes, o,
                           [&](std::size_t, std::span<const std::int64_t> drawn) {
                               for (std::size_t i = 0; i < drawn.size(); ++i) {
                                   a[i] = x[static_cast<std::size_t>(drawn[i])];
                                   b[i] = y[static_cast<std::size_t>(drawn[i])];
                               }
                               return rank_correlation(a, b);
                           }),
                 o);
    return interval;
}

Interval stratified_difference(std::span<const Paired> datasets, const BootstrapOptions& o) {
    std::vector<std::size_t> sizes;
    std::vector<std::vector<double>> gaps;
    Interval interval;
    for (const auto& d : datasets) {
        if (d.a.empty()) continue;
        auto& gap = gaps.emplace_back(d.a.size());
        for (std::size_t i = 0; i < gap.size(); ++i) gap[i] = d.a[i] - d.b[i];
        sizes.push_back(gap.size());
    }
    if (gaps.empty()) return interval;
    for (const auto& gap : gaps) interval.mean += mean(gap) / static_cast<double>(gaps.size());
    set_interval(interval,
                 resampled(sizes, o,
                           [&](std::size_t d, std::span<const std::int64_t> drawn) {
                               double sum = 0;
                               for (const auto i : drawn) sum += gaps[d][static_cast<std::size_t>(i)];
                               return sum / static_cast<double>(drawn.size());
                           }),
                 o);
    return interval;
}

Interval stratified_rate_difference(std::span<const PairedRates> datasets, const BootstrapOptions& o) {
    std::vector<std::size_t> sizes;
    Interval interval;
    std::vector<const PairedRates*> used;
    for (const auto& d : datasets)
        if (!d.part_a.empty()) used.push_back(&d), sizes.push_back(d.part_a.size());
    if (used.empty()) return interval;
    for (const auto* d : used) {
        std::vector<std::int64_t> all(d->part_a.size());
        std::iota(all.begin(), all.end(), 0);
        interval.mean +=
            (ratio(d->part_a, d->whole_a, all) - ratio(d->part_b, d->whole_b, all)) / static_cast<double>(used.size());
    }
    set_interval(interval,
                 resampled(sizes, o,
                           [&](std::size_t i, std::span<const std::int64_t> drawn) {
                               return ratio(used[i]->part_a, used[i]->whole_a, drawn) -
                                      ratio(used[i]->part_b, used[i]->whole_b, drawn);
                           }),
                 o);
    return interval;
}

}  // namespace marginmerge::lab
