#pragma once

#include "merge/clusters.h"
#include "merge/fitted_solver.h"
#include "merge/fitted_start.h"
#include "merge/page.h"
#include "select/registry.h"

namespace marginmerge {

/// Everything the construction of one page needs besides its input, kept between pages so that the
/// steady state allocates nothing. One for each thread.
struct PageWorkspace {
    PageResponses responses;
    AnchorWorkspace anchor_work;
    AnchorSelection selection;
    AnchorRows anchor_rows;
    PageClusters clusters;
    ClusterLists lists;
    Matrix uniform_centroids;     ///< [k,d]
    Matrix response_centroids;    ///< [k,d]
    Matrix gram;                  ///< a block of similarities inside one cluster
    Matrix standardised;          ///< [n,15]
    Matrix hidden;                ///< a block of activations
    std::vector<float> residual;  ///< h_i [n]
    std::vector<float> weight;    ///< unnormalised weights, then alpha_i [n]
    std::vector<std::int32_t> order;

    Matrix changed;  ///< [k,d] what an alignment adds

    FitWorkspace fit;  ///< for fitted
    FitStart fit_start;

    // For kmeans, ward, tome and whatever else works on centres of its own.
    Matrix centres;
    Matrix even;
    Matrix other;
    Matrix row;
    std::vector<float> values;
    std::vector<float> sizes;
    std::vector<std::int32_t> labels;
    std::vector<std::int32_t> links;
};

}  // namespace marginmerge
