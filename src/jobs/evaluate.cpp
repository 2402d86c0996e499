#include "marginmerge/jobs/evaluate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <set>

#include "core/fail.h"
#include "core/parallel.h"
#include "io/finite_vectors.h"
#include "io/folders.h"
#include "io/multi_vector_file.h"
#include "io/qrels.h"
#include "io/trec_run.h"
#include "jobs/bench_clock.h"
#include "jobs/evaluate_outcome.h"
#include "jobs/judged.h"
#include "kernels/maxsim.h"
#include "marginmerge/core/version.h"
#include "marginmerge/data/run.h"

namespace marginmerge {

namespace {

namespace fs = std::filesystem;

struct Judged {
    std::shared_ptr<const Index> index;
    std::vector<std::size_t> full_position;  ///< of each of its pages
    RankedRun run;
    std::vector<double> ndcg, flips, pairs;  ///< per judged query
};

std::string name_of(const fs::path& path) {
    std::string name = (path.has_filename() ? path : path.parent_path()).filename().string();
    if (name.size() > 12 && name.ends_with(".safetensors")) name.resize(name.size() - 12);
    return name;
}

std::string unique_name(const std::string& base, const std::vector<IndexFigures>& others) {
    std::string name = base;
    const auto taken = [&] {
        return name == "full" ||
               std::any_of(others.begin(), others.end(), [&](const IndexFigures& f) { return f.name == name; });
    };
    for (int i = 2; taken(); ++i) name = base + "-" + std::to_string(i);
    return name;
}

std::vector<std::size_t> match_pages(const Index& index, const Index& full, const std::string& name) {
    std::vector<std::size_t> positions(index.size());
    for (std::size_t i = 0; i < index.size(); ++i) {
        const auto found = full.find(index.id(i));
        if (!found)
            fail(ErrorCode::invalid_argument,
                 "{}: page '{}' is not among the full documents; give those it was made from", name, index.id(i));
        positions[i] = *found;
    }
    return positions;
}

Quality quality_of(std::span<const float> scores, const Relevance& r, std::size_t k) {
    const auto ranking = rank_pages(scores, std::max<std::size_t>(k, 10));
    return {ndcg(ranking, r, k), recall(ranking, r, 1), recall(ranking, r, 5), recall(ranking, r, 10),
            reciprocal_rank(scores, r)};
}

void add(Quality& sum, const Quality& q, double weight) {
    sum.ndcg += weight * q.ndcg;
    sum.recall_1 += weight * q.recall_1;
    sum.recall_5 += weight * q.recall_5;
    sum.recall_10 += weight * q.recall_10;
    sum.reciprocal_rank += weight * q.reciprocal_rank;
}

void add_to_run(RankedRun& run, const std::string& query, std::span<const float> scores, const Index& full) {
    auto& ranking = run[query];
    for (const std::size_t p : rank_pages(scores, scores.size()))
        if (std::isfinite(scores[p])) ranking.push_back({full.id(p), static_cast<double>(scores[p])});
}

double median(std::vector<double> values) {
    if (values.empty()) return 0;
    std::sort(values.begin(), values.end());
    const std::size_t middle = values.size() / 2;
    return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double search_ms(const Index& index, const MultiVectorSet& queries, std::size_t count, const SearchOptions& o) {
    // A search on one thread takes its processor time; other programs on the machine then do not count.
    double (*const now)() = o.threads == 1 ? thread_seconds : wall_seconds;
    std::vector<double> times;
    count = std::min(count, queries.size());
    if (count > 0) index.search(queries.vectors(0), o);  // touches the pages of the file once
    for (std::size_t q = 0; q < count; ++q) {
        const double start = now();
        index.search(queries.vectors(q), o);
        times.push_back((now() - start) * 1e3);
    }
    return median(times);
}

double search_recall(const Index& index, const MultiVectorSet& queries, const SearchOptions& o) {
    SearchOptions exact = o;
    exact.first_pass = FirstPass::none;
    const auto expected = index.search_batch(queries, exact);
    const auto found = index.search_batch(queries, o);
    std::size_t wanted = 0, kept = 0;
    for (std::size_t q = 0; q < expected.size(); ++q) {
        std::set<std::size_t> positions;
        for (const Hit& h : found[q]) positions.insert(h.position);
        for (const Hit& h : expected[q]) kept += positions.count(h.position);
        wanted += expected[q].size();
    }
    return wanted > 0 ? static_cast<double>(kept) / static_cast<double>(wanted) : 1;
}

std::size_t best_page(std::span<const float> scores) {
    const auto top = rank_pages(scores, 1);
    return top.empty() ? no_page : top.front();
}

class Evaluation {
public:
    Evaluation(const EvaluateInputs& inputs, const EvaluateOptions& options)
        : o_(options), full_(inputs.full), queries_(inputs.queries), judgements_(inputs.judgements) {
        for (const auto& [name, index] : inputs.indexes) {
            Judged j;
            j.index = index;
            IndexFigures figures;
            figures.name = unique_name(name, report_.indexes);
            figures.path = index->path().string();
            figures.stats = index->stats();
            j.full_position = match_pages(*index, *full_, figures.path.empty() ? figures.name : figures.path);
            figures.missing = full_->size() - index->size();
            report_.indexes.push_back(std::move(figures));
            judged_.push_back(std::move(j));
        }
    }

    EvaluateReport run() {
        report_.full_path = o_.full.string();
        report_.queries_path = o_.queries.string();
        report_.qrels_path = o_.qrels.string();
        report_.k = o_.k;
        report_.top = o_.top;
        report_.threads = resolve_threads(o_.threads);
        report_.labels = !o_.no_labels;
        report_.kernel = kernel_name();
        report_.version = version();
        report_.full = full_->stats();
        judge_all();
        if (o_.cluster != nullptr && !o_.cluster->leads()) return {};
        for (const auto& [query, grades] : judgements_) report_.unknown_queries += !queries_.find(query);
        if (report_.queries == 0)
            fail(ErrorCode::invalid_argument,
                 "{}: expected a relevant page for at least one of the {} queries, found none",
                 (o_.qrels.empty() ? o_.queries : o_.qrels).string(), queries_.size());
        summarise();
        time_searches();
        write_runs();
        return std::move(report_);
    }

private:
    // Everything about one query that takes time; changes nothing, so that it can be done anywhere.
    QueryOutcome judge(std::size_t q) const {
        const std::string id = queries_.id(q);
        const std::vector<float> full = full_->score_all(queries_.vectors(q), o_.threads);
        Relevance relevance;
        if (o_.no_labels) {
            relevance = best_as_relevant(full, o_.top);
        } else if (const auto found = judgements_.find(id); found != judgements_.end()) {
            relevance = relevance_from(found->second, [&](const std::string& page) { return full_->find(page); });
        }
        QueryOutcome out;
        out.judged = relevance.empty() ? 0 : 1;
        out.full = quality_of(full, relevance, o_.k);
        const auto full_top = rank_pages(full, std::max<std::size_t>(o_.top, 5));
        for (const Judged& j : judged_) {
            std::vector<float> scores(full.size(), -std::numeric_limits<float>::infinity());
            const auto own = j.index->score_all(queries_.vectors(q), o_.threads);
            for (std::size_t p = 0; p < own.size(); ++p) scores[j.full_position[p]] = own[p];
            IndexOutcome& figures = out.indexes.emplace_back();
            if (out.judged != 0) {
                figures.quality = quality_of(scores, relevance, o_.k);
                figures.fidelity = fidelity(full, scores, relevance, queries_.vectors_of(q));
                const auto top = rank_pages(scores, std::max<std::size_t>(o_.top, 5));
                figures.overlap_1 = overlap(full_top, top, 1);
                figures.overlap_5 = overlap(full_top, top, 5);
                figures.overlap_top = overlap(full_top, top, o_.top);
                figures.first_full = best_page(full);
                figures.first_index = best_page(scores);
            }
            if (!o_.runs.empty()) out.scores.push_back(std::move(scores));
        }
        if (!o_.runs.empty()) out.scores.push_back(full);
        return out;
    }

    // Adds a query's outcome to the report; called in the order of the queries.
    void accept(std::size_t q, const QueryOutcome& outcome) {
        const std::string id = queries_.id(q);
        if (!o_.runs.empty()) {
            for (std::size_t i = 0; i < judged_.size(); ++i) add_to_run(judged_[i].run, id, outcome.scores[i], *full_);
            add_to_run(full_run_, id, outcome.scores.back(), *full_);
        }
        if (outcome.judged == 0) {
            ++report_.skipped;
            return;
        }
        ++report_.queries;
        add(report_.full_quality, outcome.full, 1);
        full_ndcg_.push_back(outcome.full.ndcg);
        for (std::size_t i = 0; i < judged_.size(); ++i) {
            const IndexOutcome& own = outcome.indexes[i];
            IndexFigures& figures = report_.indexes[i];
            figures.per_query.push_back({id, outcome.full, own.quality, own.fidelity.pairs, own.fidelity.flips,
                                         own.overlap_top, page_id(own.first_full), page_id(own.first_index)});
            figures.fidelity.add(own.fidelity);
            figures.overlap_1 += own.overlap_1;
            figures.overlap_5 += own.overlap_5;
            figures.overlap_top += own.overlap_top;
            add(figures.quality, own.quality, 1);
            judged_[i].ndcg.push_back(own.quality.ndcg);
            judged_[i].flips.push_back(static_cast<double>(own.fidelity.flips));
            judged_[i].pairs.push_back(static_cast<double>(own.fidelity.pairs));
        }
    }

    void judge_all() {
        const std::size_t count = queries_.size();
        const auto report_progress = [&](std::size_t done) {
            if (o_.progress) o_.progress({"evaluate", "queries", done, count, {}});
        };
        if (o_.cluster == nullptr) {
            for (std::size_t q = 0; q < count; ++q) {
                accept(q, judge(q));
                report_progress(q + 1);
            }
            return;
        }
        std::vector<std::size_t> all(count);
        std::iota(all.begin(), all.end(), std::size_t{0});
        std::vector<std::optional<QueryOutcome>> outcomes(count);
        std::size_t next = 0;  // queries before it are in the report
        std::size_t done = 0;
        o_.cluster->run(
            all, [&](std::size_t q) { return pack(judge(q)); },
            [&](std::size_t q, std::span<const std::byte> bytes) {
                outcomes[q] = unpack(bytes, judged_.size(), o_.runs.empty() ? 0 : full_->size());
                for (; next < count && outcomes[next]; outcomes[next++].reset()) accept(next, *outcomes[next]);
                report_progress(++done);
            });
    }

    std::string page_id(std::size_t position) const {
        return position == no_page ? std::string() : full_->id(position);
    }

    void summarise() {
        const double share = 1.0 / static_cast<double>(report_.queries);
        const auto scaled = [&](const Quality& q) {
            Quality mean;
            add(mean, q, share);
            return mean;
        };
        report_.full_quality = scaled(report_.full_quality);
        for (std::size_t i = 0; i < judged_.size(); ++i) {
            IndexFigures& f = report_.indexes[i];
            f.quality = scaled(f.quality);
            f.overlap_1 *= share;
            f.overlap_5 *= share;
            f.overlap_top *= share;
            f.retention = report_.full_quality.ndcg > 0 ? f.quality.ndcg / report_.full_quality.ndcg : 0;
            f.ndcg_difference = paired_bootstrap(judged_[i].ndcg, full_ndcg_);
            f.ndcg_against_first = paired_bootstrap(judged_[i].ndcg, judged_[0].ndcg);
            f.flips = ratio_bootstrap(judged_[i].flips, judged_[i].pairs);
        }
    }

    void time_searches() {
        if (o_.timed_queries == 0) return;
        SearchOptions plain;
        plain.k = o_.top;
        plain.threads = o_.threads;
        SearchOptions own = o_.search;
        own.k = o_.top;
        own.threads = o_.threads;
        report_.full_search_ms = search_ms(*full_, queries_, o_.timed_queries, plain);
        for (std::size_t i = 0; i < judged_.size(); ++i) {
            IndexFigures& f = report_.indexes[i];
            f.search_ms = search_ms(*judged_[i].index, queries_, o_.timed_queries, own);
            if (own.first_pass != FirstPass::none) f.search_recall = search_recall(*judged_[i].index, queries_, own);
        }
    }

    void write_runs() const {
        if (o_.runs.empty()) return;
        make_folder(o_.runs);
        write_trec_run(o_.runs / "full.run", full_run_);
        for (std::size_t i = 0; i < judged_.size(); ++i)
            write_trec_run(o_.runs / (report_.indexes[i].name + ".run"), judged_[i].run);
    }

    const EvaluateOptions& o_;
    std::shared_ptr<const Index> full_;
    const MultiVectorSet& queries_;
    const Judgements& judgements_;
    std::vector<Judged> judged_;
    std::vector<double> full_ndcg_;
    RankedRun full_run_;
    EvaluateReport report_;
};

}  // namespace

EvaluateReport evaluate_job(const EvaluateOptions& options) {
    if (!options.no_labels && options.qrels.empty())
        fail(ErrorCode::invalid_argument,
             "qrels: expected relevance judgements, or no_labels to judge against the full index");
    EvaluateInputs inputs;
    inputs.full = Index::open(options.full);
    inputs.queries = read_finite_vectors(options.queries, options.threads);
    if (!options.no_labels) inputs.judgements = read_qrels(options.qrels);
    for (const auto& path : options.indexes) inputs.indexes.push_back({name_of(path), Index::open(path)});
    return evaluate(inputs, options);
}

EvaluateReport evaluate(const EvaluateInputs& inputs, const EvaluateOptions& options) {
    if (inputs.indexes.empty()) fail(ErrorCode::invalid_argument, "index: expected at least one to judge");
    return Evaluation(inputs, options).run();
}

}  // namespace marginmerge
