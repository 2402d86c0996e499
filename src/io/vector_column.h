#pragma once

#include <string>
#include <vector>

namespace marginmerge {

/// A column of a table that could hold the vectors of documents.
struct VectorColumn {
    std::string name;  ///< of the top-level column
    int depth = 2;     ///< 2: a list of vectors a row, 1: one vector a row
};

/// Which of the columns holds the vectors: the one with a usual name, else the only one with lists of
/// vectors, else the only one. Error(unsupported) when there is none or the choice is not clear.
std::size_t choose_vector_column(const std::vector<VectorColumn>& columns, const std::string& source);

}  // namespace marginmerge
