#pragma once

#include <cstdint>
#include <string_view>

#include "marginmerge/core/matrix.h"

namespace marginmerge {

/// One row of the tables we write for other programs.
struct TableRow {
    std::int64_t position = 0;
    std::string_view id;
    std::string_view metadata;  ///< JSON text; empty: null
    ConstMatrix vectors;        ///< [n,d]
};

}  // namespace marginmerge
