#include "jobs/evaluate_outcome.h"

#include <cstring>
#include <type_traits>

#include "core/fail.h"

namespace marginmerge {

namespace {

template <class T>
void put(std::vector<std::byte>& out, const T* values, std::size_t count) {
    static_assert(std::is_trivially_copyable_v<T>);
    const std::size_t at = out.size();
    out.resize(at + count * sizeof(T));
    if (count > 0) std::memcpy(out.data() + at, values, count * sizeof(T));
}

template <class T>
void take(std::span<const std::byte>& in, T* values, std::size_t count) {
    if (in.size() < count * sizeof(T)) fail(ErrorCode::internal, "evaluate: expected more from another process");
    if (count > 0) std::memcpy(values, in.data(), count * sizeof(T));
    in = in.subspan(count * sizeof(T));
}

}  // namespace

std::vector<std::byte> pack(const QueryOutcome& o) {
    std::vector<std::byte> out;
    put(out, &o.judged, 1);
    put(out, &o.full, 1);
    put(out, o.indexes.data(), o.indexes.size());
    for (const auto& scores : o.scores) put(out, scores.data(), scores.size());
    return out;
}

QueryOutcome unpack(std::span<const std::byte> in, std::size_t indexes, std::size_t pages) {
    QueryOutcome o;
    take(in, &o.judged, 1);
    take(in, &o.full, 1);
    o.indexes.resize(indexes);
    take(in, o.indexes.data(), indexes);
    for (std::size_t i = 0; pages > 0 && i < indexes + 1; ++i) take(in, o.scores.emplace_back(pages).data(), pages);
    return o;
}

}  // namespace marginmerge
