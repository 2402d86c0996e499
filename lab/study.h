#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lab/findings.h"
#include "lab/table.h"
#include "lab/workbench.h"

namespace marginmerge::lab {

/// A study as its file describes it, with the quick settings merged in when asked for.
struct StudySpec {
    std::string id;  ///< file name
    std::string title;
    std::string kind;     ///< which function runs it
    std::string summary;  ///< what it asks, for --help and the report
    nlohmann::json fields;
    std::vector<std::uint64_t> seeds;
    std::vector<double> keeps;
    bool quick = false;

    std::vector<double> numbers(const char* field) const;
};

struct Figure {
    std::string id, caption, svg;
};

/// What a study leaves behind.
struct StudyOutput {
    std::string id, title, summary;
    std::vector<Table> tables;
    std::vector<Figure> figures;
    std::vector<Finding> findings;
    std::vector<std::string> notes;
    nlohmann::json data;  ///< anything beyond the runs, for programs
    /// Further CSV files: name and text. Names that start with "times" hold measured times and differ from run to run.
    std::vector<std::pair<std::string, std::string>> files;
};

/// A study by name or as a path of a .json file; `seed` shifts its seeds when given.
StudySpec load_study(const std::string& name, bool quick, std::optional<std::uint64_t> seed);
/// Every study, in the paper's order.
std::vector<std::string> study_names();

StudyOutput run_study(Workbench& bench, const StudySpec& spec);

// One function per kind, each in study_KIND.cpp.
StudyOutput study_grid(Workbench&, const StudySpec&);
StudyOutput study_factorial(Workbench&, const StudySpec&);
StudyOutput study_seeds(Workbench&, const StudySpec&);
StudyOutput study_losses(Workbench&, const StudySpec&);
StudyOutput study_transfer(Workbench&, const StudySpec&);
StudyOutput study_compressibility(Workbench&, const StudySpec&);
StudyOutput study_pruning(Workbench&, const StudySpec&);
StudyOutput study_cost(Workbench&, const StudySpec&);
StudyOutput study_advisor(Workbench&, const StudySpec&);

/// "5%" for 0.05.
std::string percent(double share);

}  // namespace marginmerge::lab
