#include "metrics.h"

#include <fmt/format.h>

#include <algorithm>

namespace marginmerge::server {

void Metrics::record(std::string_view route, int status, double seconds) {
    const std::lock_guard lock(mutex_);
    ++requests_[{std::string(route), status}];
    Latency& latency = latency_[std::string(route)];
    const auto bucket = std::lower_bound(bounds.begin(), bounds.end(), seconds) - bounds.begin();
    ++latency.buckets[static_cast<std::size_t>(bucket)];
    ++latency.count;
    latency.sum += seconds;
}

void Metrics::add(std::string_view counter, std::uint64_t amount) {
    const std::lock_guard lock(mutex_);
    counters_[std::string(counter)] += amount;
}

std::uint64_t Metrics::value(std::string_view counter) const {
    const std::lock_guard lock(mutex_);
    const auto it = counters_.find(counter);
    return it == counters_.end() ? 0 : it->second;
}

std::string Metrics::text() const {
    const std::lock_guard lock(mutex_);
    std::string out =
        "# HELP marginmerge_requests_total Requests answered, by route and status.\n"
        "# TYPE marginmerge_requests_total counter\n";
    for (const auto& [key, count] : requests_) {
        out +=
            fmt::format("marginmerge_requests_total{{route=\"{}\",status=\"{}\"}} {}\n", key.first, key.second, count);
    }
    out +=
        "# HELP marginmerge_request_seconds Time in a worker, by route.\n"
        "# TYPE marginmerge_request_seconds histogram\n";
    for (const auto& [route, latency] : latency_) {
        std::uint64_t below = 0;
        for (std::size_t i = 0; i < bounds.size(); ++i) {
            below += latency.buckets[i];
            out += fmt::format("marginmerge_request_seconds_bucket{{route=\"{}\",le=\"{}\"}} {}\n", route, bounds[i],
                               below);
        }
        out += fmt::format("marginmerge_request_seconds_bucket{{route=\"{}\",le=\"+Inf\"}} {}\n", route, latency.count);
        out += fmt::format("marginmerge_request_seconds_sum{{route=\"{}\"}} {}\n", route, latency.sum);
        out += fmt::format("marginmerge_request_seconds_count{{route=\"{}\"}} {}\n", route, latency.count);
    }
    for (const auto& [name, value] : counters_) {
        out += fmt::format("# TYPE {} counter\n{} {}\n", name, name, value);
    }
    return out;
}

std::string metric_line(std::string_view name, std::string_view type, std::string_view help, double value) {
    return fmt::format("# HELP {} {}\n# TYPE {} {}\n{} {}\n", name, help, name, type, name, value);
}

}  // namespace marginmerge::server
