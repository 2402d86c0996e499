#pragma once

#include "lab/dataset.h"

namespace marginmerge::lab {

/// The source with real files: a cache folder is imported, a synthetic corpus made, once, under `work`.
DatasetSource with_files(DatasetSource source, const std::filesystem::path& work, std::size_t threads,
                         const Progress& progress);

}  // namespace marginmerge::lab
