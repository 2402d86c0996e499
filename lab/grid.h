#pragma once

#include <map>
#include <string>
#include <vector>

#include "lab/aggregate.h"
#include "lab/study.h"

namespace marginmerge::lab {

/// Methods x budgets x datasets, gathered once; what most tables are printed from.
class Grid {
public:
    Grid(Workbench& bench, std::vector<Method> methods, std::vector<double> keeps, const StudySpec& spec);

    const std::vector<Method>& methods() const { return methods_; }
    const Method& method(const std::string& id) const;
    const std::vector<double>& keeps() const { return keeps_; }
    /// One entry a dataset, in the order of the workbench.
    const std::vector<Figures>& at(const std::string& method, double keep) const;
    /// Mean of a figure over the datasets that have it; nothing when none has.
    std::optional<double> average(const std::string& method, double keep, double (Figures::*figure)() const) const;

private:
    std::vector<Method> methods_;
    std::vector<double> keeps_;
    std::map<std::pair<std::string, double>, std::vector<Figures>> figures_;
};

/// Rows are methods, columns datasets and their average under each budget (the paper's main layout).
Table method_table(const Workbench& bench, const Grid& grid, const std::string& paper_table,
                   double (Figures::*figure)() const, int digits, bool mark);

/// Columns of a per-dataset table: short names, "Avg." last when there are several.
std::vector<std::string> dataset_columns(const Workbench& bench);

/// nDCG@5 against the share kept, a panel a dataset and one for the average.
Figure curves(const Workbench& bench, const Grid& grid, const std::string& id, const std::string& caption);

/// Tests that a study file lists under "findings".
void declared_findings(const Grid& grid, const nlohmann::json& list, StudyOutput& output);

/// Reasons why methods were left out, once each.
void note_skipped(const Workbench& bench, const Grid& grid, StudyOutput& output);

}  // namespace marginmerge::lab
