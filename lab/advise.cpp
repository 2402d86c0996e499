#include "lab/advise.h"

#include <unistd.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "core/fail.h"
#include "core/numpy_random.h"
#include "core/random.h"
#include "io/atomic_file.h"
#include "io/finite_vectors.h"
#include "io/folders.h"
#include "io/multi_vector_file.h"
#include "io/qrels.h"
#include "jobs/judged.h"
#include "lab/chart.h"
#include "marginmerge/jobs/fit.h"
#include "marginmerge/jobs/model_file.h"
#include "marginmerge/jobs/presets.h"
#include "merge/registry.h"

namespace marginmerge::lab {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t enough_queries = 40;  // below, fitting to half of them is not worth it

// A folder for the models `fit` writes, gone at the end.
class Scratch {
public:
    Scratch() {
        std::string pattern = (fs::temp_directory_path() / "marginmerge-advise-XXXXXX").string();
        if (mkdtemp(pattern.data()) == nullptr) fail(ErrorCode::io, "{}: cannot create a temporary folder", pattern);
        path_ = pattern;
    }
    ~Scratch() {
        std::error_code error;
        fs::remove_all(path_, error);
    }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    fs::path operator/(const char* name) const { return path_ / name; }

private:
    fs::path path_;
};

class Advisor {
public:
    explicit Advisor(const AdviseOptions& options) : o_(options) {
        if (!(o_.target > 0 && o_.target <= 1.5))
            fail(ErrorCode::invalid_argument, "--target: expected a share such as 0.98, found {}", o_.target);
        if (!(o_.confidence > 0.5 && o_.confidence < 1))
            fail(ErrorCode::invalid_argument, "--confidence: expected a value between 0.5 and 1, found {}",
                 o_.confidence);
        documents_ = read_finite_vectors(o_.documents);
        queries_ = read_finite_vectors(o_.queries);
        if (documents_.size() == 0 || queries_.size() == 0)
            fail(ErrorCode::invalid_argument, "advise: expected documents and queries, found none");
        if (documents_.dim() != queries_.dim())
            fail(ErrorCode::invalid_argument, "{}: dimension: expected {} as in {}, found {}", o_.queries.string(),
                 documents_.dim(), o_.documents.string(), queries_.dim());
        if (!o_.qrels.empty()) judgements_ = read_qrels(o_.qrels);
    }

    Advice run() {
        keep_judged();
        check_queries();
        take_sample();
        std::vector<VectorCode> codes;
        for (const auto& name : o_.codes) codes.push_back(parse_vector_code(name));
        const CodedQueries coded(queries_, codes);
        AdviceInputs in;
        in.k = o_.k;
        in.target = o_.target;
        in.confidence = o_.confidence;
        in.keeps = o_.keeps;
        in.codes = codes;
        in.pages = documents_.size();
        in.dim = documents_.dim();
        in.mean_vectors = static_cast<double>(documents_.total_vectors()) / static_cast<double>(documents_.size());
        in.tokens.assign(coded.tokens().begin(), coded.tokens().end());
        const VectorCode plain[] = {VectorCode::f32};
        in.full = std::move(
            score_made_pages(documents_.size(), whole_pages(documents_), coded, plain, o_.threads).front().scores);
        judge_queries(in);
        fit_halves();
        std::size_t done = 0;
        in.scores = [&](double keep) {
            auto scores = scores_at(keep, coded, codes);
            if (o_.progress) o_.progress({"advise", "budgets", ++done, in.keeps.size(), {}});
            return scores;
        };
        Advice advice = find_smallest(in);
        advice.labels = !o_.qrels.empty();
        advice.method = method_;
        advice.notes.insert(advice.notes.begin(), notes_.begin(), notes_.end());
        return advice;
    }

private:
    void keep_judged() {
        if (o_.qrels.empty()) return;
        std::vector<std::size_t> kept;
        for (std::size_t q = 0; q < queries_.size(); ++q) {
            const auto found = judgements_.find(queries_.id(q));
            if (found == judgements_.end()) continue;
            if (std::any_of(found->second.begin(), found->second.end(),
                            [&](const auto& j) { return j.second > 0 && documents_.find(j.first); }))
                kept.push_back(q);
        }
        if (kept.empty())
            fail(ErrorCode::invalid_argument, "{}: expected a relevant document for at least one query, found none",
                 o_.qrels.string());
        if (kept.size() < queries_.size())
            notes_.push_back(
                fmt::format("{} queries without a relevant document were left out", queries_.size() - kept.size()));
        queries_ = queries_.subset(kept);
    }

    // A bootstrap of a handful of queries is sure of whatever these happen to say.
    void check_queries() {
        constexpr std::size_t least = 5, enough = 30;
        if (queries_.size() < least)
            fail(ErrorCode::invalid_argument, "{}: expected at least {} queries to be confident of anything, found {}",
                 o_.queries.string(), least, queries_.size());
        if (queries_.size() < enough)
            notes_.push_back(fmt::format("only {} queries: the confidence is that of a small sample; take {} or more",
                                         queries_.size(), enough));
    }

    void take_sample() {
        if (o_.sample == 0 || documents_.size() <= o_.sample) return;
        std::set<std::size_t> kept;
        for (std::size_t q = 0; q < queries_.size(); ++q)
            if (const auto found = judgements_.find(queries_.id(q)); found != judgements_.end())
                for (const auto& [id, grade] : found->second)
                    if (const auto position = documents_.find(id); position && grade > 0) kept.insert(*position);
        Random random(mix_seed(o_.seed, 0));
        while (kept.size() < o_.sample) kept.insert(random.below(documents_.size()));
        notes_.push_back(
            fmt::format("{} of {} documents were looked at: every relevant one and a random sample of the others",
                        kept.size(), documents_.size()));
        documents_ = documents_.subset(std::vector<std::size_t>(kept.begin(), kept.end()));
    }

    void judge_queries(AdviceInputs& in) const {
        for (std::size_t q = 0; q < queries_.size(); ++q) {
            const auto found = judgements_.find(queries_.id(q));
            in.relevance.push_back(
                found != judgements_.end()
                    ? relevance_from(found->second, [&](const std::string& id) { return documents_.find(id); })
                    : best_as_relevant(std::as_const(in.full).view().row_span(q), o_.top));
        }
    }

    // One model for all queries when it was given or nothing is fitted; else one for each half, made from the other.
    void fit_halves() {
        half_.assign(queries_.size(), 0);
        models_.resize(1);
        if (!o_.model.empty()) {
            models_[0] = load_model(o_.model);
            recipes_.push_back(models_[0].recipe);
            method_ = "the given model (" + recipes_[0].representative + ")";
            notes_.push_back("the model must have been fitted on other queries than these, or the advice is too good");
            return;
        }
        std::string preset = o_.preset;
        if (preset == "auto") preset = queries_.size() >= enough_queries ? "default" : "fixed";
        if (preset == "fixed") {
            recipes_.push_back(preset_recipe(default_preset()));
            method_ = fmt::format("{} (no training)", recipes_[0].preset);
            return;
        }
        if (queries_.size() < 2)
            fail(ErrorCode::invalid_argument, "--preset {}: expected at least two queries to fit and judge, found {}",
                 preset, queries_.size());
        const auto order =
            NumpyRandom(static_cast<std::uint32_t>(o_.seed)).permutation(static_cast<std::int64_t>(queries_.size()));
        for (std::size_t i = 0; i < order.size(); ++i) half_[static_cast<std::size_t>(order[i])] = i % 2;
        const Scratch scratch;
        FitOptions fit_options;
        FitSource source;
        source.name = "advise";
        source.document_set = documents_;
        if (!o_.qrels.empty()) source.judgements = judgements_;
        fit_options.preset = preset;
        fit_options.output = scratch / "model.safetensors";
        fit_options.threads = o_.threads;
        fit_options.seed = o_.seed;
        fit_options.progress = o_.progress;
        models_.resize(2);
        for (std::size_t h = 0; h < 2; ++h) {
            std::vector<std::size_t> others;
            for (std::size_t q = 0; q < queries_.size(); ++q)
                if (half_[q] != h) others.push_back(q);
            source.query_set = queries_.subset(others);
            fit_options.sources = {source};
            fit(fit_options);
            models_[h] = load_model(fit_options.output);
            recipes_.push_back(models_[h].recipe);
        }
        method_ = fmt::format(
            "fit --preset {} ({}{}), each query judged by a model fitted on the other half", preset,
            recipes_[0].representative,
            recipes_[1].representative == recipes_[0].representative ? "" : " and " + recipes_[1].representative);
    }

    std::vector<TrialScores> scores_at(double keep, const CodedQueries& coded, const std::vector<VectorCode>& codes) {
        if (keep >= 1) return score_made_pages(documents_.size(), whole_pages(documents_), coded, codes, o_.threads);
        std::vector<TrialScores> out;
        for (std::size_t h = 0; h < recipes_.size(); ++h) {
            Recipe recipe = recipes_[h];
            recipe.budget.keep = keep;
            recipe.budget.vectors = 0;
            recipe.seed = o_.seed;
            auto made = score_made_pages(documents_.size(), recipe_pages(documents_, models_[h], recipe, o_.threads),
                                         coded, codes, o_.threads);
            if (h == 0) {
                out = std::move(made);
                continue;
            }
            for (std::size_t c = 0; c < codes.size(); ++c)
                for (std::size_t q = 0; q < queries_.size(); ++q)
                    if (half_[q] == h) std::copy_n(made[c].scores.row(q), documents_.size(), out[c].scores.row(q));
        }
        return out;
    }

    const AdviseOptions& o_;
    MultiVectorSet documents_, queries_;
    Judgements judgements_;
    std::vector<std::size_t> half_;  ///< which model judges a query
    std::vector<Model> models_;
    std::vector<Recipe> recipes_;
    std::string method_;
    std::vector<std::string> notes_;
};

}  // namespace

Advice find_smallest(const AdviceInputs& in) {
    if (in.keeps.empty() || in.codes.empty())
        fail(ErrorCode::invalid_argument, "advise: expected shares and codes, found none");
    Advice advice;
    advice.target = in.target;
    advice.confidence = in.confidence;
    advice.queries = in.relevance.size();
    advice.documents = in.pages;
    advice.full_bytes = static_cast<double>(CodedQueries::page_bytes(VectorCode::f16, 1, in.dim)) * in.mean_vectors;
    const JudgedScores full = judge_scores(in.full, in.full, in.relevance, in.tokens, in.k);
    advice.full_ndcg = std::accumulate(full.ndcg.begin(), full.ndcg.end(), 0.0) / static_cast<double>(full.ndcg.size());
    auto keeps = in.keeps;
    std::sort(keeps.rbegin(), keeps.rend());
    BootstrapOptions bootstrap;
    bootstrap.low = 100 * (1 - in.confidence) / static_cast<double>(in.codes.size());
    bootstrap.high = 100 - bootstrap.low;
    std::vector<std::vector<AdvicePoint>> by_code(in.codes.size());
    for (const double keep : keeps) {
        if (!(keep > 0 && keep <= 1))
            fail(ErrorCode::invalid_argument, "keep: expected shares above 0 and at most 1, found {}", keep);
        const auto scores = in.scores(keep);
        for (std::size_t c = 0; c < in.codes.size(); ++c) {
            const JudgedScores judged = judge_scores(in.full, scores[c].scores, in.relevance, in.tokens, in.k);
            AdvicePoint point;
            point.keep = keep;
            point.code = in.codes[c];
            point.vectors_per_page = static_cast<double>(scores[c].vectors) / static_cast<double>(in.pages);
            point.bytes_per_page = static_cast<double>(scores[c].bytes) / static_cast<double>(in.pages);
            point.retention = ratio_bootstrap(judged.ndcg, full.ndcg, bootstrap);
            point.flips = judged.total.flip_rate();
            point.tested = by_code[c].empty() || by_code[c].back().passes;
            point.passes = point.tested && point.retention.low >= in.target;
            by_code[c].push_back(point);
        }
    }
    for (const auto& points : by_code) advice.points.insert(advice.points.end(), points.begin(), points.end());
    for (std::size_t i = 0; i < advice.points.size(); ++i)
        if (advice.points[i].passes &&
            (!advice.best || advice.points[i].bytes_per_page < advice.points[*advice.best].bytes_per_page))
            advice.best = i;
    if (!advice.best || advice.points[*advice.best].keep >= 1)
        advice.notes.push_back(
            fmt::format("{} queries do not show with {:g}% confidence that fewer vectors reach the target; more "
                        "queries narrow the intervals",
                        advice.queries, 100 * in.confidence));
    return advice;
}

Advice advise(const AdviseOptions& options) {
    Advice advice = Advisor(options).run();
    if (options.output.empty()) return advice;
    make_folder(options.output);
    write_text_file(options.output / "advice.json", advice_json(advice));
    write_text_file(options.output / "advice.csv", advice_csv(advice));
    write_text_file(options.output / "frontier.svg",
                    svg_document({frontier_panel(advice, options.documents.stem().string())}, "Quality against bytes"));
    return advice;
}

}  // namespace marginmerge::lab
