#pragma once

#include <cstdint>
#include <functional>
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
    Matrix products;            ///< x_i . x_j of all pairs [n,n], or empty: see keep_products

    /// For seeding, which wants the products of the points it draws with all others, start after start: finds those of
    /// all pairs once, if points are few and `draws` many. The results are the same bits without it.
    void keep_products(std::size_t draws, std::size_t threads);
};

/// One assignment of all points to their nearest centres, with what the next step needs.
struct Assignment {
    Matrix centres;                   ///< that it was made for [k,d]
    std::vector<std::int32_t> label;  ///< [n]; the lower centre on a tie
    std::vector<float> score;         ///< x.c - |c|^2/2 of a point and its centre c, [n]
    std::vector<double> weight;       ///< of each centre's points, [k]
    std::vector<double> sums;         ///< weighted, [k*d]
    double inertia = 0;

    /// Squared distance of point i to its centre.
    float distance(const WeightedPoints& points, std::size_t i) const {
        const float gap = points.square[i] - 2.0f * score[i];
        return gap > 0.0f ? gap : 0.0f;
    }
};

/// Fills `out`, which is new or an earlier assignment of the same points: then points whose centre has not moved are
/// compared only with those that have, which gives the same bits. Blocks of points are summed on their own and then
/// added in order, so the result does not depend on the number of threads, nor of the processes of a cluster.
void assign_points(const WeightedPoints& points, ConstMatrix centres, std::size_t threads, Assignment& out,
                   Cluster* cluster = nullptr);

/// Centres become the means of their points. A centre without points moves to the point that adds
/// most to the inertia (the second such centre to the second such point, and so on). Returns how
/// far the centres moved, squared and summed.
double move_centres(const WeightedPoints& points, const Assignment& assignment, Matrix& centres);

struct LloydOptions {
    std::size_t iterations = 50;  ///< at most
    std::size_t threads = 0;
    Cluster* cluster = nullptr;
    std::function<void()> step;  ///< called once an iteration; may be empty
};

/// Lloyd's iterations until nothing moves noticeably; returns how many. Afterwards `assignment`, new or one of these
/// points, belongs to `centres`.
std::size_t lloyd(const WeightedPoints& points, const LloydOptions& options, Matrix& centres, Assignment& assignment);

}  // namespace marginmerge
