#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "encode/source.h"

namespace marginmerge {

struct ReaderOptions {
    SourceLimits limits;
    /// The command that serves pages from a process of its own (serve_pages on its standard input and output); empty:
    /// files are opened in this process. A library that crashes or hangs on a hostile file then ends that process
    /// only, and the file is an Error like any other.
    std::vector<std::string> command;
    double seconds = 120;  ///< the longest one page may take in the other process
};

/// Reads pages of files, keeping the last file open. One object belongs to one thread.
class PageReader {
public:
    explicit PageReader(ReaderOptions options);
    ~PageReader();
    PageReader(PageReader&&) noexcept;

    std::size_t pages(const std::filesystem::path& path);
    Page load(const std::filesystem::path& path, std::size_t page, const PageRequest& request);

private:
    struct State;
    std::unique_ptr<State> state_;
};

/// The other side of a PageReader: answers requests from file descriptor `in` on `out` until it is closed. `memory`
/// caps the address space of the process, in bytes (0: no cap).
void serve_pages(int in, int out, const SourceLimits& limits, std::uint64_t memory);

}  // namespace marginmerge
