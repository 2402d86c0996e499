#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "marginmerge/core/matrix.h"
#include "marginmerge/core/progress.h"

namespace marginmerge {

struct InspectOptions {
    std::filesystem::path path;  ///< a file of ours or an index folder
    bool verify = false;         ///< look at every value however large the file is
    std::size_t threads = 0;     ///< 0: all cores
};

/// What the vectors of a multi-vector or compressed file look like.
struct VectorsReport {
    std::size_t documents = 0;
    std::uint64_t vectors = 0;
    std::size_t dim = 0;
    std::string type;                  ///< "F16", or the code of an index
    std::size_t fewest = 0, most = 0;  ///< vectors a document
    std::size_t empty_documents = 0;
    std::size_t with_grid = 0;  ///< documents whose patch grid is known
    bool has_boxes = false;
    std::size_t scanned = 0;                              ///< documents whose values were read
    std::uint64_t zero_vectors = 0;                       ///< among them
    double norm_least = 0, norm_mean = 0, norm_most = 0;  ///< among them
    double redundancy = 0;                                ///< mean n / effective rank, 0 when not measured
    std::size_t redundancy_documents = 0;                 ///< on how many
};

/// What a compressed file adds.
struct CompressedReport {
    std::uint64_t source_vectors = 0;
    double kept = 0;                       ///< stored / source vectors
    double bytes_per_document = 0;         ///< vectors only
    double source_bytes_per_document = 0;  ///< the same type
    std::uint64_t unowned = 0;             ///< source vectors that nothing stands for
    std::uint64_t idle = 0;                ///< stored vectors that stand for nothing
};

struct ModelReport {
    std::size_t prototypes = 0, dim = 0, probes = 0;
    std::size_t remembering = 0;  ///< pages of which it remembers what judged queries asked
    bool network = false;
    bool uses_grid = false;
    bool aligned = false;  ///< its recipe applies what it learned from judgements
    std::string preset, anchors, fill, representative;
    double keep = 0;
    std::string settings, provenance;  ///< JSON texts, may be empty
};

struct IndexReport {
    std::size_t pages = 0, deleted = 0, segments = 0;
    std::uint64_t generation = 0;
    std::uint64_t vectors = 0, source_vectors = 0, vector_bytes = 0, bytes = 0, full_bytes = 0;
    std::string code;
};

struct InspectReport {
    struct Tensor {
        std::string name, type;
        std::vector<std::uint64_t> shape;
    };
    std::string kind;  ///< multi-vector | compressed | model | coded | index
    std::uint64_t bytes = 0;
    std::vector<Tensor> tensors;
    std::map<std::string, std::string> metadata;
    std::optional<VectorsReport> vectors;
    std::optional<CompressedReport> compressed;
    std::optional<ModelReport> model;
    std::optional<IndexReport> index;
    std::vector<std::string> notes;     ///< odd but usable
    std::vector<std::string> problems;  ///< unsound; the first ones, one line each
    bool sound() const { return problems.empty(); }
};

/// Describes and checks any file of ours. A file that cannot be opened at all is an Error; one
/// that opens but holds bad values comes back with problems. Values are scanned completely up to
/// 2 GiB of vectors or with `verify`, on an even sample of documents beyond.
InspectReport inspect(const InspectOptions& options, const Progress& progress = {});

}  // namespace marginmerge
