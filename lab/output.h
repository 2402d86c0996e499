#pragma once

#include <filesystem>
#include <string>

#include "lab/study.h"

namespace marginmerge::lab {

/// Where results come from: data, program, machine level. The same for every file of a run of the lab.
nlohmann::json provenance(const Workbench& bench, bool quick);

/// runs.csv (without times: two runs with the same seed are equal byte for byte), study.json, tables and figures.
void write_study(const std::filesystem::path& folder, const StudyOutput& study, const std::vector<RunRecord>& runs,
                 const nlohmann::json& provenance);

std::string findings_csv(const std::vector<StudyOutput>& studies);
std::string findings_markdown(const std::vector<StudyOutput>& studies);

/// One page that needs nothing but itself.
std::string html_report(const std::vector<StudyOutput>& studies, const Workbench& bench,
                        const nlohmann::json& provenance);

}  // namespace marginmerge::lab
