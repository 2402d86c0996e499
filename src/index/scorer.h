#pragma once

#include <memory>
#include <optional>
#include <span>

#include "index/segment.h"
#include "kernels/maxsim.h"

namespace marginmerge {

/// Which vectors of a page a pass looks at.
struct ScoreMode {
    enum class Kind { stored, prefix, share, bits, full };
    Kind kind = Kind::stored;
    std::size_t prefix = 0;  ///< vectors (0: a quarter of the page's, at least 4)
    double share = 1;        ///< of the page's original count
};

/// One query, prepared for whatever the segments of an index hold. Shared by threads once made.
class Scorer {
public:
    Scorer(VectorsView query, VectorCode code, const ScoreMode& mode);

    /// out[i] = score of page first + i of the segment.
    void score(const Segment& segment, std::size_t first, std::span<float> out) const;

private:
    void score_prefixes(const Segment& segment, std::size_t first, std::span<float> out) const;

    ScoreMode mode_;
    std::optional<PreparedQuery> plain_;
    std::optional<PreparedInt8Query> int8_;
    std::optional<PreparedBitsQuery> bits_;
};

}  // namespace marginmerge
