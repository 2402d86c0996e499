#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace marginmerge::server {

/// Request counts and latencies by route, in Prometheus' text form.
class Metrics {
public:
    /// Upper bounds of the latency buckets, seconds.
    static constexpr std::array<double, 12> bounds{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025,
                                                   0.05,   0.1,   0.25,   0.5,   1,    5};

    void record(std::string_view route, int status, double seconds);
    void add(std::string_view counter, std::uint64_t amount = 1);
    std::uint64_t value(std::string_view counter) const;

    /// Everything recorded so far.
    std::string text() const;

private:
    struct Latency {
        std::array<std::uint64_t, bounds.size() + 1> buckets{};
        std::uint64_t count = 0;
        double sum = 0;
    };
    mutable std::mutex mutex_;
    std::map<std::pair<std::string, int>, std::uint64_t> requests_;
    std::map<std::string, Latency> latency_;
    std::map<std::string, std::uint64_t, std::less<>> counters_;
};

/// "# HELP …", "# TYPE …" and one sample without labels.
std::string metric_line(std::string_view name, std::string_view type, std::string_view help, double value);

}  // namespace marginmerge::server
