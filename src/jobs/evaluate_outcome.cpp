#include "jobs/evaluate_outcome.h"

#include "core/share.h"

namespace marginmerge {

std::vector<std::byte> pack(const QueryOutcome& o) {
    ByteWriter out;
    out.put(o.judged);
    out.put(o.full);
    out.put(std::span<const IndexOutcome>(o.indexes));
    for (const auto& scores : o.scores) out.put(std::span<const float>(scores));
    return {out.bytes().begin(), out.bytes().end()};
}

QueryOutcome unpack(std::span<const std::byte> bytes, std::size_t indexes, std::size_t pages) {
    ByteReader in(bytes);
    QueryOutcome o;
    o.judged = in.take<std::uint64_t>();
    o.full = in.take<Quality>();
    o.indexes.resize(indexes);
    in.take(std::span<IndexOutcome>(o.indexes));
    for (std::size_t i = 0; pages > 0 && i < indexes + 1; ++i) in.take(std::span<float>(o.scores.emplace_back(pages)));
    return o;
}

}  // namespace marginmerge
