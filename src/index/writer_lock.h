#pragma once

#include <filesystem>

namespace marginmerge {

/// Exclusive lock on a folder (flock on its file "lock"): released when the object or the process
/// ends, however it ends.
class WriterLock {
public:
    /// Waits at most `timeout` seconds, then throws Error(io).
    WriterLock(const std::filesystem::path& folder, double timeout);
    ~WriterLock();
    WriterLock(const WriterLock&) = delete;
    WriterLock& operator=(const WriterLock&) = delete;

private:
    int fd_ = -1;
};

}  // namespace marginmerge
