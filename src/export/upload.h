#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "export/rest.h"
#include "marginmerge/core/progress.h"
#include "marginmerge/index/index.h"

namespace marginmerge {

struct UploadOptions {
    std::function<std::unique_ptr<RestServer>()> connect;  ///< a new connection; called once for each thread
    std::string where;                                     ///< engine and URL, for messages
    std::filesystem::path journal;                         ///< how far the upload got; removed when it is complete
    std::string fingerprint;                               ///< of the index, the target and the settings
    bool append = false;
    std::size_t connections = 2;
    std::size_t retries = 6;
    std::size_t threads = 0;  ///< that encode
    /// Waits between tries; tests replace it.
    std::function<void(double seconds)> pause;
};

struct UploadReport {
    std::size_t resumed_pages = 0;  ///< acknowledged in an earlier run
    std::size_t requests = 0;
    std::size_t retried = 0;
    std::uint64_t bytes = 0;
    std::vector<std::string> notes;
};

/// Sends all pages in batches. A request that fails for a passing reason is sent again, the pause doubling from half a
/// second to thirty. After every acknowledged wave of batches the journal says how many pages are in; a later call with
/// the same fingerprint goes on from there. Pages are sent again at most, never left out.
UploadReport upload_index(const Index& index, const ExportPlan& plan, const RestDialect& dialect,
                          const UploadOptions& options, const Progress& progress = {});

}  // namespace marginmerge
