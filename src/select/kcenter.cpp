// Farthest-first anchors from a seeded start.
#include "core/random.h"
#include "select/registry.h"

namespace marginmerge {

void select_kcenter(const AnchorRequest& request, AnchorWorkspace& w, AnchorSelection& out) {
    const std::size_t n = request.vectors.rows;
    const std::size_t start = request.start.value_or(Random(request.seed).below(n));
    out.order.assign(1, static_cast<std::int32_t>(start));
    out.gains.clear();
    extend_farthest(request.vectors, request.count, w.farthest, out.order);
    out.reasoned = out.order.size();
}

}  // namespace marginmerge
