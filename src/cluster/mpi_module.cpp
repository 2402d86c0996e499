// The processes that mpirun or srun started, as a Cluster. Built as a module of its own that the command line opens
// only when it was started that way: nothing else knows MPI, and a machine without it runs everything else.
//
// MPI is called from the main thread alone (MPI_THREAD_FUNNELED). All waiting sleeps between looks: MPI's own calls
// would keep a core busy that the computing threads need.
#include <mpi.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <deque>
#include <exception>
#include <limits>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "marginmerge/core/cluster.h"

namespace marginmerge {

namespace {

constexpr int tag_result = 1;  ///< to process 0: task number, then its bytes; no task: "give me one"
constexpr int tag_task = 2;    ///< from process 0: task number
constexpr std::int64_t no_task = -1;

void sleep_a_little(int& looks) {
    // Replies come within microseconds while work flows; later a millisecond more does not matter.
    if (++looks < 50) return std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::microseconds(looks < 200 ? 50 : 500));
}

void wait(MPI_Request& request) {
    int done = 0, looks = 0;
    while (MPI_Test(&request, &done, MPI_STATUS_IGNORE), done == 0) sleep_a_little(looks);
}

int message_size(std::size_t bytes) {
    if (bytes > static_cast<std::size_t>(std::numeric_limits<int>::max()))
        throw std::runtime_error("a result of more than 2 GB cannot be sent to another process");
    return static_cast<int>(bytes);
}

void send(int to, int tag, std::span<const std::byte> bytes) {
    MPI_Request request;
    MPI_Isend(bytes.data(), message_size(bytes.size()), MPI_BYTE, to, tag, MPI_COMM_WORLD, &request);
    wait(request);
}

struct Message {
    int from = 0;
    std::vector<std::byte> bytes;
};

std::optional<Message> poll(int from, int tag) {
    int there = 0;
    MPI_Status status;
    MPI_Message handle;
    MPI_Improbe(from, tag, MPI_COMM_WORLD, &there, &handle, &status);
    if (there == 0) return std::nullopt;
    int size = 0;
    MPI_Get_count(&status, MPI_BYTE, &size);
    Message message{status.MPI_SOURCE, std::vector<std::byte>(static_cast<std::size_t>(size))};
    MPI_Request request;
    MPI_Imrecv(message.bytes.data(), size, MPI_BYTE, &handle, &request);
    wait(request);
    return message;
}

Message receive(int from, int tag) {
    int looks = 0;
    for (;; sleep_a_little(looks))
        if (auto message = poll(from, tag)) return std::move(*message);
}

std::int64_t number_of(std::span<const std::byte> bytes) {
    std::int64_t number = no_task;
    if (bytes.size() < sizeof number) throw std::runtime_error("another process sent a message that makes no sense");
    std::memcpy(&number, bytes.data(), sizeof number);
    return number;
}

std::vector<std::byte> numbered(std::int64_t number, std::span<const std::byte> bytes) {
    std::vector<std::byte> out(sizeof number + bytes.size());
    std::memcpy(out.data(), &number, sizeof number);
    if (!bytes.empty()) std::memcpy(out.data() + sizeof number, bytes.data(), bytes.size());
    return out;
}

/// Tasks that nobody took yet, and results of this process that the main thread has not collected.
class Queue {
public:
    explicit Queue(std::span<const std::size_t> tasks) : open_(tasks.begin(), tasks.end()) {}

    std::int64_t take() {
        const std::lock_guard lock(mutex_);
        if (open_.empty()) return no_task;
        const auto task = static_cast<std::int64_t>(open_.front());
        open_.pop_front();
        return task;
    }
    void stop(std::exception_ptr error) {
        const std::lock_guard lock(mutex_);
        open_.clear();
        error_ = std::move(error);
    }
    void finish(std::size_t task, std::vector<std::byte> bytes) {
        const std::lock_guard lock(mutex_);
        done_.emplace_back(task, std::move(bytes));
    }
    std::optional<std::pair<std::size_t, std::vector<std::byte>>> collect() {
        const std::lock_guard lock(mutex_);
        if (error_) std::rethrow_exception(error_);
        if (done_.empty()) return std::nullopt;
        auto first = std::move(done_.front());
        done_.pop_front();
        return first;
    }

private:
    std::mutex mutex_;
    std::deque<std::size_t> open_;
    std::deque<std::pair<std::size_t, std::vector<std::byte>>> done_;
    std::exception_ptr error_;
};

class MpiCluster final : public Cluster {
public:
    MpiCluster() {
        int provided = 0;
        MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
        if (provided < MPI_THREAD_FUNNELED) throw std::runtime_error("this MPI does not allow threads beside its own");
        MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
        MPI_Comm_size(MPI_COMM_WORLD, &size_);
        MPI_Comm here;
        MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &here);
        MPI_Comm_size(here, &local_);
        MPI_Comm_free(&here);
    }
    ~MpiCluster() override {
        // Process 0 may still be writing: wait for it without burning a core, then leave together.
        MPI_Request request;
        MPI_Ibarrier(MPI_COMM_WORLD, &request);
        wait(request);
        MPI_Finalize();
    }
    MpiCluster(const MpiCluster&) = delete;
    MpiCluster& operator=(const MpiCluster&) = delete;

    std::size_t rank() const override { return static_cast<std::size_t>(rank_); }
    std::size_t size() const override { return static_cast<std::size_t>(size_); }
    std::size_t local_size() const override { return static_cast<std::size_t>(local_); }

    void run(std::span<const std::size_t> tasks, const Compute& compute, const Collect& collect) override {
        if (rank_ == 0)
            lead(tasks, compute, collect);
        else
            follow(compute);
    }

    std::vector<std::vector<std::byte>> gather(std::span<const std::byte> mine) override {
        std::vector<std::vector<std::byte>> all(size());
        for (int r = 0; r < size_; ++r) {
            auto& part = all[static_cast<std::size_t>(r)];
            if (r == rank_) part.assign(mine.begin(), mine.end());
            std::uint64_t bytes = part.size();
            broadcast(&bytes, sizeof bytes, r);
            part.resize(bytes);
            broadcast(part.data(), part.size(), r);
        }
        return all;
    }

    [[noreturn]] void abort(int status) override {
        MPI_Abort(MPI_COMM_WORLD, status);
        std::_Exit(status);
    }

private:
    static void broadcast(void* data, std::size_t bytes, int root) {
        constexpr std::size_t most = std::size_t{1} << 30;  // what one call takes
        auto* at = static_cast<std::byte*>(data);
        for (std::size_t done = 0; done < bytes; done += most) {
            MPI_Request request;
            MPI_Ibcast(at + done, static_cast<int>(std::min(most, bytes - done)), MPI_BYTE, root, MPI_COMM_WORLD,
                       &request);
            wait(request);
        }
    }

    void lead(std::span<const std::size_t> tasks, const Compute& compute, const Collect& collect) {
        Queue queue(tasks);
        // This process computes too, on a thread of its own, so that the others never wait for an answer.
        std::thread own([&] {
            try {
                for (std::int64_t task; (task = queue.take()) != no_task;) {
                    const auto number = static_cast<std::size_t>(task);
                    queue.finish(number, compute(number));
                }
            } catch (...) {
                queue.stop(std::current_exception());
            }
        });
        try {
            std::size_t collected = 0;
            int working = size_ - 1, looks = 0;
            while (collected < tasks.size() || working > 0) {
                bool idle = true;
                if (auto message = poll(MPI_ANY_SOURCE, tag_result)) {
                    idle = false;
                    const std::int64_t next = queue.take();
                    send(message->from, tag_task, std::as_bytes(std::span(&next, 1)));
                    if (next == no_task) --working;
                    const std::int64_t task = number_of(message->bytes);
                    if (task != no_task) {
                        collect(static_cast<std::size_t>(task), std::span(message->bytes).subspan(sizeof task));
                        ++collected;
                    }
                }
                if (auto done = queue.collect()) {
                    idle = false;
                    collect(done->first, done->second);
                    ++collected;
                }
                if (idle)
                    sleep_a_little(looks);
                else
                    looks = 0;
            }
        } catch (...) {
            queue.stop(nullptr);
            own.join();
            throw;
        }
        own.join();
    }

    static void follow(const Compute& compute) {
        std::vector<std::byte> message = numbered(no_task, {});
        for (;;) {
            send(0, tag_result, message);
            const std::int64_t task = number_of(receive(0, tag_task).bytes);
            if (task == no_task) return;
            message = numbered(task, compute(static_cast<std::size_t>(task)));
        }
    }

    int rank_ = 0, size_ = 1, local_ = 1;
};

}  // namespace

}  // namespace marginmerge

/// What the command line looks for.
extern "C" __attribute__((visibility("default"))) marginmerge::Cluster* marginmerge_open_cluster() {
    return new marginmerge::MpiCluster();
}
