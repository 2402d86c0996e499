// The gate against clients that are slow, rude or many, on real sockets.
#include "gate.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "api_error.h"

namespace marginmerge::server {
namespace {

using namespace std::chrono_literals;

class Client {
public:
    explicit Client(int port) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(static_cast<std::uint16_t>(port));
        ::inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
        connected = ::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    }
    ~Client() { ::close(fd_); }
    Client(const Client&) = delete;
    void send(const std::string& text) {
        [[maybe_unused]] const auto n = ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
    }
    void finish() { ::shutdown(fd_, SHUT_WR); }
    /// Until `enough` is in what came, the peer closes, or the time is over.
    std::string read_until(const std::string& enough, std::chrono::milliseconds limit = 5000ms) {
        const auto end = std::chrono::steady_clock::now() + limit;
        while (seen.find(enough) == seen.npos && std::chrono::steady_clock::now() < end) {
            pollfd p{fd_, POLLIN, 0};
            if (::poll(&p, 1, 50) <= 0) continue;
            char buffer[65536];
            const ssize_t n = ::recv(fd_, buffer, sizeof buffer, 0);
            if (n <= 0) {
                closed = true;
                break;
            }
            seen.append(buffer, static_cast<std::size_t>(n));
        }
        return std::exchange(seen, {});
    }
    bool closes(std::chrono::milliseconds limit = 5000ms) {
        read_until("\x01 never", limit);
        return closed;
    }
    std::string seen;
    bool connected = false;
    bool closed = false;

private:
    int fd_;
};

std::string reply_with(const std::string& body, bool last = false) {
    return "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + (last ? "\r\nConnection: close" : "") +
           "\r\n\r\n" + body;
}

struct RunningGate {
    GateOptions options;
    std::unique_ptr<Gate> gate;
    int port = 0;
    std::thread thread;
    std::atomic<int> handled{0};

    void start() {
        if (!options.handle) {
            options.handle = [this](RawRequest& r) {
                ++handled;
                if (r.bytes.find("GET /slow") == 0) std::this_thread::sleep_for(400ms);
                if (r.bytes.find("GET /big") == 0) return RawReply{reply_with(std::string(30 << 20, 'b')), false};
                return RawReply{
                    reply_with(std::string("<").append(r.bytes, r.bytes.find("\r\n\r\n") + 4).append(">"), r.last),
                    r.last};
            };
        }
        options.workers = 2;
        gate = std::make_unique<Gate>(options);
        port = gate->listen("127.0.0.1", 0);
        thread = std::thread([this] { gate->run(); });
    }
    ~RunningGate() {
        gate->stop();
        thread.join();
    }
};

const std::string get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

TEST(Gate, KeepsConnectionsAndPipelines) {
    RunningGate g;
    g.start();
    Client c(g.port);
    c.send(get);
    EXPECT_NE(c.read_until("<>").find("200 OK"), std::string::npos);
    c.send("POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhelloPOST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nyou");
    const std::string both = c.read_until("<you>");
    EXPECT_LT(both.find("<hello>"), both.find("<you>"));
    c.send("POST / HT");
    std::this_thread::sleep_for(50ms);
    c.send("TP/1.1\r\nContent-Length: 4\r\n\r\nab");
    std::this_thread::sleep_for(50ms);
    c.send("cd");
    EXPECT_NE(c.read_until("<abcd>").find("<abcd>"), std::string::npos);
}

TEST(Gate, AnswersExpectContinueBeforeTheBody) {
    RunningGate g;
    g.start();
    Client c(g.port);
    c.send("POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    EXPECT_NE(c.read_until("\r\n\r\n").find("100 Continue"), std::string::npos);
    c.send("ok");
    EXPECT_NE(c.read_until("<ok>").find("<ok>"), std::string::npos);
}

TEST(Gate, SlowClientsDoNotHoldWorkers) {
    RunningGate g;
    g.options.limits.head_seconds = 0.6;
    g.options.limits.body_seconds = 0.6;
    g.start();
    std::vector<std::unique_ptr<Client>> slow;
    for (int i = 0; i < 60; ++i) {
        slow.push_back(std::make_unique<Client>(g.port));
        slow.back()->send(i % 3 == 0   ? "GET / HTTP/1.1\r\nHo"
                          : i % 3 == 1 ? "POST / HTTP/1.1\r\nContent-Length: 100\r\n\r\nabc"
                                       : "");
    }
    for (int i = 0; i < 20; ++i) {
        Client c(g.port);
        c.send(get);
        EXPECT_NE(c.read_until("<>", 2000ms).find("200"), std::string::npos) << i;
    }
    EXPECT_NE(slow[0]->read_until("request_timeout").find("408"), std::string::npos);
    EXPECT_NE(slow[1]->read_until("request_timeout").find("408"), std::string::npos);
    EXPECT_TRUE(slow[2]->closes()) << "never said anything";
    const auto end = std::chrono::steady_clock::now() + 10s;
    while (g.gate->counters().timed_out.load() < 40 && std::chrono::steady_clock::now() < end)
        std::this_thread::sleep_for(20ms);
    EXPECT_EQ(g.gate->counters().timed_out.load(), 40U) << "two of three said something";
}

TEST(Gate, ClientsThatDoNotReadDoNotHoldWorkers) {
    RunningGate g;
    g.options.limits.write_seconds = 1;
    g.options.limits.bytes_per_second = 1e9;
    g.start();
    std::vector<std::unique_ptr<Client>> deaf;
    for (int i = 0; i < 6; ++i) {
        deaf.push_back(std::make_unique<Client>(g.port));
        deaf.back()->send("GET /big HTTP/1.1\r\n\r\n");
    }
    std::this_thread::sleep_for(200ms);
    for (int i = 0; i < 10; ++i) {
        Client c(g.port);
        c.send(get);
        EXPECT_NE(c.read_until("<>", 2000ms).find("200"), std::string::npos) << i;
    }
    const auto end = std::chrono::steady_clock::now() + 8s;
    while (g.gate->counters().open.load() > 0 && std::chrono::steady_clock::now() < end)
        std::this_thread::sleep_for(50ms);
    EXPECT_EQ(g.gate->counters().open.load(), 0) << "deaf clients are cut off";
}

TEST(Gate, WholeBigAnswersArrive) {
    RunningGate g;
    g.start();
    Client c(g.port);
    c.send("GET /big HTTP/1.1\r\n\r\n");
    std::string all;
    const auto end = std::chrono::steady_clock::now() + 20s;
    while (all.size() < (30U << 20) && std::chrono::steady_clock::now() < end) {
        all += c.read_until("\x01 never", 200ms);
        if (c.closed) break;
    }
    EXPECT_GT(all.size(), 30U << 20);
}

TEST(Gate, TurnsAwayBeforeTheBody) {
    RunningGate g;
    g.options.admit = [](const RequestHead& head) {
        if (head.api_key != "k") throw ApiError(401, "unauthorized", "no");
    };
    g.options.limits.body_bytes = 1000;
    g.start();
    Client c(g.port);
    c.send("POST / HTTP/1.1\r\nContent-Length: 500\r\n\r\n");
    EXPECT_NE(c.read_until("unauthorized").find("401 Unauthorized"), std::string::npos);
    Client big(g.port);
    big.send("POST / HTTP/1.1\r\nX-API-Key: k\r\nContent-Length: 1001\r\n\r\n" + std::string(1001, 'x'));
    EXPECT_NE(big.read_until("body_too_large").find("413"), std::string::npos)
        << "readable although the body was still coming";
    EXPECT_EQ(g.handled.load(), 0);
}

TEST(Gate, ManyConnectionsMakeRoomByEndingIdleOnes) {
    RunningGate g;
    g.options.limits.connections = 8;
    g.start();
    std::vector<std::unique_ptr<Client>> idle;
    for (int i = 0; i < 20; ++i) {
        idle.push_back(std::make_unique<Client>(g.port));
        idle.back()->send(get);
        EXPECT_NE(idle.back()->read_until("<>").find("200"), std::string::npos) << i;
    }
    EXPECT_LE(g.gate->counters().open.load(), 8);
    EXPECT_TRUE(idle[0]->closes());
    // Half a head is no idleness: these stay, and when there are as many as the gate takes, the next is told so.
    std::vector<std::unique_ptr<Client>> busy;
    bool refused = false;
    while (busy.size() < 12 && !refused) {
        busy.push_back(std::make_unique<Client>(g.port));
        busy.back()->send("GET / HTTP/1.1\r\nX");
        refused = busy.back()->read_until("overloaded", 300ms).find("503") != std::string::npos;
    }
    EXPECT_TRUE(refused);
    EXPECT_GE(busy.size(), 8U);
    for (std::size_t i = 0; i + 1 < busy.size(); ++i) EXPECT_FALSE(busy[i]->closed) << i;
}

TEST(Gate, ClientsWhoseRequestIsOnTheWayAreNotIdle) {
    RunningGate g;
    g.options.limits.connections = 8;
    g.options.handle = [](RawRequest&) {
        std::this_thread::sleep_for(2ms);
        return RawReply{reply_with("fine", true), true};
    };
    g.start();
    // Many at once: each is answered, with 200 or with 503, and none is cut off without a word.
    for (int round = 0; round < 5; ++round) {
        std::vector<std::unique_ptr<Client>> many;
        for (int i = 0; i < 14; ++i) {
            many.push_back(std::make_unique<Client>(g.port));
            many.back()->send(get);
        }
        for (auto& c : many) EXPECT_NE(c->read_until("HTTP/1.1 ").find("HTTP/1.1 "), std::string::npos) << round;
        many.clear();
        const auto end = std::chrono::steady_clock::now() + 5s;
        while (g.gate->counters().open.load() > 0 && std::chrono::steady_clock::now() < end)
            std::this_thread::sleep_for(5ms);
    }
}

TEST(Gate, ShedsRequestsThatWaitedTooLong) {
    RunningGate g;
    g.options.limits.queue_seconds = 0.2;
    g.options.urgent = {"/healthz"};
    g.start();
    std::vector<std::unique_ptr<Client>> many;
    for (int i = 0; i < 8; ++i) {
        many.push_back(std::make_unique<Client>(g.port));
        many.back()->send("GET /slow HTTP/1.1\r\n\r\n");
    }
    std::this_thread::sleep_for(100ms);
    Client urgent(g.port);
    urgent.send("GET /healthz HTTP/1.1\r\n\r\n");
    EXPECT_NE(urgent.read_until("\r\n\r\n").find(" "), std::string::npos);
    int shed = 0;
    for (auto& c : many) shed += c->read_until("}}", 3000ms).find("overloaded") != std::string::npos ? 1 : 0;
    EXPECT_GE(shed, 1);
    EXPECT_LE(shed, 6);
}

TEST(Gate, DoesNotWorkForClientsWhoGaveUp) {
    RunningGate g;
    g.start();
    {
        std::vector<std::unique_ptr<Client>> gone;
        for (int i = 0; i < 40; ++i) {
            gone.push_back(std::make_unique<Client>(g.port));
            gone.back()->send("GET /slow HTTP/1.1\r\n\r\n");
        }
        std::this_thread::sleep_for(100ms);
    }
    // Forty slow answers would keep two workers busy for eight seconds.
    Client c(g.port);
    c.send(get);
    EXPECT_NE(c.read_until("<>", 20000ms).find("200"), std::string::npos);
    EXPECT_LT(g.handled.load(), 20);
}

TEST(Gate, FinishesWhatHasBegunWhenStopped) {
    auto g = std::make_unique<RunningGate>();
    g->start();
    const int port = g->port;
    Client idle(port);
    idle.send(get);
    idle.read_until("<>");
    Client running(port);
    running.send("GET /slow HTTP/1.1\r\n\r\n");
    Client halfway(port);
    halfway.send("POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\nab");
    std::this_thread::sleep_for(100ms);
    g->gate->stop();
    std::this_thread::sleep_for(100ms);
    EXPECT_FALSE(Client(port).connected) << "nobody new";
    EXPECT_TRUE(idle.closes());
    halfway.send("cd");
    EXPECT_NE(running.read_until("<>").find("200"), std::string::npos);
    EXPECT_NE(halfway.read_until("<abcd>").find("Connection: close"), std::string::npos);
    g.reset();
}

TEST(Gate, SurvivesNonsense) {
    RunningGate g;
    g.start();
    for (const std::string& junk :
         {std::string("\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", 11), std::string("\r\n\r\n\r\n"),
          std::string("GET\r\n\r\n"), std::string(70000, 'A'),
          std::string("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n")}) {
        Client c(g.port);
        c.send(junk);
        c.finish();
        c.closes(3000ms);
    }
    for (int i = 0; i < 10; ++i) {
        Client c(g.port);
        c.send("GET /slow HTTP/1.1\r\n\r\n");  // gone before the answer
    }
    Client c(g.port);
    c.send(get);
    EXPECT_NE(c.read_until("<>", 15000ms).find("200"), std::string::npos);
}

}  // namespace
}  // namespace marginmerge::server
