#pragma once

#include <optional>
#include <string>

#include "lab/dataset.h"

namespace marginmerge::lab {

/// The paper's published number for a cell, where it has that cell. `dataset` may be "Avg". Datasets are known by
/// name (case and suffixes do not matter), the backbone by the encoder's name; ColQwen2.5 where it says nothing.
std::optional<double> paper_cell(const std::string& table, const std::string& method, double keep,
                                 const std::string& dataset, const std::string& encoder = {});

/// "ArxivQA" for "arxivqa_test_subsampled"; empty for a dataset that is not in the paper.
std::string paper_dataset(const std::string& name);

}  // namespace marginmerge::lab
