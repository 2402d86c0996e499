#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "marginmerge/core/matrix.h"

namespace marginmerge::test {

/// Reference arrays (float32 or int32, C order) from tests/data. A 1-D array becomes one row.
Matrix load_floats(const std::filesystem::path& path);
std::vector<std::int32_t> load_ints(const std::filesystem::path& path);

/// tests/data/oracle/NAME
std::filesystem::path oracle(const std::string& name);

}  // namespace marginmerge::test
