#include "core/share.h"

#include <algorithm>
#include <string>

#include "core/fail.h"
#include "core/parallel.h"

namespace marginmerge {

std::span<const std::byte> ByteReader::next(std::size_t count) {
    if (count > bytes_.size())
        fail(ErrorCode::internal, "expected {} bytes from another process, found {}", count, bytes_.size());
    const auto front = bytes_.first(count);
    bytes_ = bytes_.subspan(count);
    return front;
}

void share_for(Cluster* cluster, std::size_t count, std::size_t threads,
               const std::function<void(std::size_t, std::size_t)>& body,
               const std::function<void(std::size_t, ByteWriter&)>& put,
               const std::function<void(std::size_t, ByteReader&)>& take) {
    if (cluster == nullptr) return parallel_for_workers(count, threads, body);
    const Slice mine = slice_of(count, cluster);
    parallel_for_workers(mine.end - mine.begin, threads,
                         [&](std::size_t i, std::size_t worker) { body(mine.begin + i, worker); });
    ByteWriter out;
    for (std::size_t i = mine.begin; i < mine.end; ++i) put(i, out);
    const auto all = cluster->gather(out.bytes());
    for (std::size_t r = 0; r < all.size(); ++r) {
        if (r == cluster->rank()) continue;
        ByteReader in(all[r]);
        const Slice theirs = slice_of(count, r, cluster->size());
        for (std::size_t i = theirs.begin; i < theirs.end; ++i) take(i, in);
    }
}

void check_same(Cluster* cluster, const std::string& text, const char* what) {
    if (cluster == nullptr) return;
    const auto all = cluster->gather(std::as_bytes(std::span(text)));
    const auto shown = [&](std::size_t r) {
        const std::string_view full(reinterpret_cast<const char*>(all[r].data()), all[r].size());
        return full.substr(0, 100);
    };
    for (std::size_t r = 1; r < all.size(); ++r)
        if (all[r] != all[0])
            fail(ErrorCode::invalid_argument, "process {}: {}: expected {} as in process 0, found {}", r, what,
                 shown(0), shown(r));
}

}  // namespace marginmerge
