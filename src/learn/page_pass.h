#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/maxsim.h"
#include "learn/network_pass.h"
#include "marginmerge/core/matrix.h"
#include "marginmerge/merge/model.h"
#include "merge/page.h"

namespace marginmerge {

/// Everything training may move, in one flat buffer: the network, then the three constants of the
/// base. `paper` moves the network only.
struct Parameters {
    static constexpr std::size_t inverse_tau = Network::parameter_count;  ///< 1/tau_a
    static constexpr std::size_t relevance_power = inverse_tau + 1;       ///< p
    /// gamma in r = m |m|^-gamma, m the weighted mean: 1 is unit norm, larger lengthens the
    /// representatives of diffuse clusters.
    static constexpr std::size_t norm_power = relevance_power + 1;
    static constexpr std::size_t count = norm_power + 1;

    Network network;
    static constexpr float least_base = 1e-6F;

    float base[3] = {10.0F, 0.5F, 1.0F};

    float get(std::size_t i) const { return i < inverse_tau ? network.parameters[i] : base[i - inverse_tau]; }
    float& at(std::size_t i) { return i < inverse_tau ? network.parameters[i] : base[i - inverse_tau]; }
};

using Gradient = std::array<float, Parameters::count>;

/// One page as training sees it: frozen clusters and features. Vectors are borrowed.
struct TrainingPage {
    VectorsView vectors;                     ///< [n,d] in any storage type
    std::vector<std::int32_t> anchors;       ///< [k]
    std::vector<std::int32_t> assign;        ///< [n]
    std::vector<std::int32_t> cluster_size;  ///< [k]
    std::vector<float> anchor_cosine;        ///< v_i . v_a [n]
    std::vector<float> log_relevance;        ///< log(s_i + eps) [n]
    Matrix features;                         ///< standardised [15, padded n]

    std::size_t patches() const { return assign.size(); }
    std::size_t clusters() const { return anchors.size(); }
};

TrainingPage make_training_page(VectorsView vectors, const PageClusters& clusters, const FeatureScaling& scaling,
                                double epsilon);

/// The terms that look at a page alone, and how strongly each counts.
struct PageTerms {
    double weight = 0;   ///< of the mean squared residual
    double entropy = 0;  ///< of mean max(0, 0.2 - E_c)^2
    double anchor = 0;   ///< of mean max(0, 0.25/|C_c| - alpha_a)^2
};

/// A page on its way through forward and backward. Reused from step to step.
class PagePass {
public:
    /// Residuals, weights alpha and representatives. `keep_trace` false skips what only backward needs.
    void forward(const TrainingPage& page, const Parameters& parameters, double clip, bool keep_trace);
    /// MaxSim of the query against the representatives; remembers the winners.
    float score(const PreparedQuery& query);

    ConstMatrix representatives() const { return representatives_.view(); }
    double squared_residuals() const;  ///< sum of h_i^2
    double entropy_penalty() const;    ///< mean over clusters of max(0, 0.2 - E_c)^2; after a forward with a trace
    double anchor_penalty() const;     ///< mean over clusters of max(0, 0.25/|C_c| - alpha_a)^2

    /// Adds to `gradient` the derivative of
    ///   d_score * score + weight_scale * sum h^2 + entropy_scale * entropy_penalty + anchor_scale * anchor_penalty.
    void backward(const PreparedQuery& query, double d_score, const PageTerms& scales, std::span<float> gradient);

private:
    void measure_entropies();

    const TrainingPage* page_ = nullptr;
    const Parameters* parameters_ = nullptr;
    float clip_ = 5;
    NetworkTrace trace_;
    std::vector<float> raw_;  ///< network output before clipping, [padded n]
    std::vector<float> h_;    ///< clipped
    std::vector<float> alpha_;
    std::vector<float> log_alpha_;   ///< log(alpha_i + 1e-8); only with a trace, like the next
    std::vector<double> entropies_;  ///< E_c = -sum alpha log(alpha + 1e-8) / log(max(|C_c|, 2)) of every cluster
    Matrix means_;                   ///< sum alpha v, [k,d]
    std::vector<float> norms_;
    Matrix representatives_;
    std::vector<float> best_;
    std::vector<std::int32_t> winner_;
};

}  // namespace marginmerge
