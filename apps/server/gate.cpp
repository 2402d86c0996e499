#include "gate.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "api_error.h"
#include "core/fail.h"

namespace marginmerge::server {

namespace {

constexpr std::uint64_t listener_tag = 0;
constexpr std::uint64_t wake_tag = 1;
constexpr int tick_milliseconds = 200;
constexpr std::size_t chunk = 256 << 10;
// After so long in the queue, a client that closed its side is taken to have given up.
constexpr double abandoned_seconds = 0.5;

bool hung_up(int fd) {
    char byte = 0;
    return ::recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

std::string plain_reply(int status, const std::string& body) {
    return fmt::format(
        "HTTP/1.1 {} {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nCache-Control: no-store\r\n"
        "Connection: close\r\n\r\n{}",
        status, reason_phrase(status), body.size(), body);
}

std::string address_text(const sockaddr_storage& address, socklen_t length) {
    char host[NI_MAXHOST] = {};
    if (::getnameinfo(reinterpret_cast<const sockaddr*>(&address), length, host, sizeof host, nullptr, 0,
                      NI_NUMERICHOST) != 0) {
        return "unknown";
    }
    return host;
}

}  // namespace

Gate::Gate(GateOptions options) : options_(std::move(options)) {
    epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
    wake_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (epoll_ < 0 || wake_ < 0) fail(ErrorCode::io, "server: cannot create an event queue: {}", std::strerror(errno));
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = wake_tag;
    ::epoll_ctl(epoll_, EPOLL_CTL_ADD, wake_, &event);
}

Gate::~Gate() {
    {
        const std::lock_guard lock(mutex_);
        workers_end_ = true;
    }
    ready_.notify_all();
    for (auto& worker : workers_) worker.join();
    for (const auto& [id, c] : connections_) ::close(c->fd);
    if (listener_ >= 0) ::close(listener_);
    ::close(wake_);
    ::close(epoll_);
}

int Gate::listen(const std::string& host, int port) {
    addrinfo hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
    addrinfo* found = nullptr;
    if (const int error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found); error != 0) {
        fail(ErrorCode::invalid_argument, "--host {}: {}", host, ::gai_strerror(error));
    }
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> guard(found, &::freeaddrinfo);
    const int fd = ::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) fail(ErrorCode::io, "server: cannot make a socket: {}", std::strerror(errno));
    const int on = 1;
    ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (::bind(fd, found->ai_addr, found->ai_addrlen) != 0 || ::listen(fd, 1024) != 0) {
        const int error = errno;
        ::close(fd);
        fail(ErrorCode::io, "server: cannot listen on {} port {}: {}", host, port, std::strerror(error));
    }
    listener_ = fd;
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = listener_tag;
    ::epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
    sockaddr_storage bound{};
    socklen_t length = sizeof bound;
    ::getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &length);
    return ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6*>(&bound)->sin6_port
                                             : reinterpret_cast<const sockaddr_in*>(&bound)->sin_port);
}

void Gate::stop() {
    stop_requested_.store(true);
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto ignored = ::write(wake_, &one, sizeof one);
}

Gate::Clock::time_point Gate::after(double seconds) const {
    return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

void Gate::run() {
    for (std::size_t i = 0; i < std::max<std::size_t>(1, options_.workers); ++i)
        workers_.emplace_back([this] { work(); });
    std::vector<epoll_event> events(256);
    auto next_tick = after(tick_milliseconds / 1000.0);
    while (!stopping_ || !connections_.empty()) {
        const int count = ::epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), tick_milliseconds);
        bool waiting = false;  // clients at the door: let in last, when it is known who can make room
        for (int i = 0; i < count; ++i) {
            const epoll_event& event = events[static_cast<std::size_t>(i)];
            const std::uint64_t tag = event.data.u64;  // a copy: the kernel's struct is packed
            if (tag == listener_tag) {
                waiting = true;
            } else if (tag == wake_tag) {
                std::uint64_t value = 0;
                [[maybe_unused]] const auto ignored = ::read(wake_, &value, sizeof value);
            } else if (const auto it = connections_.find(tag); it != connections_.end()) {
                on_event(*it->second, event.events);
            }
        }
        collect_finished();
        if (waiting) accept_all();
        if (stop_requested_.load() && !stopping_) begin_stop();
        if (const auto now = Clock::now(); now >= next_tick) {
            expire(now);
            next_tick = after(tick_milliseconds / 1000.0);
        }
        if (stopping_ && Clock::now() > stop_deadline_) break;
    }
}

void Gate::accept_all() {
    for (;;) {
        sockaddr_storage address{};
        socklen_t length = sizeof address;
        const int fd =
            ::accept4(listener_, reinterpret_cast<sockaddr*>(&address), &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) {
            // Out of descriptors: the backlog stays ready and would spin; give others time to close.
            if (errno == EMFILE || errno == ENFILE || errno == ENOMEM)
                std::this_thread::sleep_for(std::chrono::milliseconds(5));
            return;
        }
        ++counters_.accepted;
        const int on = 1;
        ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        if (connections_.size() >= options_.limits.connections) end_longest_idle();
        if (connections_.size() >= 2 * options_.limits.connections) {  // not even room to say so
            ++counters_.refused;
            ::close(fd);
            continue;
        }
        auto connection = std::make_unique<Connection>();
        Connection& c = *connection;
        c.id = next_id_++;
        c.fd = fd;
        c.peer = address_text(address, length);
        c.since = Clock::now();
        c.deadline = after(options_.limits.head_seconds);
        epoll_event event{};
        event.events = EPOLLIN | EPOLLONESHOT;
        event.data.u64 = c.id;
        if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) != 0) {
            ::close(fd);
            continue;
        }
        const bool full = connections_.size() >= options_.limits.connections;
        connections_.emplace(c.id, std::move(connection));
        counters_.open = static_cast<std::int64_t>(connections_.size());
        if (full) refuse(c, 503, "overloaded", "too many connections");
    }
}

namespace {

// A request may be in the socket that we have not seen yet: whoever sent it is not idle.
bool nothing_sent(int fd) {
    char byte = 0;
    return ::recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) <= 0;
}

}  // namespace

void Gate::end_longest_idle() {
    const Connection* longest = nullptr;
    for (const auto& [id, c] : connections_) {
        if (c->phase != Phase::idle || (longest != nullptr && c->since >= longest->since)) continue;
        if (nothing_sent(c->fd)) longest = c.get();
    }
    if (longest != nullptr) close(longest->id);
}

void Gate::arm(Connection& c, std::uint32_t events) {
    epoll_event event{};
    event.events = events | EPOLLONESHOT;
    event.data.u64 = c.id;
    ::epoll_ctl(epoll_, EPOLL_CTL_MOD, c.fd, &event);
}

void Gate::close(std::uint64_t id) {
    const auto it = connections_.find(id);
    buffered_ -= it->second->reserved;
    ::close(it->second->fd);
    connections_.erase(it);
    counters_.open = static_cast<std::int64_t>(connections_.size());
}

void Gate::on_event(Connection& c, std::uint32_t events) {
    if (c.phase == Phase::writing) {
        if ((events & (EPOLLERR | EPOLLHUP)) != 0) return close(c.id);
        return flush(c);
    }
    receive(c);
}

void Gate::receive(Connection& c) {
    static thread_local std::vector<char> buffer(chunk);
    const ssize_t got = ::recv(c.fd, buffer.data(), buffer.size(), 0);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) return close(c.id);
    if (got < 0) return arm(c, EPOLLIN);
    if (c.phase == Phase::draining) return arm(c, EPOLLIN);
    c.in.append(buffer.data(), static_cast<std::size_t>(got));
    advance(c);
}

// Looks at what has arrived and decides what the connection waits for next.
void Gate::advance(Connection& c) {
    const Limits& limits = options_.limits;
    if (c.phase == Phase::idle) {
        // Some clients end a body with a stray line break.
        c.in.erase(0, std::min(c.in.find_first_not_of("\r\n"), c.in.size()));
        if (c.in.empty()) {
            if (stopping_) return close(c.id);
            return arm(c, EPOLLIN);
        }
        c.phase = Phase::head;
        c.deadline = after(limits.head_seconds);
    }
    if (c.phase == Phase::head) {
        try {
            const auto head = parse_request_head(c.in, limits);
            if (!head) return arm(c, EPOLLIN);
            if (options_.admit) options_.admit(*head);
            if (buffered_ + head->content_length > limits.buffered_bytes) {
                throw ApiError(503, "overloaded", "too many request bodies at once");
            }
            c.need = head->head_bytes + head->content_length;
            c.reserved = head->content_length;
            buffered_ += c.reserved;
            if (head->expect_continue && c.in.size() < c.need) {
                constexpr std::string_view go_on = "HTTP/1.1 100 Continue\r\n\r\n";
                ::send(c.fd, go_on.data(), go_on.size(), MSG_NOSIGNAL);
            }
            c.phase = Phase::body;
            c.deadline =
                after(limits.body_seconds + static_cast<double>(head->content_length) / limits.bytes_per_second);
        } catch (const ApiError& error) {
            return refuse(c, error.status(), error.code(), error.what());
        }
    }
    if (c.in.size() < c.need) return arm(c, EPOLLIN);
    const std::string_view text = c.in;
    const auto target = text.substr(text.find(' ') + 1);
    const bool urgent = std::any_of(options_.urgent.begin(), options_.urgent.end(), [&](const std::string& path) {
        return target.substr(0, path.size()) == path &&
               (target.substr(path.size(), 1) == " " || target.substr(path.size(), 1) == "?");
    });
    dispatch(c, urgent);
}

void Gate::dispatch(Connection& c, bool urgent) {
    Task task{c.id, c.fd, {}, Clock::now()};
    std::string rest = c.in.substr(c.need);
    c.in.resize(c.need);
    task.request.bytes = std::move(c.in);
    task.request.peer = c.peer;
    task.request.last = stopping_;
    c.in = std::move(rest);
    c.need = 0;
    c.phase = Phase::busy;
    {
        const std::lock_guard lock(mutex_);
        if (urgent) {
            tasks_.push_front(std::move(task));
        } else {
            tasks_.push_back(std::move(task));
        }
        ++counters_.waiting;
    }
    ready_.notify_one();
}

void Gate::refuse(Connection& c, int status, const std::string& code, const std::string& message) {
    ++counters_.refused;
    buffered_ -= std::exchange(c.reserved, 0);
    c.out = plain_reply(status, error_body(status, code, message));
    c.sent = 0;
    c.close_after = true;
    c.phase = Phase::writing;
    c.deadline = after(options_.limits.write_seconds);
    flush(c);
}

void Gate::flush(Connection& c) {
    while (c.sent < c.out.size()) {
        const ssize_t n = ::send(c.fd, c.out.data() + c.sent, c.out.size() - c.sent, MSG_NOSIGNAL);
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return arm(c, EPOLLOUT);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return close(c.id);
        c.sent += static_cast<std::size_t>(n);
    }
    after_write(c);
}

void Gate::after_write(Connection& c) {
    c.out = {};
    c.sent = 0;
    if (c.close_after) {
        // Closing while the client still sends would reset the connection and lose our answer, so
        // say that we are done and throw away what comes for a moment.
        ::shutdown(c.fd, SHUT_WR);
        c.phase = Phase::draining;
        c.deadline = after(2);
        return arm(c, EPOLLIN);
    }
    c.phase = Phase::idle;
    c.since = Clock::now();
    c.deadline = after(options_.limits.idle_seconds);
    if (c.in.empty() && stopping_) return close(c.id);
    if (c.in.empty()) return arm(c, EPOLLIN);
    advance(c);
}

void Gate::collect_finished() {
    std::vector<Finished> finished;
    {
        const std::lock_guard lock(mutex_);
        finished.swap(finished_);
    }
    for (Finished& f : finished) {
        const auto it = connections_.find(f.id);
        if (it == connections_.end()) continue;
        Connection& c = *it->second;
        buffered_ -= std::exchange(c.reserved, 0);
        if (f.broken) {
            close(c.id);
            continue;
        }
        c.phase = Phase::writing;
        c.out = std::move(f.rest);
        c.sent = 0;
        c.close_after = f.close || stopping_;
        c.deadline =
            after(options_.limits.write_seconds + static_cast<double>(c.out.size()) / options_.limits.bytes_per_second);
        flush(c);
    }
}

void Gate::expire(Clock::time_point now) {
    std::vector<std::uint64_t> late;
    for (const auto& [id, c] : connections_) {
        if (c->phase != Phase::busy && now > c->deadline) late.push_back(id);
    }
    for (const auto id : late) {
        Connection& c = *connections_.at(id);
        if (c.phase == Phase::head || c.phase == Phase::body) {
            ++counters_.timed_out;
            refuse(c, 408, "request_timeout", "the request did not arrive in time");
        } else {
            if (c.phase == Phase::writing) ++counters_.timed_out;
            close(id);
        }
    }
}

void Gate::begin_stop() {
    stopping_ = true;
    stop_deadline_ = after(options_.limits.grace_seconds);
    if (listener_ >= 0) {
        ::close(listener_);
        listener_ = -1;
    }
    std::vector<std::uint64_t> idle;
    for (const auto& [id, c] : connections_) {
        if (c->phase == Phase::idle && nothing_sent(c->fd)) idle.push_back(id);
    }
    for (const auto id : idle) close(id);
}

void Gate::work() {
    for (;;) {
        Task task;
        {
            std::unique_lock lock(mutex_);
            ready_.wait(lock, [this] { return workers_end_ || !tasks_.empty(); });
            if (tasks_.empty()) return;
            task = std::move(tasks_.front());
            tasks_.pop_front();
        }
        --counters_.waiting;
        ++counters_.running;
        RawReply reply;
        const double waited = std::chrono::duration<double>(Clock::now() - task.queued).count();
        if (waited > abandoned_seconds && hung_up(task.fd)) {
            reply = {{}, true};
        } else if (waited > options_.limits.queue_seconds) {
            ++counters_.refused;
            reply = {plain_reply(503, error_body(503, "overloaded", "waited too long for a worker")), true};
        } else {
            reply = options_.handle(task.request);
        }
        // Most answers fit the socket's buffer: written here, they do not wait for the gate's thread.
        // The gate does not touch the socket of a busy connection, so this is the only writer.
        Finished finished{task.id, {}, reply.close, false};
        std::size_t sent = 0;
        while (sent < reply.bytes.size()) {
            const ssize_t n = ::send(task.fd, reply.bytes.data() + sent, reply.bytes.size() - sent, MSG_NOSIGNAL);
            if (n < 0 && errno == EINTR) continue;
            if (n < 0) {
                finished.broken = errno != EAGAIN && errno != EWOULDBLOCK;
                break;
            }
            sent += static_cast<std::size_t>(n);
        }
        if (sent > 0) reply.bytes.erase(0, sent);
        finished.rest = std::move(reply.bytes);
        --counters_.running;
        {
            const std::lock_guard lock(mutex_);
            finished_.push_back(std::move(finished));
        }
        const std::uint64_t one = 1;
        [[maybe_unused]] const auto ignored = ::write(wake_, &one, sizeof one);
    }
}

}  // namespace marginmerge::server
