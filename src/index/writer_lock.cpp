#include "index/writer_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "core/fail.h"

namespace marginmerge {

WriterLock::WriterLock(const std::filesystem::path& folder, double timeout) {
    const auto path = folder / "lock";
    fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd_ < 0) fail(ErrorCode::io, "{}: cannot open: {}", path.string(), std::strerror(errno));
    const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(timeout);
    while (::flock(fd_, LOCK_EX | LOCK_NB) != 0) {
        const int error = errno;
        if (error == EINTR) continue;
        if (error == EWOULDBLOCK && std::chrono::steady_clock::now() < until) {
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
            continue;
        }
        ::close(fd_);
        if (error == EWOULDBLOCK)
            fail(ErrorCode::io, "{}: another process is writing to this index; try again when it is done",
                 folder.string());
        fail(ErrorCode::io, "{}: cannot lock: {}", path.string(), std::strerror(error));
    }
}

WriterLock::~WriterLock() {
    if (fd_ >= 0) ::close(fd_);
}

}  // namespace marginmerge
