#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "marginmerge/core/progress.h"

namespace marginmerge {

struct ExportOptions {
    std::filesystem::path index;    ///< an index folder or any multi-vector file
    std::string target;             ///< one of export_target_names()
    std::filesystem::path output;   ///< folder to write; with `url` it holds everything but the data
    std::string name = "pages";     ///< of the table, collection or class
    std::filesystem::path queries;  ///< a multi-vector file for the example; empty: those stored with the index
    std::string query;              ///< id of the example query; empty: the first
    bool ann = false;               ///< the engine's approximate index instead of an exact scan, where it is a choice
    bool unit_norm = false;         ///< scale every vector to unit norm
    std::size_t threads = 0;
    std::size_t batch_bytes = 8U << 20;  ///< of a request, and of a file of requests

    std::string url;                   ///< upload here instead of writing data files; empty: write files
    std::vector<std::string> headers;  ///< "Name: value" of every request, for keys and tokens
    bool append = false;               ///< into a table that already holds rows, where that would double them
    std::size_t connections = 2;       ///< requests under way at once
    std::size_t retries = 6;           ///< of a request, the pause doubling from half a second to 30 s
    double timeout = 120;              ///< seconds for an answer
};

struct ExportReport {
    std::string target;
    std::string output;
    std::size_t pages = 0;
    std::uint64_t vectors = 0;
    std::size_t dim = 0;
    std::uint64_t bytes = 0;  ///< of data, written or sent
    double seconds = 0;       ///< writing or sending
    std::string query_id;     ///< of the example
    std::string query_from;   ///< where it came from

    /// What unit norms cost, when they were asked for.
    struct UnitNorm {
        std::uint64_t scaled = 0;       ///< vectors that were not of unit norm
        std::size_t queries = 0;        ///< compared; 0: there were none to compare
        std::size_t first_changed = 0;  ///< queries with another best page
        std::size_t list_changed = 0;   ///< queries whose ten best changed in any way
        double overlap = 1;             ///< mean share of the ten best that stay
    };
    std::optional<UnitNorm> unit_norm;

    bool uploaded = false;
    std::size_t resumed_pages = 0;  ///< in the server already, from an earlier run
    std::size_t requests = 0;
    std::size_t retried = 0;  ///< requests that had to be sent again
    std::vector<std::string> notes;
};

struct ExportTargetInfo {
    std::string name;
    std::string summary;
    bool uploads = false;  ///< takes --url
};
std::vector<ExportTargetInfo> export_target_list();

/// Everything a target needs to hold an index: settings, data, a loader, an example query; or, with a URL, the
/// upload itself, which goes on where it stopped when the same call is made again.
ExportReport export_index(const ExportOptions& options, const Progress& progress = {});

}  // namespace marginmerge
