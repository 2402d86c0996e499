#include "learn/page_pass.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/elementwise.h"
#include "kernels/products.h"

namespace marginmerge {

namespace {

constexpr double entropy_floor = 0.2;
constexpr double anchor_share = 0.25;
constexpr float entropy_epsilon = 1e-8F;
constexpr float smallest_norm = 1e-12F;

// What a pass needs only while it runs, kept by a thread from page to page.
struct Scratch {
    std::vector<float> highest;
    std::vector<double> total;
    Matrix d_means;
    std::vector<std::uint8_t> touched;
    std::vector<std::int32_t> moved;
    std::vector<float> by_score;
    std::vector<double> d_alpha, mean;
    std::vector<float> d_raw;
};

Scratch& scratch() {
    thread_local Scratch s;
    return s;
}

}  // namespace

TrainingPage make_training_page(VectorsView vectors, const PageClusters& clusters, const FeatureScaling& scaling,
                                double epsilon) {
    TrainingPage page;
    page.vectors = vectors;
    page.anchors = clusters.anchors;
    page.assign = clusters.assign;
    page.cluster_size.assign(page.anchors.size(), 0);
    for (const auto c : page.assign) ++page.cluster_size[static_cast<std::size_t>(c)];
    page.anchor_cosine = clusters.anchor_cosine;
    page.log_relevance.reserve(clusters.relevance.size());
    for (const float s : clusters.relevance) page.log_relevance.push_back(static_cast<float>(std::log(s + epsilon)));
    page.features = standardise_by_feature(clusters.features, scaling);
    return page;
}

// l_i = cos_i / tau_a + p log(s_i + eps) + h_i, alpha = softmax of l inside each cluster,
// m_c = sum alpha_i v_i, r_c = m_c |m_c|^-gamma.
void PagePass::forward(const TrainingPage& page, const Parameters& parameters, double clip, bool keep_trace) {
    page_ = &page;
    parameters_ = &parameters;
    clip_ = static_cast<float>(clip);
    const std::size_t n = page.patches(), k = page.clusters(), d = page.vectors.dim;
    raw_.resize(page.features.cols());
    network_forward(parameters.network, page.features, keep_trace ? &trace_ : nullptr, raw_);

    h_.resize(n);
    alpha_.resize(n);
    auto& highest = scratch().highest;
    highest.assign(k, -std::numeric_limits<float>::infinity());
    for (std::size_t i = 0; i < n; ++i) {
        h_[i] = std::clamp(raw_[i], -clip_, clip_);
        alpha_[i] = page.anchor_cosine[i] * parameters.base[0] + page.log_relevance[i] * parameters.base[1] + h_[i];
        float& high = highest[static_cast<std::size_t>(page.assign[i])];
        high = std::max(high, alpha_[i]);
    }
    for (std::size_t i = 0; i < n; ++i) alpha_[i] -= highest[static_cast<std::size_t>(page.assign[i])];
    exp_of(alpha_, alpha_);
    auto& total = scratch().total;
    total.assign(k, 0.0);
    for (std::size_t i = 0; i < n; ++i) total[static_cast<std::size_t>(page.assign[i])] += alpha_[i];
    for (double& sum : total) sum = 1.0 / sum;
    for (std::size_t i = 0; i < n; ++i)
        alpha_[i] *= static_cast<float>(total[static_cast<std::size_t>(page.assign[i])]);
    if (keep_trace) measure_entropies();
    means_.reshape(k, d);
    std::fill_n(means_.data(), means_.size(), 0.0F);
    add_to_clusters(page.vectors, page.assign, alpha_, means_);
    norms_.resize(k);
    representatives_.reshape(k, d);
    const float gamma = parameters.base[2];
    for (std::size_t c = 0; c < k; ++c) {
        norms_[c] = std::max(std::sqrt(dot(means_.row(c), means_.row(c), d)), smallest_norm);
        const float scale = gamma == 1.0F ? 1.0F / norms_[c] : std::pow(norms_[c], -gamma);
        for (std::size_t j = 0; j < d; ++j) representatives_(c, j) = means_(c, j) * scale;
    }
}

float PagePass::score(const PreparedQuery& query) {
    best_.resize(query.tokens());
    winner_.resize(query.tokens());
    maxsim_winners(query, ConstMatrix(representatives_), best_, winner_);
    double sum = 0;
    for (const float b : best_) sum += b;
    return static_cast<float>(sum);
}

double PagePass::squared_residuals() const {
    double sum = 0;
    for (const float h : h_) sum += static_cast<double>(h) * h;
    return sum;
}

void PagePass::measure_entropies() {
    log_alpha_.resize(alpha_.size());
    for (std::size_t i = 0; i < alpha_.size(); ++i) log_alpha_[i] = alpha_[i] + entropy_epsilon;
    log_of(log_alpha_, log_alpha_);
    entropies_.assign(page_->clusters(), 0.0);
    for (std::size_t i = 0; i < alpha_.size(); ++i)
        entropies_[static_cast<std::size_t>(page_->assign[i])] -= static_cast<double>(alpha_[i]) * log_alpha_[i];
    for (std::size_t c = 0; c < entropies_.size(); ++c) entropies_[c] /= std::log(std::max(page_->cluster_size[c], 2));
}

double PagePass::entropy_penalty() const {
    double sum = 0;
    for (const double e : entropies_) sum += std::pow(std::max(0.0, entropy_floor - e), 2);
    return sum / static_cast<double>(page_->clusters());
}

double PagePass::anchor_penalty() const {
    double sum = 0;
    for (std::size_t c = 0; c < page_->clusters(); ++c) {
        const double alpha = alpha_[static_cast<std::size_t>(page_->anchors[c])];
        sum += std::pow(std::max(0.0, anchor_share / page_->cluster_size[c] - alpha), 2);
    }
    return sum / static_cast<double>(page_->clusters());
}

void PagePass::backward(const PreparedQuery& query, double d_score, const PageTerms& scales,
                        std::span<float> gradient) {
    const TrainingPage& page = *page_;
    const std::size_t n = page.patches(), k = page.clusters(), d = page.vectors.dim;
    const float gamma = parameters_->base[2];

    // dS/dr_c is the sum of the query tokens that c wins; through r = m |m|^-gamma:
    // dm = |m|^-gamma (dr - gamma (m_hat . dr) m_hat), dgamma = -log|m| (r . dr).
    Scratch& s = scratch();
    Matrix& d_means = s.d_means;
    auto& touched = s.touched;
    d_means.reshape(k, d);
    std::fill_n(d_means.data(), d_means.size(), 0.0F);
    touched.assign(k, 0);
    for (std::size_t t = 0; t < winner_.size(); ++t) {
        if (winner_[t] < 0) continue;  // no representative answers with a number: training diverged
        const auto c = static_cast<std::size_t>(winner_[t]);
        touched[c] = 1;
        const float* u = query.rows().row(t);
        float* out = d_means.row(c);
        for (std::size_t j = 0; j < d; ++j) out[j] += u[j];
    }
    double d_gamma = 0;
    for (std::size_t c = 0; c < k; ++c) {
        if (!touched[c]) continue;
        float* out = d_means.row(c);
        const float* m = means_.row(c);
        const float along = dot(m, out, d) / (norms_[c] * norms_[c]);
        d_gamma -= std::log(norms_[c]) * dot(representatives_.row(c), out, d) * d_score;
        const float scale = static_cast<float>(d_score) * std::pow(norms_[c], -gamma);
        for (std::size_t j = 0; j < d; ++j) out[j] = scale * (out[j] - gamma * along * m[j]);
    }
    gradient[Parameters::norm_power] += static_cast<float>(d_gamma);

    s.moved.resize(n);  // patches of clusters that no token chose have no share in the score
    for (std::size_t i = 0; i < n; ++i)
        s.moved[i] = touched[static_cast<std::size_t>(page.assign[i])] ? page.assign[i] : -1;
    s.by_score.resize(n);
    dot_clusters(page.vectors, s.moved, d_means, s.by_score);
    auto& d_alpha = s.d_alpha;
    d_alpha.assign(s.by_score.begin(), s.by_score.end());
    if (scales.entropy != 0) {
        for (std::size_t i = 0; i < n; ++i) {
            const auto c = static_cast<std::size_t>(page.assign[i]);
            if (entropies_[c] >= entropy_floor) continue;
            const double a = alpha_[i];
            const double d_entropy =
                -(log_alpha_[i] + a / (a + entropy_epsilon)) / std::log(std::max(page.cluster_size[c], 2));
            d_alpha[i] += scales.entropy * -2 * (entropy_floor - entropies_[c]) * d_entropy / static_cast<double>(k);
        }
    }
    if (scales.anchor != 0) {
        for (std::size_t c = 0; c < k; ++c) {
            const auto a = static_cast<std::size_t>(page.anchors[c]);
            const double gap = anchor_share / page.cluster_size[c] - static_cast<double>(alpha_[a]);
            if (gap > 0) d_alpha[a] += scales.anchor * -2 * gap / static_cast<double>(k);
        }
    }
    // Softmax inside each cluster: dl_i = alpha_i (dalpha_i - sum_j alpha_j dalpha_j).
    auto& mean = s.mean;
    mean.assign(k, 0.0);
    for (std::size_t i = 0; i < n; ++i) mean[static_cast<std::size_t>(page.assign[i])] += alpha_[i] * d_alpha[i];
    auto& d_raw = s.d_raw;
    d_raw.assign(raw_.size(), 0.0F);
    double d_inverse_tau = 0, d_power = 0;
    for (std::size_t i = 0; i < n; ++i) {
        const double dl = alpha_[i] * (d_alpha[i] - mean[static_cast<std::size_t>(page.assign[i])]);
        d_inverse_tau += dl * page.anchor_cosine[i];
        d_power += dl * page.log_relevance[i];
        // The clip passes no gradient outside [-H, H].
        if (std::abs(raw_[i]) <= clip_) d_raw[i] = static_cast<float>(dl + scales.weight * 2 * h_[i]);
    }
    gradient[Parameters::inverse_tau] += static_cast<float>(d_inverse_tau);
    gradient[Parameters::relevance_power] += static_cast<float>(d_power);
    network_backward(parameters_->network, page.features, trace_, d_raw, gradient.first(Network::parameter_count));
}

}  // namespace marginmerge
