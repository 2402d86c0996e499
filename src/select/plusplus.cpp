// k-means++ seeding: each pick is drawn with probability proportional to 1 - similarity to the
// nearest pick (half the squared distance of unit vectors).
#include <algorithm>

#include "kernels/products.h"
#include "select/draw.h"
#include "select/registry.h"

namespace marginmerge {

void select_plusplus(const AnchorRequest& request, AnchorWorkspace& w, AnchorSelection& out) {
    const ConstMatrix v = request.vectors;
    Random random(request.seed);
    w.distance.assign(v.rows, 2.0f);
    w.picked.assign(v.rows, 0);
    out.order.clear();
    out.gains.clear();
    std::size_t pick = random.below(v.rows);
    while (true) {
        out.order.push_back(static_cast<std::int32_t>(pick));
        w.picked[pick] = 1;
        if (out.order.size() == request.count) break;
        for (std::size_t i = 0; i < v.rows; ++i) {
            const float reached = std::max(0.0f, 1.0f - dot(v.row(i), v.row(pick), v.cols));
            w.distance[i] = w.picked[i] ? 0.0f : std::min(w.distance[i], reached);
        }
        pick = draw_in_proportion(w.distance, random);  // picked patches have distance 0
        // Every remaining patch equals a pick: take the lowest numbers.
        if (pick == v.rows)
            pick = static_cast<std::size_t>(std::find(w.picked.begin(), w.picked.end(), 0) - w.picked.begin());
    }
    out.reasoned = out.order.size();
}

}  // namespace marginmerge
