#include "jobs/judged_queries.h"

#include <algorithm>
#include <cmath>

#include "core/parallel.h"
#include "core/random.h"
#include "jobs/page_memory.h"
#include "kernels/convert.h"
#include "learn/mining.h"

namespace marginmerge {

namespace {

constexpr std::size_t ranked = 40;            // best pages of the full index beside the relevant ones of a query
constexpr std::size_t most_relevant = 40;     // of a query
constexpr std::size_t drawn_pages = 40;       // pages at random beside them
constexpr std::size_t most_documents = 1500;  // a corpus' pages among which queries are ranked
constexpr std::size_t most_numbers = std::size_t{48} << 20;  // in the answers of all queries: 96 MB

// A query that can be judged: some of its relevant pages are there.
struct JudgedRef {
    std::size_t corpus;
    std::size_t query;
};

// Every judged query of the training side in a fixed random order.
std::vector<JudgedRef> all_judged(const FitContext& context) {
    std::vector<JudgedRef> all;
    for (std::size_t c = 0; c < context.corpora.size(); ++c) {
        const FitCorpus& corpus = context.corpora[c];
        if (corpus.role != DataRole::train || corpus.pseudo) continue;
        for (const auto q : corpus.own_queries())
            if (!corpus.labels[q].documents.empty() && corpus.queries.vectors_of(q) > 0) all.push_back({c, q});
    }
    Random random(mix_seed(42, 31));
    random.shuffle(std::span(all));
    return all;
}

// The first of them, as many as their answers have room for.
std::vector<JudgedRef> choose_queries(const FitContext& context) {
    std::vector<JudgedRef> all = all_judged(context);
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
JudgedQuery judged_query(const FitCorpus& corpus, std::size_t query, std::span<const ScoredDocument> top,
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
    for (const ScoredDocument& page : top) add(page.document, 0);
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
        out.keys.push_back(page_key(corpus.page_hashes[pages[i]]));
    }
    return out;
}

// Where nearly every page is relevant there is nothing to compare with.
bool comparable(const JudgedQuery& query) { return query.pages() >= query.contested + drawn_pages / 2; }

}  // namespace

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
                     [&](std::size_t i) { judged[i] = judged_query(corpus, queries[i], mined[i].top, documents); });
        std::copy_if(std::move_iterator(judged.begin()), std::move_iterator(judged.end()), std::back_inserter(all),
                     comparable);
    }
    return all;
}

std::vector<AskedQuery> asked_queries(const FitContext& context, const MemorySettings& settings) {
    std::vector<JudgedRef> refs = all_judged(context);
    const std::size_t most = settings.most_numbers / std::max<std::size_t>(1, context.corpora.front().documents.dim());
    std::size_t tokens = 0, count = 0;
    for (; count < refs.size() && tokens <= most; ++count)
        tokens += context.corpora[refs[count].corpus].queries.vectors_of(refs[count].query);
    refs.resize(count);
    std::vector<std::vector<std::size_t>> documents;
    for (const FitCorpus& corpus : context.corpora) documents.push_back(choose_documents(corpus, {}));
    std::vector<AskedQuery> asked(refs.size());
    parallel_for(refs.size(), context.options.threads, [&](std::size_t i) {
        const FitCorpus& corpus = context.corpora[refs[i].corpus];
        const JudgedQuery query = judged_query(corpus, refs[i].query, {}, documents[refs[i].corpus]);
        if (comparable(query)) asked[i] = asked_of_pages(query, settings);
    });
    return asked;
}

}  // namespace marginmerge
