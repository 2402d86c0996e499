#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "encode/source.h"
#include "marginmerge/core/error.h"

namespace marginmerge {

/// What goes through the pipe to a reading process: a length and so many bytes, each way.
struct PageQuestion {
    std::string path;
    bool count = false;  ///< only the number of pages
    std::uint64_t page = 0;
    PageRequest request;
};

struct PageAnswer {
    std::uint64_t pages = 0;
    Page page;
    std::optional<Error> fault;
};

std::string pack(const PageQuestion& question);
std::string pack(const PageAnswer& answer);
/// These check every length; false for bytes that are no message.
bool unpack(const std::string& bytes, PageQuestion& question);
bool unpack(const std::string& bytes, PageAnswer& answer);

/// One message to or from a pipe. `seconds` is how long to wait for all of it (negative: for ever). False when the
/// other side is gone, silent for too long, or announces more than `limit` bytes.
bool send_message(int fd, const std::string& bytes);
bool receive_message(int fd, std::string& bytes, double seconds, std::uint64_t limit);

}  // namespace marginmerge
