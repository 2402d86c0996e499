#include "lab/dataset.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "core/fail.h"
#include "core/numpy_random.h"
#include "core/parallel.h"
#include "data/redundancy.h"
#include "io/finite_vectors.h"
#include "io/multi_vector_file.h"
#include "io/qrels.h"
#include "jobs/fingerprint.h"
#include "jobs/judged.h"
#include "kernels/convert.h"
#include "lab/dataset_files.h"
#include "learn/split.h"

namespace marginmerge::lab {

namespace fs = std::filesystem;

namespace {

constexpr double held_out = 0.3;         // the paper's share of documents on the evaluation side
constexpr std::size_t teacher_top = 10;  // what counts as relevant where nothing is judged
constexpr std::size_t redundancy_pages = 200;

std::set<std::size_t> relevant_documents(const Judgements& judgements, const std::string& query,
                                         const MultiVectorSet& documents) {
    std::set<std::size_t> out;
    const auto found = judgements.find(query);
    if (found == judgements.end()) return out;
    for (const auto& [id, grade] : found->second)
        if (const auto position = documents.find(id); position && grade > 0) out.insert(*position);
    return out;
}

// A query set with its judgements, as read.
struct Side {
    MultiVectorSet queries;
    Judgements judgements;
    bool judged = false;

    void read(const fs::path& queries_file, const fs::path& qrels_file) {
        if (!queries_file.empty()) queries = read_finite_vectors(queries_file);
        judged = !qrels_file.empty();
        if (judged) judgements = read_qrels(qrels_file);
    }
    // Queries that can be judged, the first `limit` of them.
    void keep_usable(const MultiVectorSet& documents, std::size_t limit) {
        std::vector<std::size_t> kept;
        for (std::size_t q = 0; q < queries.size() && (limit == 0 || kept.size() < limit); ++q) {
            if (queries.vectors_of(q) == 0) continue;
            if (judged && relevant_documents(judgements, queries.id(q), documents).empty()) continue;
            kept.push_back(q);
        }
        if (kept.size() < queries.size()) queries = queries.subset(kept);
    }
    void take(const Side& from, const std::vector<std::size_t>& positions) {
        queries = from.queries.subset(positions);
        judgements = from.judgements;
        judged = from.judged;
    }
};

Judgements only(const Judgements& judgements, const MultiVectorSet& queries) {
    Judgements out;
    for (std::size_t q = 0; q < queries.size(); ++q)
        if (const auto found = judgements.find(queries.id(q)); found != judgements.end()) out.insert(*found);
    return out;
}

class Loader {
public:
    Loader(const DatasetSource& source, const DatasetLimits& limits, std::size_t threads)
        : limits_(limits), threads_(threads), data_(std::make_unique<Dataset>()) {
        data_->source = source;
    }

    std::unique_ptr<Dataset> load() {
        const DatasetSource& s = data_->source;
        data_->documents = read_finite_vectors(s.documents);
        if (data_->documents.size() == 0 || data_->documents.total_vectors() == 0)
            fail(ErrorCode::invalid_argument, "{}: expected documents with vectors, found none", s.documents.string());
        const bool given = !s.test_queries.empty();
        if (given) {
            train_.read(s.train_queries, s.train_qrels);
            test_.read(s.test_queries, s.test_qrels);
        } else {
            if (s.queries.empty()) fail(ErrorCode::invalid_argument, "{}: expected queries, found none", s.name);
            all_.read(s.queries, s.qrels);
        }
        limit(given);
        if (given)
            data_->split = "given";
        else
            divide();
        if (test_.queries.size() == 0)
            fail(ErrorCode::invalid_argument, "{}: expected at least one query to judge, found none", s.name);
        if (test_.queries.dim() != data_->documents.dim())
            fail(ErrorCode::invalid_argument, "{}: dimension of queries: expected {}, found {}", s.name,
                 data_->documents.dim(), test_.queries.dim());
        describe_training();
        finish();
        return std::move(data_);
    }

private:
    void limit(bool given) {
        if (given) {
            train_.keep_usable(data_->documents, limits_.train_queries);
            test_.keep_usable(data_->documents, limits_.test_queries);
        } else {
            const bool all = limits_.train_queries == 0 || limits_.test_queries == 0;
            all_.keep_usable(data_->documents, all ? 0 : limits_.train_queries + limits_.test_queries);
        }
        if (limits_.documents == 0 || data_->documents.size() <= limits_.documents) return;
        std::set<std::size_t> kept;
        for (const Side* side : {&train_, &test_, &all_})
            for (std::size_t q = 0; q < side->queries.size(); ++q)
                kept.merge(relevant_documents(side->judgements, side->queries.id(q), data_->documents));
        for (std::size_t i = 0; i < data_->documents.size() && kept.size() < limits_.documents; ++i) kept.insert(i);
        data_->documents = data_->documents.subset(std::vector<std::size_t>(kept.begin(), kept.end()));
    }

    // The paper's: 30% of the documents and every query about them are the evaluation side. Where that leaves a
    // side without queries (many relevant documents a query, or no labels), queries are divided instead.
    void divide() {
        const MultiVectorSet& documents = data_->documents;
        const Split split = split_documents(static_cast<std::int64_t>(documents.size()), held_out);
        std::vector<char> evaluation(documents.size(), 0);
        for (const auto i : split.evaluation) evaluation[static_cast<std::size_t>(i)] = 1;
        std::vector<std::size_t> train, test;
        for (std::size_t q = 0; q < all_.queries.size() && all_.judged; ++q) {
            const auto relevant = relevant_documents(all_.judgements, all_.queries.id(q), documents);
            const bool judged =
                std::any_of(relevant.begin(), relevant.end(), [&](auto d) { return evaluation[d] != 0; });
            (judged ? test : train).push_back(q);
        }
        data_->split = "documents";
        data_->hold_out = held_out;
        if (train.size() * 4 < all_.queries.size() || test.empty()) {
            data_->split = "queries";
            data_->hold_out = 0;
            const auto order = NumpyRandom(0).permutation(static_cast<std::int64_t>(all_.queries.size()));
            const auto count = std::max<std::size_t>(1, order.size() * 3 / 10);
            test.assign(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count));
            train.assign(order.begin() + static_cast<std::ptrdiff_t>(count), order.end());
            std::sort(test.begin(), test.end());
            std::sort(train.begin(), train.end());
        }
        train_.take(all_, train);
        test_.take(all_, test);
    }

    void describe_training() {
        FitSource& t = data_->training;
        t.name = data_->source.name;
        t.role = data_->source.role;
        t.document_set = data_->documents;
        if (train_.queries.size() == 0) return;
        t.query_set = train_.queries;
        if (train_.judged) t.judgements = only(train_.judgements, train_.queries);
    }

    void finish() {
        Dataset& d = *data_;
        d.train = train_.queries;
        d.test = test_.queries;
        d.labels = test_.judged;
        for (std::size_t q = 0; q < d.train.size(); ++q) {
            const auto relevant = relevant_documents(train_.judgements, d.train.id(q), d.documents);
            d.train_relevant.emplace_back(relevant.begin(), relevant.end());
        }
        if (!train_.judged && d.train.size() > 0) teach();
        constexpr VectorCode codes[] = {VectorCode::f32, VectorCode::f16, VectorCode::int8, VectorCode::bits};
        d.queries = std::make_unique<CodedQueries>(d.test, codes);
        const VectorCode plain[] = {VectorCode::f32};
        d.full_scores = std::move(
            score_made_pages(d.documents.size(), whole_pages(d.documents), *d.queries, plain, threads_).front().scores);
        for (std::size_t q = 0; q < d.test.size(); ++q) {
            const auto scores = std::as_const(d.full_scores).view().row_span(q);
            const auto found = test_.judgements.find(d.test.id(q));
            d.relevance.push_back(
                d.labels && found != test_.judgements.end()
                    ? relevance_from(found->second, [&](const auto& id) { return d.documents.find(id); })
                    : best_as_relevant(scores, teacher_top));
            d.full_ndcg.push_back(ndcg(rank_pages(scores, 5), d.relevance.back(), 5));
        }
        measure_redundancy();
        fingerprint();
    }

    // Unjudged training queries: the full index's best page is what they are about, as `fit` has it.
    void teach() {
        Dataset& d = *data_;
        const VectorCode plain[] = {VectorCode::f32};
        const CodedQueries queries(d.train, plain);
        const Matrix scores = std::move(
            score_made_pages(d.documents.size(), whole_pages(d.documents), queries, plain, threads_).front().scores);
        for (std::size_t q = 0; q < d.train.size(); ++q) d.train_relevant[q] = rank_pages(scores.view().row_span(q), 1);
    }

    void measure_redundancy() {
        Dataset& d = *data_;
        const std::size_t count = std::min(redundancy_pages, d.documents.size());
        std::vector<double> ratio(count);
        parallel_for(count, threads_, [&](std::size_t i) {
            const Matrix v = to_float(d.documents.vectors(i * d.documents.size() / count));
            ratio[i] = v.rows() > 0 ? static_cast<double>(v.rows()) / effective_rank(v) : 0;
        });
        d.redundancy = std::accumulate(ratio.begin(), ratio.end(), 0.0) / static_cast<double>(count);
    }

    void fingerprint() {
        Dataset& d = *data_;
        std::string text = d.split + (d.labels ? " labels" : " no labels");
        const auto add = [&](const MultiVectorSet& set) {
            const VectorsView v = set.all_vectors();
            text += hash_hex(std::span(static_cast<const std::byte*>(v.data), v.bytes()));
            text += hash_hex(std::as_bytes(set.offsets()));
        };
        for (const MultiVectorSet* set : {&d.documents, &d.train, &d.test}) add(*set);
        for (const auto& r : d.relevance) {
            for (std::size_t i = 0; i < r.positions.size(); ++i)
                text += fmt::format(" {}:{}", r.positions[i], r.grades[i]);
            text += ";";
        }
        for (const auto& r : d.train_relevant) {
            for (const auto p : r) text += fmt::format(" {}", p);
            text += ";";
        }
        d.fingerprint = hash_hex(text);
    }

    DatasetLimits limits_;
    std::size_t threads_;
    std::unique_ptr<Dataset> data_;
    Side all_, train_, test_;
};

}  // namespace

std::unique_ptr<Dataset> load_dataset(const DatasetSource& source, const DatasetLimits& limits, const fs::path& work,
                                      std::size_t threads, const Progress& progress) {
    return Loader(with_files(source, work, threads, progress), limits, threads).load();
}

}  // namespace marginmerge::lab
