#include <algorithm>
#include <cmath>

#include "core/clock.h"
#include "core/parallel.h"
#include "core/random.h"
#include "jobs/fit_context.h"
#include "kernels/convert.h"
#include "learn/alignment.h"
#include "learn/mining.h"
#include "merge/registry.h"

namespace marginmerge {

namespace {

constexpr double usual_share = 0.005;  // of pairs may change their order with the default preset
constexpr std::size_t alignment_folds = 5;
constexpr std::size_t least_judged = 20;      // queries
constexpr std::size_t ranked = 40;            // best pages of the full index beside the relevant ones of a query
constexpr std::size_t most_relevant = 40;     // of a query
constexpr std::size_t drawn_pages = 40;       // pages at random beside them
constexpr std::size_t most_documents = 1500;  // a corpus' pages among which queries are ranked
constexpr std::size_t most_numbers = std::size_t{48} << 20;  // in the answers of all queries: 96 MB
constexpr std::size_t most_dimensions = 512;                 // of a change

// A query that can be judged: some of its relevant pages are there.
struct JudgedRef {
    std::size_t corpus;
    std::size_t query;
};

// Every judged query of the training side in a fixed random order, as many as their answers have room for.
std::vector<JudgedRef> choose_queries(const FitContext& context) {
    std::vector<JudgedRef> all;
    for (std::size_t c = 0; c < context.corpora.size(); ++c) {
        const FitCorpus& corpus = context.corpora[c];
        if (corpus.role != DataRole::train || corpus.pseudo) continue;
        for (const auto q : corpus.own_queries())
            if (!corpus.labels[q].documents.empty() && corpus.queries.vectors_of(q) > 0) all.push_back({c, q});
    }
    Random random(mix_seed(42, 31));
    random.shuffle(std::span(all));
    std::size_t numbers = 0, count = 0;
    for (; count < all.size(); ++count) {
        const FitCorpus& corpus = context.corpora[all[count].corpus];
        const std::size_t relevant = std::min(most_relevant, corpus.labels[all[count].query].documents.size());
        numbers +=
            (relevant + ranked + drawn_pages) * corpus.queries.vectors_of(all[count].query) * corpus.queries.dim();
        if (numbers > most_numbers) break;
    }
    all.resize(count);
    return all;
}

// Pages of a corpus that these queries are ranked among: what is relevant to one of them, and a sample of the others.
std::vector<std::size_t> choose_documents(const FitCorpus& corpus, std::span<const std::size_t> queries) {
    if (corpus.training_documents.size() <= most_documents) return corpus.training_documents;
    std::vector<std::size_t> chosen = corpus.training_documents;
    Random random(mix_seed(42, 32));
    random.shuffle(std::span(chosen));
    chosen.resize(most_documents);
    for (const auto q : queries) {
        const auto& relevant = corpus.labels[q].documents;
        chosen.insert(chosen.end(), relevant.begin(), relevant.end());
    }
    std::sort(chosen.begin(), chosen.end());
    chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
    return chosen;
}

// What answers the query on the pages that are relevant, on those that rank high and on some others.
JudgedQuery judged_query(const FitCorpus& corpus, std::size_t query, const MinedQuery& mined,
                         std::span<const std::size_t> documents) {
    JudgedQuery out;
    out.tokens = to_float(corpus.queries.vectors(query));
    const QueryLabels& labels = corpus.labels[query];
    std::vector<std::size_t> pages;
    const auto add = [&](std::size_t page, int grade) {
        if (corpus.documents.vectors_of(page) == 0) return;
        pages.push_back(page);
        out.grades.push_back(grade);
    };
    for (std::size_t i = 0; i < std::min(labels.documents.size(), most_relevant); ++i)
        add(labels.documents[i], labels.grades[i]);
    if (pages.empty()) return out;
    for (const ScoredDocument& page : mined.top) add(page.document, 0);
    out.contested = pages.size();
    Random random(mix_seed(42, query));
    for (std::size_t i = 0; i < 2 * drawn_pages && pages.size() < out.contested + drawn_pages; ++i) {
        const std::size_t page = documents[random.below(documents.size())];
        const auto& relevant = labels.documents;
        if (std::find(relevant.begin(), relevant.end(), page) == relevant.end()) add(page, 0);
    }
    const std::size_t t = out.tokens.rows(), d = out.tokens.cols();
    out.answers.resize(pages.size() * t * d);
    Matrix found(t, d);
    for (std::size_t i = 0; i < pages.size(); ++i) {
        const Matrix page = to_float(corpus.documents.vectors(pages[i]));
        out.scores.push_back(find_answers(out.tokens, page, found));
        from_float(found.flat(), ScalarType::f16, out.answers.data() + i * t * d);
        out.lengths.push_back(std::log(static_cast<float>(page.rows())));
    }
    return out;
}

std::vector<JudgedQuery> judged_queries(const FitContext& context) {
    std::vector<JudgedQuery> all;
    const std::vector<JudgedRef> refs = choose_queries(context);
    for (std::size_t c = 0; c < context.corpora.size(); ++c) {
        const FitCorpus& corpus = context.corpora[c];
        std::vector<std::size_t> queries;
        for (const JudgedRef& ref : refs)
            if (ref.corpus == c) queries.push_back(ref.query);
        if (queries.empty()) continue;
        const std::vector<std::size_t> documents = choose_documents(corpus, queries);
        std::vector<const PreparedQuery*> prepared;
        std::vector<std::vector<std::size_t>> positives;
        for (const auto q : queries) {
            prepared.push_back(&context.queries[c][q]);
            positives.push_back(corpus.labels[q].documents);
        }
        MiningOptions options;
        options.negatives = ranked;
        options.threads = context.options.threads;
        options.cluster = context.options.cluster;
        const auto mined = mine_hard_negatives(corpus.documents, documents, prepared, positives, options);
        std::vector<JudgedQuery> judged(queries.size());
        parallel_for(queries.size(), context.options.threads,
                     [&](std::size_t i) { judged[i] = judged_query(corpus, queries[i], mined[i], documents); });
        // Where nearly every page is relevant there is nothing to compare with.
        for (JudgedQuery& query : judged)
            if (query.pages() >= query.contested + drawn_pages / 2) all.push_back(std::move(query));
    }
    return all;
}

// Lengths relative to the usual one, which is returned.
double centre_lengths(std::vector<JudgedQuery>& queries) {
    double sum = 0, count = 0;
    for (const JudgedQuery& q : queries) {
        for (std::size_t i = q.contested; i < q.pages(); ++i) sum += q.lengths[i];
        count += static_cast<double>(q.pages() - q.contested);
    }
    const double usual = sum / count;
    for (JudgedQuery& q : queries)
        for (float& length : q.lengths) length -= static_cast<float>(usual);
    return std::exp(usual);
}

// What each share of an alignment does to queries it was not learned from.
struct CrossValidation {
    std::vector<double> shares;
    std::vector<double> loss, ndcg, flips;  // means, by share
    std::vector<std::vector<double>> each;  // nDCG@5 of each query, by share

    // Of the mean difference to the full index.
    double standard_error(std::size_t share) const {
        const auto n = static_cast<double>(each[share].size());
        const double mean = ndcg[share] - ndcg[0];
        double square = 0;
        for (std::size_t i = 0; i < each[share].size(); ++i) square += std::pow(each[share][i] - each[0][i] - mean, 2);
        return std::sqrt(square / std::max(1.0, n - 1) / n);
    }
    bool helps(std::size_t share) const { return share != 0 && ndcg[share] - ndcg[0] > standard_error(share); }
};

CrossValidation cross_validate(std::span<const JudgedQuery* const> queries, const AlignmentSettings& settings) {
    CrossValidation out;
    out.shares = {0, 2};
    while (out.shares.back() > 0.025) out.shares.push_back(0.85 * out.shares.back());
    const std::size_t n = out.shares.size();
    out.loss.assign(n, 0);
    out.ndcg.assign(n, 0);
    out.flips.assign(n, 0);
    out.each.resize(n);
    double pairs = 0;
    for (std::size_t fold = 0; fold < alignment_folds; ++fold) {
        std::vector<const JudgedQuery*> seen, unseen;
        for (std::size_t i = 0; i < queries.size(); ++i)
            (i % alignment_folds == fold ? unseen : seen).push_back(queries[i]);
        const Alignment alignment = learn_alignment(seen, settings);
        const double temperature = settings.temperature * score_spread(seen);
        for (const auto& of_query : judge_alignment(unseen, alignment, out.shares, temperature, settings.threads)) {
            pairs += static_cast<double>(of_query.front().pairs);
            for (std::size_t s = 0; s < n; ++s) {
                out.loss[s] += of_query[s].loss / static_cast<double>(queries.size());
                out.ndcg[s] += of_query[s].ndcg / static_cast<double>(queries.size());
                out.flips[s] += static_cast<double>(of_query[s].flips);
                out.each[s].push_back(of_query[s].ndcg);
            }
        }
    }
    for (double& f : out.flips) f /= std::max(1.0, pairs);
    return out;
}

// The least loss among the shares that change no more pairs than they may; 0 when there is none.
std::size_t best_share(const CrossValidation& v, double most_flips) {
    std::size_t best = 0;
    for (std::size_t s = 1; s < v.shares.size(); ++s)
        if (v.flips[s] <= most_flips && v.loss[s] < v.loss[best]) best = s;
    return best;
}

}  // namespace

void fit_alignment(FitContext& context) {
    const bool usual = representative_rule(context.preset.representative).needs_probes;
    const double most_flips = context.options.align.value_or(usual ? usual_share : 0);
    if (most_flips == 0) return;
    const auto clock = Clock::now();
    std::vector<JudgedQuery> judged = judged_queries(context);
    if (judged.size() < least_judged) return;
    const double usual_length = centre_lengths(judged);
    std::vector<const JudgedQuery*> queries(judged.size());
    std::transform(judged.begin(), judged.end(), queries.begin(), [](const JudgedQuery& q) { return &q; });

    AlignmentSettings settings;
    settings.threads = context.options.threads;
    settings.change = judged.front().tokens.cols() <= most_dimensions;
    const CrossValidation validation = cross_validate(queries, settings);
    std::size_t best = best_share(validation, most_flips);
    // What is asked for beyond the usual may be more than so few queries can teach.
    if (!validation.helps(best)) best = best_share(validation, std::min(most_flips, usual_share));
    FitAlignment& report = context.report.alignment;
    report.queries = queries.size();
    report.full_ndcg = validation.ndcg[0];
    report.ndcg = validation.ndcg[best];
    report.error = validation.standard_error(best);
    report.flips = validation.flips[best];
    report.kept = validation.helps(best);
    if (report.kept) {
        Alignment alignment = share_of(learn_alignment(queries, settings), validation.shares[best]);
        alignment.usual_length = static_cast<float>(usual_length);
        report.length_power = alignment.length_power;
        context.model.alignment = std::move(alignment);
        context.model.recipe.align = true;
    }
    context.provenance["alignment"] = {
        {"most_flips", most_flips},         {"queries", report.queries},      {"folds", alignment_folds},
        {"share", validation.shares[best]}, {"full_ndcg5", report.full_ndcg}, {"ndcg5", report.ndcg},
        {"standard_error", report.error},   {"flips", report.flips},          {"kept", report.kept}};
    context.report.seconds_training += seconds_since(clock);
}

}  // namespace marginmerge
