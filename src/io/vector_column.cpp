#include "io/vector_column.h"

#include "core/fail.h"
#include "io/part_names.h"

namespace marginmerge {

std::size_t choose_vector_column(const std::vector<VectorColumn>& columns, const std::string& source) {
    if (columns.empty())
        fail(ErrorCode::unsupported, "{}: expected a column of lists of vectors (list<list<float>>), found none",
             source);
    std::string names;
    for (const auto& column : columns) names += (names.empty() ? "'" : ", '") + column.name + "'";
    for (const int depth : {2, 1}) {
        std::vector<std::size_t> usual, fitting;
        for (std::size_t i = 0; i < columns.size(); ++i) {
            if (columns[i].depth != depth) continue;
            fitting.push_back(i);
            if (part_names::is(part_names::vectors, columns[i].name)) usual.push_back(i);
        }
        if (usual.size() == 1) return usual[0];
        if (fitting.size() == 1) return fitting[0];
        if (!fitting.empty())
            fail(ErrorCode::unsupported,
                 "{}: expected one column of vectors, or one named 'vectors' or 'embeddings', found {}; rename or drop "
                 "columns",
                 source, names);
    }
    fail(ErrorCode::internal, "{}: no column of depth 1 or 2", source);
}

}  // namespace marginmerge
