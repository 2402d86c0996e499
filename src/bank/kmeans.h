#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "marginmerge/core/cluster.h"
#include "marginmerge/core/matrix.h"

namespace marginmerge {

struct KMeansOptions {
    std::size_t clusters = 128;
    std::size_t initialisations = 5;
    std::size_t iterations = 50;
    std::size_t mini_batch_above = 20'000;
    std::size_t mini_batch = 8'192;
    std::size_t polish = 10;
    std::size_t rounds = 12;  ///< of relocation after the best start
    std::uint64_t seed = 42;
    std::size_t threads = 0;
    Cluster* cluster = nullptr;  ///< processes that share the passes over all points
    std::function<void(std::size_t done, std::size_t total)> progress;  ///< in passes; may be empty
};

struct KMeansResult {
    Matrix means;                      ///< [K,d], K <= clusters: no two the same, none empty
    std::vector<std::int32_t> labels;  ///< [n]
    double inertia = 0;                ///< sum_i w_i |x_i - mean|^2
    std::size_t iterations = 0;
    bool mini_batch = false;
};

/// Weighted Euclidean k-means with greedy k-means++ starts; the best one is relocated (relocate.h). Above
/// `mini_batch_above` points the starts are tried on a sample, refined by mini-batches and polished by full passes. The
/// result is a function of the points, weights, options and kernel alone: sums are reduced in a fixed order.
KMeansResult weighted_kmeans(ConstMatrix points, std::span<const float> weights, const KMeansOptions& options);

}  // namespace marginmerge
