#include "index/scorer.h"

#include <algorithm>
#include <cmath>

#include "core/fail.h"

namespace marginmerge {

namespace {

std::size_t prefix_of(const Segment& segment, std::size_t page, const ScoreMode& mode) {
    const std::size_t stored = segment.layout().vectors_of(page);
    if (mode.kind == ScoreMode::Kind::share) {
        const auto wanted = std::ceil(mode.share * static_cast<double>(segment.source_vectors_of(page)) - 1e-9);
        return std::clamp<std::size_t>(static_cast<std::size_t>(wanted), 1, std::max<std::size_t>(stored, 1));
    }
    return mode.prefix > 0 ? mode.prefix : std::max<std::size_t>(4, (stored + 3) / 4);
}

}  // namespace

Scorer::Scorer(VectorsView query, VectorCode code, const ScoreMode& mode) : mode_(mode) {
    if (mode.kind == ScoreMode::Kind::bits || (code == VectorCode::bits && mode.kind != ScoreMode::Kind::full))
        bits_.emplace(query);
    else if (code == VectorCode::int8 && mode.kind != ScoreMode::Kind::full)
        int8_.emplace(query);
    else
        plain_.emplace(query);
}

void Scorer::score(const Segment& segment, std::size_t first, std::span<float> out) const {
    if (mode_.kind == ScoreMode::Kind::prefix || mode_.kind == ScoreMode::Kind::share)
        return score_prefixes(segment, first, out);
    const bool full = mode_.kind == ScoreMode::Kind::full;
    if (full && segment.full() == nullptr)
        fail(ErrorCode::unsupported, "search: full vectors were asked for, but the index does not keep them");
    const MultiVectorSet& layout = full ? *segment.full() : segment.layout();
    const auto offsets = layout.offsets().subspan(first, out.size() + 1);
    if (mode_.kind == ScoreMode::Kind::bits)
        maxsim_many(*bits_, segment.sign_bits(), offsets, out);
    else if (full || segment.plain())
        maxsim_many(*plain_, layout.all_vectors(), offsets, out);
    else if (segment.code() == VectorCode::int8)
        maxsim_many(*int8_, segment.int8_codes(), offsets, out);
    else
        maxsim_many(*bits_, segment.bit_codes(), offsets, out);
}

void Scorer::score_prefixes(const Segment& segment, std::size_t first, std::span<float> out) const {
    for (std::size_t i = 0; i < out.size(); ++i) {
        const auto begin = static_cast<std::size_t>(segment.layout().offsets()[first + i]);
        const std::size_t count =
            std::min(segment.layout().vectors_of(first + i), prefix_of(segment, first + i, mode_));
        if (segment.plain())
            out[i] = maxsim(*plain_, segment.layout().all_vectors().middle_rows(begin, count));
        else if (segment.code() == VectorCode::int8)
            out[i] = maxsim(*int8_, segment.int8_codes().middle_rows(begin, count));
        else
            out[i] = maxsim(*bits_, segment.bit_codes().middle_rows(begin, count));
    }
}

}  // namespace marginmerge
