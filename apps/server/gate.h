#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "request_head.h"
#include "server_limits.h"

namespace marginmerge::server {

/// A whole request as it came: headers and body, nothing after them.
struct RawRequest {
    std::string bytes;
    std::string peer;   ///< address of the client
    bool last = false;  ///< the server is stopping: the answer should say "Connection: close"
};

/// The whole answer as it goes out.
struct RawReply {
    std::string bytes;
    bool close = false;
};

/// Numbers for /metrics.
struct GateCounters {
    std::atomic<std::uint64_t> accepted{0};
    std::atomic<std::uint64_t> refused{0};    ///< answered 4xx/5xx by the gate itself
    std::atomic<std::uint64_t> timed_out{0};  ///< slow clients cut off
    std::atomic<std::int64_t> open{0};
    std::atomic<std::int64_t> waiting{0};  ///< complete requests without a worker yet
    std::atomic<std::int64_t> running{0};
};

struct GateOptions {
    Limits limits;
    std::size_t workers = 4;
    /// Called on the gate's thread as soon as the headers are there and before any body is read;
    /// throws ApiError to turn the client away.
    std::function<void(const RequestHead&)> admit;
    /// Called on a worker with a complete request.
    std::function<RawReply(RawRequest&)> handle;
    /// Requests for these paths go ahead of the queue (health checks of a busy server).
    std::vector<std::string> urgent;
};

/// The connections of the server. One thread waits for all sockets at once and gathers each
/// request whole before a worker sees it; answers a client does not read at once are written from
/// here too. A worker therefore never waits for a client, however slow or broken it is.
class Gate {
public:
    explicit Gate(GateOptions options);
    ~Gate();
    Gate(const Gate&) = delete;
    Gate& operator=(const Gate&) = delete;

    /// Binds and listens; port 0 takes a free one. Returns the port. Throws Error(io).
    int listen(const std::string& host, int port);
    /// Serves until stop(), then finishes what has begun (at most grace_seconds) and returns.
    void run();
    /// From any thread or a signal handler.
    void stop();
    const GateCounters& counters() const { return counters_; }

private:
    using Clock = std::chrono::steady_clock;
    enum class Phase { idle, head, body, busy, writing, draining };
    struct Connection {
        std::uint64_t id = 0;
        int fd = -1;
        std::string peer;
        Phase phase = Phase::idle;
        std::string in;
        std::size_t need = 0;      ///< bytes of the current request once its head is known
        std::size_t reserved = 0;  ///< counted in buffered_
        std::string out;
        std::size_t sent = 0;
        bool close_after = false;
        Clock::time_point since;  ///< idle since then
        Clock::time_point deadline;
    };
    struct Task {
        std::uint64_t id;
        int fd;
        RawRequest request;
        Clock::time_point queued;
    };
    struct Finished {
        std::uint64_t id;
        std::string rest;  ///< what the socket did not take yet
        bool close;
        bool broken;
    };

    void accept_all();
    void end_longest_idle();
    void on_event(Connection& c, std::uint32_t events);
    void receive(Connection& c);
    void advance(Connection& c);
    void dispatch(Connection& c, bool urgent);
    void refuse(Connection& c, int status, const std::string& code, const std::string& message);
    void flush(Connection& c);
    void after_write(Connection& c);
    void collect_finished();
    void expire(Clock::time_point now);
    void begin_stop();
    void arm(Connection& c, std::uint32_t events);
    void close(std::uint64_t id);
    void work();
    Clock::time_point after(double seconds) const;

    GateOptions options_;
    GateCounters counters_;
    int epoll_ = -1;
    int wake_ = -1;
    int listener_ = -1;
    std::uint64_t next_id_ = 2;  ///< 0 and 1 are the listener and the wake-up in epoll's data
    std::unordered_map<std::uint64_t, std::unique_ptr<Connection>> connections_;
    std::size_t buffered_ = 0;
    std::atomic<bool> stop_requested_{false};
    bool stopping_ = false;
    Clock::time_point stop_deadline_;

    std::mutex mutex_;
    std::condition_variable ready_;
    std::deque<Task> tasks_;
    std::vector<Finished> finished_;
    bool workers_end_ = false;
    std::vector<std::thread> workers_;
};

}  // namespace marginmerge::server
