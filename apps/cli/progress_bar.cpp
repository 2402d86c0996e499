#include <fmt/core.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>

#include "command.h"

namespace marginmerge::cli {

namespace {

using Clock = std::chrono::steady_clock;

struct State {
    std::string phase;
    Clock::time_point started = Clock::now();
    Clock::time_point drawn;
};

std::string clock_text(double seconds) {
    const auto s = std::lround(seconds);
    return s >= 3600 ? fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60)
                     : fmt::format("{}:{:02}", s / 60, s % 60);
}

void draw(const ProgressUpdate& u, double elapsed) {
    const double rate = elapsed > 0 ? static_cast<double>(u.done) / elapsed : 0;
    std::string line = fmt::format("\r\x1b[K{} ", u.phase);
    if (u.total > 0) {
        constexpr std::size_t width = 24;
        const std::size_t filled = width * u.done / u.total;
        line += fmt::format("[{}{}] {}/{} {}", std::string(filled, '#'), std::string(width - filled, '.'), u.done,
                            u.total, u.unit);
        if (rate > 0)
            line += fmt::format("  {:.1f}/s  {} left", rate, clock_text(static_cast<double>(u.total - u.done) / rate));
    } else {
        line += fmt::format("{} {}  {:.1f}/s", u.done, u.unit, rate);
    }
    if (!u.detail.empty()) line += "  " + u.detail;
    std::fputs(line.c_str(), stderr);
    if (u.total > 0 && u.done >= u.total) std::fputc('\n', stderr);
    std::fflush(stderr);
}

}  // namespace

void add_common(CLI::App& command, Common& common) {
    command.add_flag("--json", common.json, "Print one JSON document instead of text");
    command.add_flag("--quiet", common.quiet, "No progress bar and no notes on stderr");
    command.add_option("--threads", common.threads, "Threads to use; 0 means all cores")->capture_default_str();
}

Progress progress_bar(const Common& common) {
    if (common.quiet || ::isatty(STDERR_FILENO) == 0) return {};
    auto state = std::make_shared<State>();
    return [state](const ProgressUpdate& u) {
        const auto now = Clock::now();
        if (u.phase != state->phase) {
            state->phase = u.phase;
            state->started = now;
            state->drawn = now;
        }
        const double elapsed = std::chrono::duration<double>(now - state->started).count();
        const bool last = u.total > 0 && u.done >= u.total;
        const bool due = now - state->drawn > std::chrono::milliseconds(100);
        if ((elapsed < 1 && !last) || (!due && !last) || (last && elapsed < 1)) return;
        state->drawn = now;
        draw(u, elapsed);
    };
}

}  // namespace marginmerge::cli
