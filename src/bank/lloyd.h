#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "marginmerge/core/cluster.h"
#include "marginmerge/core/matrix.h"

namespace marginmerge {

/// Points with weights; squared norms are computed once.
struct WeightedPoints {
    WeightedPoints(ConstMatrix points, std::span<const float> weights);
    ConstMatrix x;              ///< [n,d]
    std::span<const float> w;   ///< [n]
    std::vector<float> square;  ///< |x_i|^2 [n]
};

/// One assignment of all points to their nearest centres, with what the next step needs.
struct Assignment {
    std::vector<std::int32_t> label;  ///< [n]; the lower centre on a tie
    std::vector<float> distance;      ///< squared, [n]
    std::vector<double> weight;       ///< of each centre's points, [k]
    std::vector<double> sums;         ///< weighted, [k*d]
    double inertia = 0;
};

/// Fills `out`. Blocks of points are summed on their own and then added in order, so the result
/// does not depend on the number of threads, nor of the processes of a cluster that share them.
void assign_points(const WeightedPoints& points, ConstMatrix centres, std::size_t threads, Assignment& out,
                   Cluster* cluster = nullptr);

/// Centres become the means of their points. A centre without points moves to the point that adds
/// most to the inertia (the second such centre to the second such point, and so on). Returns how
/// far the centres moved, squared and summed.
double move_centres(const WeightedPoints& points, const Assignment& assignment, Matrix& centres);

}  // namespace marginmerge
