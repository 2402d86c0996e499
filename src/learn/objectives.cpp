#include "learn/objectives.h"

#include <algorithm>
#include <cmath>

#include "core/fail.h"
#include "core/parallel.h"

namespace marginmerge {

std::vector<std::string> objective_names() {
    return {"full", "margin", "score", "no_listwise", "no_boundary", "no_rank"};
}

Objective objective_named(const std::string& name) {
    Objective o;
    if (name == "full") return o;
    if (name == "margin") {
        o.rank = o.list = 0;
    } else if (name == "score") {
        o.margin = o.rank = o.list = o.entropy = o.anchor = 0;
        o.score = 1;
    } else if (name == "no_listwise") {
        o.list = 0;
    } else if (name == "no_boundary") {
        o.boundary_weights = false;
    } else if (name == "no_rank") {
        o.rank = 0;
    } else {
        fail(ErrorCode::invalid_argument,
             "objective: expected full, margin, score, no_listwise, no_boundary or no_rank, found {}", name);
    }
    return o;
}

LossTerms& LossTerms::operator+=(const LossTerms& other) {
    margin += other.margin;
    rank += other.rank;
    list += other.list;
    score += other.score;
    weight += other.weight;
    entropy += other.entropy;
    anchor += other.anchor;
    total += other.total;
    return *this;
}

LossTerms LossTerms::scaled(double f) const {
    return {margin * f, rank * f, list * f, score * f, weight * f, entropy * f, anchor * f, total * f};
}

namespace {

double huber(double x, double delta, double& slope) {
    slope = std::clamp(x, -delta, delta);
    return std::abs(x) <= delta ? 0.5 * x * x : delta * (std::abs(x) - 0.5 * delta);
}

std::vector<double> softmax(std::span<const double> x) {
    const double high = *std::max_element(x.begin(), x.end());
    std::vector<double> p(x.size());
    double sum = 0;
    for (std::size_t i = 0; i < x.size(); ++i) sum += p[i] = std::exp(x[i] - high);
    for (double& v : p) v /= sum;
    return p;
}

}  // namespace

LossTerms score_loss(const Objective& o, std::span<const double> full, std::span<const double> compressed,
                     std::span<const double> positive_weight, std::span<double> d_compressed) {
    const std::size_t all = full.size(), positives = positive_weight.size(), negatives = all - positives;
    LossTerms loss;
    std::fill(d_compressed.begin(), d_compressed.end(), 0.0);
    std::vector<double> nu(negatives);
    for (std::size_t p = 0; negatives > 0 && p < positives; ++p) {
        // nu_j: larger where the full margin is small.
        double sum = 0, least = std::abs(full[p] - full[positives]);
        for (std::size_t j = 0; j < negatives; ++j) least = std::min(least, std::abs(full[p] - full[positives + j]));
        for (std::size_t j = 0; j < negatives; ++j) {
            const double gap = std::abs(full[p] - full[positives + j]) - least;
            sum += nu[j] = o.boundary_weights ? std::exp(-gap / o.margin_temperature) : 1.0;
        }
        for (std::size_t j = 0; j < negatives; ++j) {
            const std::size_t at = positives + j;
            const double margin = compressed[p] - compressed[at];
            double slope = 0;
            const double h = huber(margin - (full[p] - full[at]), o.huber, slope);
            const double share = positive_weight[p];
            loss.margin += share * nu[j] / sum * h;
            double d_margin = o.margin * share * nu[j] / sum * slope;
            loss.rank += share * std::max(0.0, o.hinge - margin) / static_cast<double>(negatives);
            if (margin < o.hinge) d_margin -= o.rank * share / static_cast<double>(negatives);
            d_compressed[p] += d_margin;
            d_compressed[at] -= d_margin;
        }
    }
    if (o.list != 0) {
        // KL(softmax(s) || softmax(s_hat)); its gradient is softmax(s_hat) - softmax(s).
        const std::vector<double> target = softmax(full), actual = softmax(compressed);
        for (std::size_t i = 0; i < all; ++i) {
            if (target[i] > 0) loss.list += target[i] * (std::log(target[i]) - std::log(std::max(actual[i], 1e-300)));
            d_compressed[i] += o.list * (actual[i] - target[i]);
        }
    }
    if (o.score != 0) {
        for (std::size_t i = 0; i < all; ++i) {
            const double share = i < positives ? positive_weight[i] : 1.0 / static_cast<double>(negatives);
            double slope = 0;
            loss.score += share * huber(compressed[i] - full[i], o.huber, slope);
            d_compressed[i] += o.score * share * slope;
        }
    }
    loss.total = o.margin * loss.margin + o.rank * loss.rank + o.list * loss.list + o.score * loss.score;
    return loss;
}

std::vector<LossTerms> BatchPass::run(const Objective& objective, const Parameters& parameters, double clip,
                                      std::span<const TrainingExample> examples, double divisor, std::size_t threads,
                                      Gradient& gradient) {
    std::vector<std::size_t> first(1, 0);
    std::size_t most = 0;
    for (const TrainingExample& example : examples) {
        first.push_back(first.back() + example.pages.size());
        most = std::max(most, example.pages.size());
    }
    // What forward leaves for backward is large, 400 bytes a vector: example by example it is still in cache, and the
    // next example finds the same memory. Threads for which there is no example share those of others.
    const std::size_t workers = std::min(resolve_threads(threads), std::max<std::size_t>(1, examples.size()));
    const std::size_t sharing = examples.size() % resolve_threads(threads) == 0 ? 1 : threads;
    passes_.resize(std::max(passes_.size(), workers * most));
    gradients_.resize(std::max(gradients_.size(), first.back()));
    std::vector<LossTerms> losses(examples.size());
    parallel_for_workers(examples.size(), threads, [&](std::size_t e, std::size_t worker) {
        const TrainingExample& example = examples[e];
        const std::size_t count = example.pages.size();
        const std::span passes = std::span(passes_).subspan(worker * most, count);
        std::vector<double> scores(count), d_scores(count);
        parallel_for(count, sharing, [&](std::size_t p) {
            passes[p].forward(*example.pages[p], parameters, clip, true);
            scores[p] = passes[p].score(*example.query);
        });
        LossTerms& loss = losses[e];
        loss = score_loss(objective, example.full_scores, scores, example.positive_weight, d_scores);
        double patches = 0;
        for (std::size_t p = 0; p < count; ++p) {
            patches += static_cast<double>(example.pages[p]->patches());
            loss.weight += passes[p].squared_residuals();
            loss.entropy += passes[p].entropy_penalty() / static_cast<double>(count);
            loss.anchor += passes[p].anchor_penalty() / static_cast<double>(count);
        }
        loss.weight /= patches;
        loss.total +=
            objective.weight * loss.weight + objective.entropy * loss.entropy + objective.anchor * loss.anchor;
        const PageTerms scales{objective.weight / patches / divisor,
                               objective.entropy / static_cast<double>(count) / divisor,
                               objective.anchor / static_cast<double>(count) / divisor};
        parallel_for(count, sharing, [&](std::size_t p) {
            Gradient& own = gradients_[first[e] + p];
            own.fill(0);
            passes[p].backward(*example.query, d_scores[p] / divisor, scales, own);
        });
    });
    for (std::size_t t = 0; t < first.back(); ++t) {
        for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] += gradients_[t][i];
    }
    return losses;
}

}  // namespace marginmerge
