// A seeded draw without replacement; the order of drawing is the pick order.
#include <numeric>

#include "core/random.h"
#include "select/registry.h"

namespace marginmerge {

void select_random(const AnchorRequest& request, AnchorWorkspace& w, AnchorSelection& out) {
    const std::size_t n = request.vectors.rows;
    w.pool.resize(n);
    std::iota(w.pool.begin(), w.pool.end(), 0);
    Random random(request.seed);
    out.order.clear();
    out.gains.clear();
    for (std::size_t c = 0; c < request.count; ++c) {
        std::swap(w.pool[c], w.pool[c + random.below(n - c)]);
        out.order.push_back(w.pool[c]);
    }
    out.reasoned = out.order.size();
}

}  // namespace marginmerge
