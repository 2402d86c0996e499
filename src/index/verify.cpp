#include <cmath>
#include <unordered_set>

#include "index/limited_json.h"
#include "index/state.h"
#include "index/writer_files.h"
#include "marginmerge/core/error.h"
#include "marginmerge/index/index_writer.h"

#include <fmt/core.h>

namespace marginmerge {

namespace {

namespace fs = std::filesystem;

void verify_file(const fs::path& folder, const FileEntry& entry, VerifyReport& report) {
    const auto path = folder / entry.file;
    std::error_code error;
    const std::uint64_t size = fs::file_size(path, error);
    if (error) {
        report.problems.push_back(fmt::format("{}: expected a file of {} bytes, found none: {}", path.string(),
                                              entry.bytes, error.message()));
        return;
    }
    try {
        ++report.files;
        report.bytes += size;
        if (size != entry.bytes) {
            report.problems.push_back(fmt::format("{}: expected {} bytes, found {}", path.string(), entry.bytes, size));
            return;
        }
        const std::uint64_t found = checksum_file(path);
        if (found != entry.checksum)
            report.problems.push_back(fmt::format("{}: xxh64: expected {}, found {}", path.string(),
                                                  checksum_text(entry.checksum), checksum_text(found)));
    } catch (const std::exception& error) {
        report.problems.push_back(fmt::format("{}: {}", path.string(), error.what()));
    }
}

void verify_pages(const Index& index, VerifyReport& report, const Progress& progress) {
    std::unordered_set<std::string> ids;
    for (std::size_t i = 0; i < index.size(); ++i) {
        const std::string id = index.id(i);
        if (!ids.insert(id).second) report.problems.push_back(fmt::format("page '{}': there are two of this id", id));
        const Matrix vectors = index.vectors(i);
        for (const float x : vectors.flat()) {
            if (std::isfinite(x)) continue;
            report.problems.push_back(fmt::format("page '{}': expected finite numbers, found {}", id, x));
            break;
        }
        try {
            const auto text = index.metadata(i);
            if (!text.empty() && !parse_limited_json(text, "metadata of page '" + id + "'").is_object())
                report.problems.push_back(fmt::format("metadata of page '{}': expected a JSON object", id));
        } catch (const Error& error) {
            report.problems.emplace_back(error.what());
        }
        if (progress && i % 256 == 0) progress({"verify", "pages", i, index.size(), {}});
    }
    if (progress) progress({"verify", "pages", index.size(), index.size(), {}});
    report.pages = index.size();
}

}  // namespace

VerifyReport verify_index(const fs::path& path, const Progress& progress) {
    for (int attempt = 0;; ++attempt) {
        VerifyReport report;
        std::uint64_t generation = 0;
        const bool folder = fs::is_directory(path);
        try {
            if (folder) {
                const Manifest manifest = read_manifest(path);
                generation = manifest.generation;
                for (const FileEntry& entry : manifest.files()) verify_file(path, entry, report);
                report.leftovers = leftovers(path, manifest);
            } else if (fs::exists(path)) {
                report.files = 1;
                report.bytes = fs::file_size(path);
            }
            if (report.problems.empty()) verify_pages(*Index::open(path), report, progress);
        } catch (const Error& error) {
            if (error.code() == ErrorCode::not_found || error.code() == ErrorCode::io) throw;
            report.problems.emplace_back(error.what());
        }
        // A writer that finished meanwhile took away files of the state we looked at.
        const bool moved = folder && !report.problems.empty() && read_manifest(path).generation != generation;
        if (!moved || attempt >= 5) return report;
    }
}

}  // namespace marginmerge
