#pragma once

#include <memory>

#include "io/vector_source.h"
#include "io/zip_archive.h"

namespace marginmerge {

/// True when the archive is one that torch.save wrote (it holds data.pkl).
bool is_torch_archive(const ZipArchive& archive);

/// The documents of a torch file: a tensor [n,d] or [n,T,d], a list or tuple of such (nested as
/// deep as one likes), a dict of id to tensor, or a dict that names its parts ("embeddings", "ids",
/// "offsets"); see docs/format.md.
std::unique_ptr<VectorSource> open_torch_source(std::unique_ptr<ZipArchive> archive, const std::string& stem,
                                                const std::vector<std::int64_t>& boundaries);

}  // namespace marginmerge
