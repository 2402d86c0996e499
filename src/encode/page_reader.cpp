#include "encode/page_reader.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <mutex>

#include "core/fail.h"
#include "encode/page_wire.h"

namespace marginmerge {

namespace {

/// Opens files in this process and keeps the last one.
class LocalReader {
public:
    explicit LocalReader(SourceLimits limits) : limits_(limits) {}
    Source& open(const std::filesystem::path& path) {
        if (!source_ || path != path_) {
            source_.reset();
            source_ = open_source(path, limits_);
            path_ = path;
        }
        return *source_;
    }

private:
    SourceLimits limits_;
    std::filesystem::path path_;
    std::unique_ptr<Source> source_;
};

/// A child process that serves pages. Ended by closing its input; killed when it does not answer in time.
class Child {
public:
    explicit Child(const std::vector<std::string>& command) {
        // Writing to a child that has died must be an error, not the end of this process.
        static std::once_flag once;
        std::call_once(once, [] { ::signal(SIGPIPE, SIG_IGN); });
        int to[2], from[2];
        if (::pipe2(to, O_CLOEXEC) != 0) fail(ErrorCode::io, "cannot make a pipe: {}", std::strerror(errno));
        if (::pipe2(from, O_CLOEXEC) != 0) {
            ::close(to[0]);
            ::close(to[1]);
            fail(ErrorCode::io, "cannot make a pipe: {}", std::strerror(errno));
        }
        posix_spawn_file_actions_t actions;
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_adddup2(&actions, to[0], 0);
        posix_spawn_file_actions_adddup2(&actions, from[1], 1);
        posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
        std::vector<char*> arguments;
        arguments.reserve(command.size() + 1);
        for (const auto& a : command) arguments.push_back(const_cast<char*>(a.c_str()));
        arguments.push_back(nullptr);
        const int failed = ::posix_spawn(&pid_, arguments[0], &actions, nullptr, arguments.data(), environ);
        posix_spawn_file_actions_destroy(&actions);
        ::close(to[0]);
        ::close(from[1]);
        out_ = to[1];
        in_ = from[0];
        if (failed != 0) {
            pid_ = -1;
            close_pipes();
            fail(ErrorCode::io, "{}: cannot start: {}", command[0], std::strerror(failed));
        }
    }
    ~Child() {
        close_pipes();
        if (pid_ <= 0) return;
        ::kill(pid_, SIGKILL);  // it holds nothing that could be lost
        int status = 0;
        while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
        }
    }
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;

    bool ask(const std::string& question, std::string& answer, double seconds) const {
        constexpr std::uint64_t limit = std::uint64_t{2} << 30;
        return send_message(out_, question) && receive_message(in_, answer, seconds, limit);
    }

private:
    void close_pipes() {
        if (out_ >= 0) ::close(out_);
        if (in_ >= 0) ::close(in_);
        out_ = in_ = -1;
    }
    pid_t pid_ = -1;
    int out_ = -1, in_ = -1;
};

}  // namespace

struct PageReader::State {
    ReaderOptions options;
    LocalReader local;
    std::unique_ptr<Child> child;

    explicit State(ReaderOptions o) : options(std::move(o)), local(options.limits) {}

    PageAnswer ask(const PageQuestion& question) {
        if (!child) child = std::make_unique<Child>(options.command);
        std::string bytes;
        PageAnswer answer;
        if (!child->ask(pack(question), bytes, options.seconds) || !unpack(bytes, answer)) {
            child.reset();  // the next question gets a fresh one
            fail(ErrorCode::corrupt, "{}: reading it crashed, ran out of memory or took over {} s", question.path,
                 options.seconds);
        }
        if (answer.fault) throw *answer.fault;
        return answer;
    }
};

PageReader::PageReader(ReaderOptions options) : state_(std::make_unique<State>(std::move(options))) {}
PageReader::~PageReader() = default;
PageReader::PageReader(PageReader&&) noexcept = default;

std::size_t PageReader::pages(const std::filesystem::path& path) {
    if (state_->options.command.empty()) return state_->local.open(path).pages();
    return static_cast<std::size_t>(state_->ask({path.string(), true, 0, {}}).pages);
}

Page PageReader::load(const std::filesystem::path& path, std::size_t page, const PageRequest& request) {
    if (state_->options.command.empty()) return state_->local.open(path).load(page, request);
    return std::move(state_->ask({path.string(), false, page, request}).page);
}

// The sanitizers reserve terabytes of address space; no cap fits them.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool may_cap_memory = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr bool may_cap_memory = false;
#else
constexpr bool may_cap_memory = true;
#endif
#else
constexpr bool may_cap_memory = true;
#endif

void serve_pages(int in, int out, const SourceLimits& limits, std::uint64_t memory) {
    if (memory > 0 && may_cap_memory) {
        const rlimit cap{memory, memory};
        ::setrlimit(RLIMIT_AS, &cap);
    }
    const rlimit no_core{0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
    LocalReader reader(limits);
    std::string bytes;
    while (receive_message(in, bytes, -1, 1 << 20)) {
        PageQuestion question;
        PageAnswer answer;
        if (!unpack(bytes, question)) return;
        try {
            Source& source = reader.open(question.path);
            answer.pages = source.pages();
            if (!question.count) {
                if (question.page >= answer.pages)
                    fail(ErrorCode::not_found, "{}: page {}: there are {}", question.path, question.page + 1,
                         answer.pages);
                answer.page = source.load(static_cast<std::size_t>(question.page), question.request);
            }
        } catch (const Error& error) {
            answer = {};
            answer.fault = error;
        } catch (const std::bad_alloc&) {
            answer = {};
            answer.fault = Error(ErrorCode::unsupported, question.path + ": needs more memory than a page may take");
        }
        if (!send_message(out, pack(answer))) return;
    }
}

}  // namespace marginmerge
