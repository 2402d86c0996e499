#include "lab/scoring.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>

#include "core/clock.h"
#include "core/fail.h"
#include "core/order.h"
#include "core/parallel.h"
#include "core/random.h"
#include "io/multi_vector_file.h"
#include "jobs/judged.h"
#include "kernels/convert.h"
#include "merge/baselines.h"
#include "merge/construct.h"

namespace marginmerge::lab {

namespace {

struct Scored {
    TrialScores trial;
    std::map<std::string, double> extra;
    std::vector<char> present;  ///< documents that count; empty: all
    std::string skipped;
};

Matrix page_vectors(const RunInputs& in, std::size_t p) {
    Matrix v = to_float(in.data.documents.vectors(p));
    if (in.subsample == 0 || v.rows() <= in.subsample) return v;
    // A random subset in page order, the same for every method.
    std::vector<std::size_t> order(v.rows());
    std::iota(order.begin(), order.end(), std::size_t{0});
    Random random(mix_seed(mix_seed(in.seed, 77), p));
    for (std::size_t i = 0; i < in.subsample; ++i) std::swap(order[i], order[i + random.below(order.size() - i)]);
    std::sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(in.subsample));
    Matrix out(in.subsample, v.cols());
    for (std::size_t i = 0; i < in.subsample; ++i) std::copy_n(v.row(order[i]), v.cols(), out.row(i));
    return out;
}

Scored by_pages(const RunInputs& in, const MakePage& make) {
    Scored out;
    const VectorCode codes[] = {in.code};
    out.trial =
        std::move(score_made_pages(in.data.documents.size(), make, *in.data.queries, codes, in.threads).front());
    return out;
}

Scored full(const RunInputs& in) {
    if (in.code != VectorCode::f32 || in.subsample > 0)
        return by_pages(in, [&](std::size_t p, std::size_t, Matrix& out) { out = page_vectors(in, p); });
    Scored out;
    out.trial.scores = Matrix(in.data.full_scores.view());
    out.trial.vectors = in.data.documents.total_vectors();
    out.trial.bytes = out.trial.vectors * in.data.documents.dim() * sizeof(float);
    return out;
}

// One vector a page and one a query, both unit means.
Scored single(const RunInputs& in) {
    Scored out = by_pages(in, [&](std::size_t p, std::size_t, Matrix& page) {
        const auto mean = single_vector(page_vectors(in, p));
        page.reshape(1, mean.size());
        std::copy(mean.begin(), mean.end(), page.data());
    });
    const MultiVectorSet& test = in.data.test;
    std::vector<PreparedQuery> queries;
    for (std::size_t q = 0; q < test.size(); ++q) {
        const auto mean = single_vector(to_float(test.vectors(q)));
        queries.emplace_back(ConstMatrix{mean.data(), 1, mean.size()});
    }
    parallel_for(in.data.documents.size(), in.threads, [&](std::size_t p) {
        const auto mean = single_vector(page_vectors(in, p));
        for (std::size_t q = 0; q < queries.size(); ++q)
            out.trial.scores(q, p) = maxsim(queries[q], ConstMatrix{mean.data(), 1, mean.size()});
    });
    return out;
}

// Looks at the query before it prunes: a bound for selection, not an index.
Scored query_conditioned(const RunInputs& in) {
    Scored out;
    const MultiVectorSet& test = in.data.test;
    out.trial.scores = Matrix(test.size(), in.data.documents.size());
    std::vector<Matrix> queries;
    for (std::size_t q = 0; q < test.size(); ++q) queries.push_back(to_float(test.vectors(q)));
    parallel_for(in.data.documents.size(), in.threads, [&](std::size_t p) {
        const Matrix v = page_vectors(in, p);
        for (std::size_t q = 0; q < queries.size(); ++q)
            out.trial.scores(q, p) = query_conditioned_score(queries[q], v, in.budget.count(v.rows()));
    });
    out.trial.vectors = in.data.documents.total_vectors();  // every vector must stay in the index
    out.trial.bytes = out.trial.vectors * in.data.documents.dim() * sizeof(float);
    return out;
}

Matrix rows_of(ConstMatrix v, std::span<const std::int32_t> kept) {
    Matrix out(kept.size(), v.cols);
    for (std::size_t i = 0; i < kept.size(); ++i)
        std::copy_n(v.row(static_cast<std::size_t>(kept[i])), v.cols, out.row(i));
    return out;
}

Scored select(const RunInputs& in) {
    if (in.selector == nullptr) fail(ErrorCode::internal, "select: expected a selector");
    const Dataset& d = in.data;
    std::vector<std::vector<std::int32_t>> kept(d.documents.size());
    Scored out = by_pages(in, [&](std::size_t p, std::size_t, Matrix& page) {
        const Matrix v = page_vectors(in, p);
        kept[p] = in.selector->keep(v, in.budget.count(v.rows()), mix_seed(in.seed, p));
        page = rows_of(v, kept[p]);
    });
    if (in.subsample > 0) return out;
    // Winner coverage: which share of the patches that answer a query's tokens on its relevant pages was kept.
    double share = 0;
    std::size_t pairs = 0;
    for (std::size_t q = 0; q < d.test.size(); ++q) {
        const PreparedQuery& query = d.queries->plain()[q];
        for (const auto p : d.relevance[q].positions) {
            std::vector<float> best(query.tokens());
            std::vector<std::int32_t> winner(query.tokens());
            maxsim_winners(query, d.documents.vectors(p), best, winner);
            const std::set<std::int32_t> winners(winner.begin(), winner.end());
            if (winners.empty()) continue;
            std::size_t found = 0;
            for (const auto i : kept[p]) found += winners.count(i);
            share += static_cast<double>(found) / static_cast<double>(winners.size());
            ++pairs;
        }
    }
    out.extra["winner_coverage"] = pairs > 0 ? share / static_cast<double>(pairs) : 0;
    return out;
}

// SAP: the patches with the highest structural scores. Pages the file lacks are left out of the comparison.
Scored structural(const RunInputs& in) {
    Scored out;
    const Dataset& d = in.data;
    if (d.source.structural.empty()) {
        out.skipped = "no structural scores: the encoder has to write structural.safetensors (docs/lab.md)";
        return out;
    }
    const MultiVectorSet scores = read_multi_vectors(d.source.structural);
    if (scores.dim() != 1)
        fail(ErrorCode::corrupt, "{}: vectors: expected one column, found {}", d.source.structural.string(),
             scores.dim());
    out.present.assign(d.documents.size(), 0);
    std::vector<std::size_t> at(d.documents.size());
    for (std::size_t p = 0; p < d.documents.size(); ++p) {
        const auto found = scores.find(d.documents.id(p));
        if (!found) continue;
        if (scores.vectors_of(*found) != d.documents.vectors_of(p))
            fail(ErrorCode::corrupt, "{}: document '{}': expected {} scores, one a vector, found {}",
                 d.source.structural.string(), d.documents.id(p), d.documents.vectors_of(p), scores.vectors_of(*found));
        out.present[p] = 1;
        at[p] = *found;
    }
    Scored made = by_pages(in, [&](std::size_t p, std::size_t, Matrix& page) {
        const Matrix v = to_float(d.documents.vectors(p));
        if (!out.present[p]) {
            page = rows_of(v, std::vector<std::int32_t>{});
            return;
        }
        const Matrix s = to_float(scores.vectors(at[p]));
        page = rows_of(v, largest(s.view().flat(), in.budget.count(v.rows())));
    });
    out.trial = std::move(made.trial);
    const auto count = static_cast<double>(std::count(out.present.begin(), out.present.end(), 1));
    out.extra["subset"] = count / static_cast<double>(d.documents.size());
    return out;
}

Scored compress(const RunInputs& in) {
    static const Model none;
    const Model& model = in.model != nullptr ? *in.model : none;
    if (in.subsample == 0) return by_pages(in, recipe_pages(in.data.documents, model, in.recipe, in.threads));
    std::vector<PageWorkspace> workspaces(resolve_threads(in.threads));
    return by_pages(in, [&](std::size_t p, std::size_t worker, Matrix& page) {
        const Matrix v = page_vectors(in, p);
        page =
            compress_page({v, {}, mix_seed(in.recipe.seed, p)}, model, in.recipe, workspaces[worker]).representatives;
    });
}

Scored score(const Method& method, const RunInputs& in) {
    if (method.kind == "full") return full(in);
    if (method.kind == "single") return single(in);
    if (method.kind == "query_conditioned") return query_conditioned(in);
    if (method.kind == "structural") return structural(in);
    if (method.kind == "select") return select(in);
    return compress(in);
}

// Where a method covers only some documents, it is judged on those, and so is the full index.
void judge(const Dataset& d, const Scored& scored, RunResult& result) {
    Matrix full(d.full_scores.view()), own(scored.trial.scores.view());
    std::vector<Relevance> relevance = d.relevance;
    std::vector<std::size_t> kept_queries;
    for (std::size_t q = 0; q < relevance.size(); ++q) {
        Relevance& r = relevance[q];
        if (!scored.present.empty()) {
            Relevance there;
            for (std::size_t i = 0; i < r.positions.size(); ++i) {
                if (!scored.present[r.positions[i]]) continue;
                there.positions.push_back(r.positions[i]);
                there.grades.push_back(r.grades[i]);
            }
            there.all_grades = there.grades;
            r = std::move(there);
            for (std::size_t p = 0; p < scored.present.size(); ++p) {
                if (scored.present[p]) continue;
                full(q, p) = own(q, p) = -std::numeric_limits<float>::infinity();
            }
        }
        if (!r.empty()) kept_queries.push_back(q);
    }
    const JudgedScores judged = judge_scores(full, own, relevance, d.queries->tokens());
    for (const auto q : kept_queries) {
        result.ndcg.push_back(judged.ndcg[q]);
        result.pairs.push_back(judged.pairs[q]);
        result.flips.push_back(judged.flips[q]);
        result.reversals.push_back(judged.reversals[q]);
        result.loss.push_back(judged.loss[q]);
        result.full.push_back(scored.present.empty()
                                  ? d.full_ndcg[q]
                                  : ndcg(rank_pages(std::as_const(full).view().row_span(q), 5), relevance[q], 5));
    }
    result.margin_error = judged.total.mean_margin_error();
}

}  // namespace

nlohmann::json RunResult::to_json() const {
    return {{"ndcg", ndcg},   {"pairs", pairs},     {"flips", flips},     {"reversals", reversals},
            {"loss", loss},   {"full", full},       {"vectors", vectors}, {"bytes", bytes},
            {"extra", extra}, {"skipped", skipped}, {"seconds", seconds}, {"margin_error", margin_error}};
}

RunResult RunResult::from_json(const nlohmann::json& j) {
    RunResult r;
    const auto list = [&](const char* field) { return j.at(field).get<std::vector<double>>(); };
    r.ndcg = list("ndcg");
    r.pairs = list("pairs");
    r.flips = list("flips");
    r.reversals = list("reversals");
    r.loss = list("loss");
    r.full = list("full");
    r.vectors = j.at("vectors");
    r.bytes = j.at("bytes");
    r.margin_error = j.at("margin_error");
    r.extra = j.at("extra").get<std::map<std::string, double>>();
    r.skipped = j.at("skipped");
    r.seconds = j.at("seconds");
    return r;
}

RunResult run_method(const Method& method, const RunInputs& in) {
    const auto start = Clock::now();
    RunResult result;
    Scored scored = score(method, in);
    result.seconds = seconds_since(start);
    result.skipped = scored.skipped;
    if (!result.skipped.empty()) return result;
    const auto pages = static_cast<double>(in.data.documents.size());
    result.vectors = static_cast<double>(scored.trial.vectors) / pages;
    result.bytes = static_cast<double>(scored.trial.bytes) / pages;
    result.extra = std::move(scored.extra);
    judge(in.data, scored, result);
    return result;
}

Matrix method_scores(const Method& method, const RunInputs& in) { return std::move(score(method, in).trial.scores); }

}  // namespace marginmerge::lab
