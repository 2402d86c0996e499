#pragma once

#include <cstddef>
#include <functional>
#include <string>

namespace marginmerge {

/// One step of a long job. The library never prints: apps turn this into a bar or a log line.
struct ProgressUpdate {
    std::string phase;      ///< what is being done, for example "compress"
    std::string unit;       ///< what is counted, for example "pages"
    std::size_t done = 0;   ///< how many are finished
    std::size_t total = 0;  ///< how many there are; 0 when unknown
    std::string detail;     ///< free text, for example the losses of an epoch
};

/// Called from one thread at a time. May throw to cancel the job. An empty function is allowed.
using Progress = std::function<void(const ProgressUpdate&)>;

}  // namespace marginmerge
