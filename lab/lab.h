#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "lab/study.h"
#include "marginmerge/core/progress.h"

namespace marginmerge::lab {

struct LabOptions {
    std::vector<std::string> studies;  ///< names, .json files, or "all"
    bool quick = false;                ///< small data and one seed: minutes
    std::vector<std::string> data;     ///< folders, cache folders or dataset files; empty: the synthetic families
    bool synthetic = false;            ///< the synthetic families as well when `data` is given
    std::filesystem::path documents, queries, qrels;  ///< one more dataset, given file by file
    std::string encoder;                ///< of datasets that do not say: those of one encoder are fitted together
    std::optional<std::uint64_t> seed;  ///< first seed instead of the studies' own
    std::filesystem::path output;
    std::filesystem::path store;  ///< finished runs; empty: output/store
    bool any_build = false;       ///< take runs of other builds of this version
    std::size_t threads = 0;
    Progress progress;
};

struct LabReport {
    std::vector<StudyOutput> studies;
    std::vector<std::string> datasets;
    std::size_t computed = 0, reused = 0;  ///< runs
    double seconds = 0;
    std::filesystem::path html;
};

/// Runs studies and writes, into `output`: a folder for each study (runs.csv, study.json, tables as Markdown, LaTeX and
/// CSV, figures as SVG), findings.csv, findings.md and report.html.
LabReport run_lab(const LabOptions& options);

}  // namespace marginmerge::lab
