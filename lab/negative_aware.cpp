#include "lab/negative_aware.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "core/fail.h"
#include "core/random.h"
#include "kernels/convert.h"
#include "kernels/products.h"
#include "learn/mining.h"
#include "learn/split.h"

namespace marginmerge::lab {

namespace {

struct Opened {
    std::vector<double> gate;         ///< [n]
    std::vector<std::size_t> winner;  ///< of each token
    double score = 0, mean = 0;
};

Opened open_gates(const GatedPage& page, std::span<const double> parameters) {
    Opened out;
    const Matrix& x = *page.inputs;
    out.gate.resize(x.rows());
    for (std::size_t i = 0; i < x.rows(); ++i) {
        double z = parameters.back();
        for (std::size_t j = 0; j < x.cols(); ++j) z += parameters[j] * x(i, j);
        out.gate[i] = 1 / (1 + std::exp(-z));
        out.mean += out.gate[i] / static_cast<double>(x.rows());
    }
    for (std::size_t t = 0; t < page.answers.rows(); ++t) {
        std::size_t best = 0;
        for (std::size_t i = 1; i < x.rows(); ++i)
            if (out.gate[i] * page.answers(t, i) > out.gate[best] * page.answers(t, best)) best = i;
        out.winner.push_back(best);
        out.score += out.gate[best] * page.answers(t, best);
    }
    return out;
}

// Adds d_score * ds/dtheta and d_mean * d(mean gate)/dtheta.
void close_gates(const GatedPage& page, const Opened& opened, double d_score, double d_mean,
                 std::span<double> gradient) {
    const Matrix& x = *page.inputs;
    std::vector<double> d_gate(x.rows(), d_mean / static_cast<double>(x.rows()));
    for (std::size_t t = 0; t < opened.winner.size(); ++t)
        d_gate[opened.winner[t]] += d_score * page.answers(t, opened.winner[t]);
    for (std::size_t i = 0; i < x.rows(); ++i) {
        const double d_z = d_gate[i] * opened.gate[i] * (1 - opened.gate[i]);
        for (std::size_t j = 0; j < x.cols(); ++j) gradient[j] += d_z * x(i, j);
        gradient[x.cols()] += d_z;
    }
}

struct Example {
    std::vector<GatedPage> pages;
};

void standardise(const LinearScore& scale, Matrix& x) {
    for (std::size_t i = 0; i < x.rows(); ++i)
        for (std::size_t j = 0; j < x.cols(); ++j)
            x(i, j) = static_cast<float>((x(i, j) - scale.mean[j]) / scale.deviation[j]);
}

}  // namespace

double gate_loss(std::span<const GatedPage> pages, std::span<const double> parameters, double keep, double budget,
                 std::span<double> gradient) {
    std::vector<Opened> opened;
    for (const auto& page : pages) opened.push_back(open_gates(page, parameters));
    const double negatives = static_cast<double>(pages.size() - 1), count = static_cast<double>(pages.size());
    std::vector<double> d_score(pages.size(), 0);
    double loss = 0;
    for (std::size_t j = 1; j < pages.size(); ++j) {
        const double gap = opened[j].score - opened[0].score;
        loss += (gap > 0 ? gap + std::log1p(std::exp(-gap)) : std::log1p(std::exp(gap))) / negatives;
        const double slope = 1 / (1 + std::exp(-gap)) / negatives;
        d_score[j] += slope;
        d_score[0] -= slope;
    }
    for (std::size_t j = 0; j < pages.size(); ++j) {
        const double excess = opened[j].mean - keep;
        loss += budget * excess * excess / count;
        close_gates(pages[j], opened[j], d_score[j], 2 * budget * excess / count, gradient);
    }
    return loss;
}

LinearScore fit_gates(const Dataset& data, const GateOptions& options,
                      const std::function<Matrix(ConstMatrix page)>& inputs_of) {
    std::vector<std::size_t> side;
    if (data.hold_out > 0)
        for (const auto& part : {split_documents(static_cast<std::int64_t>(data.documents.size()), data.hold_out)})
            for (const auto* list : {&part.train, &part.validation})
                for (const auto i : *list) side.push_back(static_cast<std::size_t>(i));
    else
        for (std::size_t i = 0; i < data.documents.size(); ++i) side.push_back(i);
    std::sort(side.begin(), side.end());

    std::vector<PreparedQuery> prepared;
    std::vector<std::size_t> used;
    for (std::size_t q = 0; q < data.train.size() && used.size() < options.queries; ++q)
        if (!data.train_relevant[q].empty()) used.push_back(q);
    prepared.reserve(used.size());
    std::vector<const PreparedQuery*> queries;
    std::vector<std::vector<std::size_t>> positives;
    for (const auto q : used) {
        queries.push_back(&prepared.emplace_back(data.train.vectors(q)));
        positives.push_back(data.train_relevant[q]);
    }
    if (used.empty())
        fail(ErrorCode::invalid_argument, "{}: expected training queries with relevant pages, found none", data.name());
    MiningOptions mining;
    mining.negatives = options.negatives;
    mining.threads = options.threads;
    const auto mined = mine_hard_negatives(data.documents, side, queries, positives, mining);

    std::map<std::size_t, Matrix> inputs;
    std::vector<std::vector<std::size_t>> pages_of(used.size());
    for (std::size_t i = 0; i < used.size(); ++i) {
        pages_of[i].push_back(positives[i].front());
        for (const auto& n : mined[i].top) pages_of[i].push_back(n.document);
        for (const auto p : pages_of[i])
            if (!inputs.contains(p)) inputs[p] = inputs_of(to_float(data.documents.vectors(p)));
    }
    LinearScore score = standardised(inputs.begin()->second);
    {
        std::vector<float> sample;  // scale from an even sample of every page
        for (const auto& [page, x] : inputs)
            for (std::size_t r = 0; r < x.rows(); r += std::max<std::size_t>(1, x.rows() / 64))
                sample.insert(sample.end(), x.row(r), x.row(r) + x.cols());
        const std::size_t width = inputs.begin()->second.cols();
        score = standardised({sample.data(), sample.size() / width, width});
    }
    for (auto& [page, x] : inputs) standardise(score, x);
    std::vector<Example> examples(used.size());
    for (std::size_t i = 0; i < used.size(); ++i) {
        const Matrix tokens = to_float(data.train.vectors(used[i]));
        for (const auto p : pages_of[i]) {
            const Matrix v = to_float(data.documents.vectors(p));
            GatedPage page{&inputs[p], Matrix(tokens.rows(), v.rows())};
            product(tokens, v, page.answers);
            for (float& a : page.answers.flat()) a = (1 + a) / 2;
            examples[i].pages.push_back(std::move(page));
        }
    }

    const std::size_t count = score.weight.size() + 1;
    std::vector<double> theta(count, 0), first(count, 0), second(count, 0);
    theta.back() = std::log(options.keep / (1 - options.keep));
    Random random(mix_seed(options.seed, 0));
    for (std::size_t step = 1; step <= options.steps; ++step) {
        std::vector<double> gradient(count, 0);
        for (std::size_t b = 0; b < options.batch; ++b) {
            const Example& example = examples[random.below(examples.size())];
            if (example.pages.size() > 1) gate_loss(example.pages, theta, options.keep, options.budget, gradient);
        }
        double norm = 0;
        for (double& g : gradient) {
            g /= static_cast<double>(options.batch);
            norm += g * g;
        }
        const double shrink = norm > options.clip * options.clip ? options.clip / std::sqrt(norm) : 1;
        for (std::size_t j = 0; j < count; ++j) {
            const double g = gradient[j] * shrink;
            first[j] = 0.9 * first[j] + 0.1 * g;
            second[j] = 0.999 * second[j] + 0.001 * g * g;
            const double m = first[j] / (1 - std::pow(0.9, static_cast<double>(step)));
            const double v = second[j] / (1 - std::pow(0.999, static_cast<double>(step)));
            theta[j] -= options.learning_rate * m / (std::sqrt(v) + 1e-8);
        }
    }
    score.weight.assign(theta.begin(), theta.end() - 1);
    score.bias = theta.back();
    return score;
}

}  // namespace marginmerge::lab
