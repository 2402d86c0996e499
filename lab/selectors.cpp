#include "lab/selectors.h"

#include <algorithm>
#include <functional>
#include <map>

#include "core/fail.h"
#include "core/order.h"
#include "core/random.h"
#include "kernels/convert.h"
#include "lab/logistic.h"
#include "lab/negative_aware.h"
#include "merge/baselines.h"
#include "select/registry.h"

namespace marginmerge::lab {

namespace {

constexpr std::size_t most_pages = 300;   // training pages a selector looks at
constexpr std::size_t most_rows = 40000;  // patches a regression is fitted to

std::vector<std::int32_t> by_rule(const char* rule, ConstMatrix v, std::size_t k, std::uint64_t seed) {
    AnchorWorkspace workspace;
    AnchorSelection selection;
    anchor_rule(rule).select({v, k, nullptr, &fill_rule("farthest"), seed, {}}, workspace, selection);
    return selection.order;
}

class RuleSelector : public Selector {
public:
    explicit RuleSelector(const char* rule) : rule_(rule) {}
    std::vector<std::int32_t> keep(ConstMatrix v, std::size_t k, std::uint64_t seed) const override {
        return by_rule(rule_, v, k, seed);
    }

private:
    const char* rule_;
};

class ImportanceSelector : public Selector {
public:
    std::vector<std::int32_t> keep(ConstMatrix v, std::size_t k, std::uint64_t) const override {
        return importance_kept(v, k);
    }
};

class SalienceSelector : public Selector {
public:
    std::vector<std::int32_t> keep(ConstMatrix v, std::size_t k, std::uint64_t) const override {
        const Matrix x = selector_features(v);
        std::vector<double> distinct(v.rows);
        for (std::size_t i = 0; i < v.rows; ++i) distinct[i] = -x(i, 1);  // mean similarity to the others
        return largest<double>(distinct, k);
    }
};

// What a learned score looks at: the six features, with the embedding in front where asked for.
Matrix inputs_of(ConstMatrix v, bool embedding) {
    const Matrix x = selector_features(v);
    const std::size_t d = embedding ? v.cols : 0;
    Matrix out(v.rows, d + x.cols());
    for (std::size_t i = 0; i < v.rows; ++i) {
        std::copy_n(v.row(i), d, out.row(i));
        std::copy_n(x.row(i), x.cols(), out.row(i) + d);
    }
    return out;
}

class ScoreSelector : public Selector {
public:
    ScoreSelector(LinearScore score, bool embedding, std::size_t pool)
        : score_(std::move(score)), embedding_(embedding), pool_(pool) {}
    std::vector<std::int32_t> keep(ConstMatrix v, std::size_t k, std::uint64_t seed) const override {
        const Matrix x = inputs_of(v, embedding_);
        std::vector<double> value(v.rows);
        for (std::size_t i = 0; i < v.rows; ++i) value[i] = score_(x.view().row_span(i));
        if (pool_ <= 1) return largest<double>(value, k);
        auto pool = largest<double>(value, std::min(v.rows, pool_ * k));
        Matrix likely(pool.size(), v.cols);
        for (std::size_t i = 0; i < pool.size(); ++i)
            std::copy_n(v.row(static_cast<std::size_t>(pool[i])), v.cols, likely.row(i));
        auto kept = by_rule("kcenter", likely, k, seed);
        for (auto& i : kept) i = pool[static_cast<std::size_t>(i)];
        return kept;
    }

private:
    LinearScore score_;
    bool embedding_;
    std::size_t pool_;
};

Matrix tokens_of(const MultiVectorSet& queries, std::span<const std::size_t> positions) {
    std::size_t rows = 0;
    for (const auto q : positions) rows += queries.vectors_of(q);
    Matrix out(rows, queries.dim());
    std::size_t at = 0;
    for (const auto q : positions) {
        to_float(queries.vectors(q), out.row(at));
        at += queries.vectors_of(q);
    }
    return out;
}

// Winner regression; `one_query` labels a page by a single one of its queries, as a log with one query a page does.
LinearScore fit_winners(const Dataset& data, bool embedding, bool one_query, std::uint64_t seed) {
    const TrainingPages training = training_pages(data, most_pages);
    std::vector<float> values, labels;
    std::size_t inputs = 0;
    Random random(seed);
    std::size_t total = 0;
    for (const auto p : training.pages) total += data.documents.vectors_of(p);
    const double share =
        std::min(1.0, static_cast<double>(most_rows) / static_cast<double>(std::max<std::size_t>(total, 1)));
    for (std::size_t i = 0; i < training.pages.size(); ++i) {
        const Matrix v = to_float(data.documents.vectors(training.pages[i]));
        const auto& all = training.queries[i];
        const std::span<const std::size_t> used(all.data(), one_query ? 1 : all.size());
        const auto winner = winner_labels(v, tokens_of(data.train, used));
        const Matrix x = inputs_of(v, embedding);
        inputs = x.cols();
        for (std::size_t r = 0; r < v.rows(); ++r) {
            if (random.uniform() >= share) continue;
            values.insert(values.end(), x.row(r), x.row(r) + inputs);
            labels.push_back(winner[r]);
        }
    }
    if (labels.empty())
        fail(ErrorCode::invalid_argument, "{}: expected training queries with relevant pages, found none", data.name());
    return fit_logistic({values.data(), labels.size(), inputs}, labels);
}

}  // namespace

TrainingPages training_pages(const Dataset& data, std::size_t most) {
    std::map<std::size_t, std::vector<std::size_t>> by_page;
    for (std::size_t q = 0; q < data.train.size(); ++q)
        for (const auto p : data.train_relevant[q]) by_page[p].push_back(q);
    TrainingPages out;
    for (auto& [page, queries] : by_page) {
        if (out.pages.size() == most) break;
        out.pages.push_back(page);
        out.queries.push_back(std::move(queries));
    }
    return out;
}

std::unique_ptr<Selector> make_selector(const nlohmann::json& settings, const Dataset& data, std::uint64_t seed,
                                        std::size_t threads) {
    const std::string name = settings.value("selector", "");
    if (name == "random") return std::make_unique<RuleSelector>("random");
    if (name == "kcenter") return std::make_unique<RuleSelector>("kcenter");
    if (name == "importance") return std::make_unique<ImportanceSelector>();
    if (name == "salience") return std::make_unique<SalienceSelector>();
    if (name == "likelihood") return std::make_unique<ScoreSelector>(fit_winners(data, false, false, 42), false, 1);
    if (name == "likely_kcenter")
        return std::make_unique<ScoreSelector>(fit_winners(data, false, false, 42), false,
                                               settings.value("pool", std::size_t{4}));
    if (name == "single_query") return std::make_unique<ScoreSelector>(fit_winners(data, true, true, seed), true, 1);
    if (name == "negative_aware") {
        GateOptions options;
        options.seed = seed;
        options.threads = threads;
        options.keep = settings.value("keep", options.keep);
        return std::make_unique<ScoreSelector>(
            fit_gates(data, options, [](ConstMatrix v) { return inputs_of(v, true); }), true, 1);
    }
    fail(ErrorCode::invalid_argument,
         "selector: expected random, kcenter, importance, salience, likelihood, likely_kcenter, single_query or "
         "negative_aware, found '{}'",
         name);
}

}  // namespace marginmerge::lab
