#include "jobs/fit_data.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
#include <set>

#include "core/fail.h"
#include "core/parallel.h"
#include "core/random.h"
#include "core/share.h"
#include "io/finite_vectors.h"
#include "io/multi_vector_file.h"
#include "io/qrels.h"
#include "jobs/page_memory.h"
#include "kernels/convert.h"
#include "kernels/products.h"
#include "kernels/sha256_lanes.h"
#include "learn/split.h"

namespace marginmerge {

namespace fs = std::filesystem;

FitSource source_from_folder(const std::string& folder_and_role) {
    FitSource source;
    std::string folder = folder_and_role;
    const auto colon = folder.rfind(':');
    if (colon != std::string::npos && !fs::is_directory(folder)) {
        const std::string role = folder.substr(colon + 1);
        folder.resize(colon);
        if (role == "train") {
            source.role = DataRole::train;
        } else if (role == "bank") {
            source.role = DataRole::bank;
        } else if (role == "zero-shot") {
            source.role = DataRole::zero_shot;
        } else {
            fail(ErrorCode::invalid_argument, "--data {}: role: expected train, bank or zero-shot, found {}",
                 folder_and_role, role);
        }
    }
    const fs::path root = folder;
    if (!fs::is_directory(root)) fail(ErrorCode::not_found, "--data {}: expected a folder, found none", folder);
    source.name = root.filename().empty() ? root.parent_path().filename().string() : root.filename().string();
    const auto first_of = [&](std::initializer_list<const char*> names) -> fs::path {
        for (const char* name : names) {
            if (fs::exists(root / name)) return root / name;
        }
        return {};
    };
    source.documents = first_of({"docs.safetensors", "documents.safetensors"});
    if (source.documents.empty()) fail(ErrorCode::not_found, "{}: expected docs.safetensors, found none", folder);
    source.queries = first_of({"train_queries.safetensors", "queries.safetensors"});
    source.qrels = first_of({"train_qrels.tsv", "qrels.tsv"});
    return source;
}

namespace {

// Of `count` messages, many side by side; bytes_of(i, space) may put what it returns into `space`.
template <class BytesOf>
std::vector<Sha256::Digest> hash_each(std::size_t count, std::size_t threads, Cluster* cluster,
                                      const BytesOf& bytes_of) {
    constexpr std::size_t together = 64;  // several for each lane
    std::vector<Sha256::Digest> hashes(count);
    const auto part = [&](std::size_t g) {
        return std::span(hashes).subspan(g * together, std::min(together, count - g * together));
    };
    const auto body = [&](std::size_t g, std::size_t) {
        const auto out = part(g);
        std::vector<std::vector<std::uint16_t>> spaces(out.size());
        std::vector<std::span<const std::byte>> messages;
        for (std::size_t i = 0; i < out.size(); ++i) messages.push_back(bytes_of(g * together + i, spaces[i]));
        const auto digests = sha256_of_each(messages);
        std::copy(digests.begin(), digests.end(), out.begin());
    };
    share_for(
        cluster, (count + together - 1) / together, threads, body,
        [&](std::size_t g, ByteWriter& out) { out.put(std::span<const Sha256::Digest>(part(g))); },
        [&](std::size_t g, ByteReader& in) { in.take(part(g)); });
    return hashes;
}

}  // namespace

std::vector<Sha256::Digest> hash_pages(const MultiVectorSet& documents, std::size_t threads, Cluster* cluster) {
    return hash_each(documents.size(), threads, cluster, [&](std::size_t i, std::vector<std::uint16_t>& halves) {
        return page_contents(documents.vectors(i), halves);
    });
}

MultiVectorSet draw_pseudo_queries(const MultiVectorSet& documents, std::span<const std::size_t> positions,
                                   std::size_t count, std::size_t tokens, std::uint64_t seed) {
    constexpr double disturbance = 0.5;  // length of the noise against a unit vector
    const std::size_t d = documents.dim();
    MultiVectorBuilder builder(d);
    for (std::size_t q = 0; q < count; ++q) {
        Random random(mix_seed(seed, q));
        const std::size_t document = positions[random.below(positions.size())];
        const Matrix v = to_float(documents.vectors(document));
        if (v.rows() == 0) continue;
        Matrix query(std::min(tokens, v.rows()), d);
        for (std::size_t t = 0; t < query.rows(); ++t) {
            const float* source = v.row(random.below(v.rows()));
            for (std::size_t j = 0; j < d; ++j) {
                query(t, j) =
                    source[j] + static_cast<float>(disturbance / std::sqrt(static_cast<double>(d)) * random.normal());
            }
        }
        normalise_rows(query);
        builder.add("pseudo-" + std::to_string(q), query);
    }
    return builder.finish();
}

namespace {

constexpr std::size_t listed = 10;  // overlaps named in an error

constexpr std::size_t pseudo_query_count = 300;
constexpr std::size_t pseudo_query_tokens = 16;

std::vector<std::string> read_query_ids(const fs::path& path) {
    std::vector<std::string> ids;
    if (path.extension() == ".safetensors") {
        const MultiVectorSet queries = read_multi_vectors(path);
        for (std::size_t i = 0; i < queries.size(); ++i) ids.push_back(queries.id(i));
        return ids;
    }
    std::ifstream in(path);
    if (!in) fail(ErrorCode::not_found, "{}: expected a list of query ids, found no readable file", path.string());
    for (std::string line; std::getline(in, line);) {
        if (!line.empty() && line.back() == '\r') line.pop_back();
        if (!line.empty()) ids.push_back(line);
    }
    return ids;
}

[[noreturn]] void overlap(const std::string& what, const std::vector<std::string>& names) {
    std::string list;
    for (std::size_t i = 0; i < std::min(listed, names.size()); ++i) list += (i > 0 ? ", " : "") + names[i];
    if (names.size() > listed) list += fmt::format(" and {} more", names.size() - listed);
    fail(ErrorCode::invalid_argument, "{} overlap: {}", what, list);
}

void attach_labels(FitCorpus& corpus, const Judgements& judgements) {
    for (std::size_t q = 0; q < corpus.queries.size(); ++q) {
        const auto found = judgements.find(corpus.queries.id(q));
        if (found == judgements.end()) continue;
        for (const auto& [document, grade] : found->second) {
            if (grade <= 0) continue;
            if (const auto position = corpus.documents.find(document)) {
                corpus.labels[q].documents.push_back(*position);
                corpus.labels[q].grades.push_back(grade);
            } else {
                ++corpus.missing_judgements;
            }
        }
    }
}

// Documents into training and evaluation side, the training side's queries into train and validation.
void divide(FitCorpus& corpus, const FitOptions& options) {
    std::vector<char> held_out(corpus.documents.size(), 0);
    if (options.hold_out > 0 && corpus.role != DataRole::zero_shot) {
        const Split split = split_documents(static_cast<std::int64_t>(corpus.documents.size()), options.hold_out);
        for (const auto i : split.evaluation) held_out[static_cast<std::size_t>(i)] = 1;
    }
    for (std::size_t i = 0; i < held_out.size(); ++i) {
        if (corpus.documents.vectors_of(i) == 0) continue;
        (held_out[i] ? corpus.held_out_documents : corpus.training_documents).push_back(i);
    }
    if (corpus.role == DataRole::zero_shot) return;
    std::vector<std::int64_t> usable;
    for (std::size_t q = 0; q < corpus.queries.size(); ++q) {
        const auto& documents = corpus.labels[q].documents;
        const bool evaluation =
            std::any_of(documents.begin(), documents.end(), [&](std::size_t i) { return held_out[i] != 0; });
        if (!evaluation && corpus.queries.vectors_of(q) > 0) usable.push_back(static_cast<std::int64_t>(q));
    }
    if (corpus.role == DataRole::bank) {
        corpus.train_queries.assign(usable.begin(), usable.end());
        return;
    }
    // One query cannot be both: it then trains, and is its own judge.
    const Split split = split_validation(usable, options.validation);
    corpus.train_queries.assign(split.train.begin(), split.train.end());
    corpus.validation_queries.assign(split.validation.begin(), split.validation.end());
    if (corpus.train_queries.empty()) corpus.train_queries = corpus.validation_queries;
}

FitCorpus load_corpus(const FitSource& source, const FitOptions& options) {
    FitCorpus corpus;
    corpus.name = source.name.empty() ? source.documents.stem().string() : source.name;
    corpus.role = source.role;
    corpus.documents = source.document_set ? *source.document_set : read_multi_vectors(source.documents);
    if (corpus.documents.size() == 0 || corpus.documents.total_vectors() == 0) {
        fail(ErrorCode::invalid_argument, "{}: expected at least one document with vectors, found none",
             source.documents.string());
    }
    if (source.role == DataRole::zero_shot) {
        divide(corpus, options);
        return corpus;
    }
    if (!source.queries.empty() || source.query_set) {
        corpus.queries = source.query_set ? *source.query_set : read_multi_vectors(source.queries);
        if (corpus.queries.size() > 0 && corpus.queries.dim() != corpus.documents.dim()) {
            fail(ErrorCode::invalid_argument, "{}: dimension: expected {} as in {}, found {}", source.queries.string(),
                 corpus.documents.dim(), source.documents.string(), corpus.queries.dim());
        }
    }
    if (corpus.queries.size() == 0) {
        if (!source.qrels.empty() && !options.no_labels) {
            fail(ErrorCode::invalid_argument, "{}: expected queries to go with it, found none", source.qrels.string());
        }
        corpus.pseudo = true;
        std::vector<std::size_t> all(corpus.documents.size());
        std::iota(all.begin(), all.end(), std::size_t{0});
        if (options.hold_out > 0) {
            divide(corpus, options);
            all = corpus.training_documents;
            corpus.training_documents.clear();
            corpus.held_out_documents.clear();
        }
        corpus.queries = draw_pseudo_queries(corpus.documents, all, pseudo_query_count, pseudo_query_tokens, 42);
    }
    corpus.labels.resize(corpus.queries.size());
    if (source.judgements && !options.no_labels) attach_labels(corpus, *source.judgements);
    if (!source.qrels.empty() && !options.no_labels) attach_labels(corpus, read_qrels(source.qrels));
    divide(corpus, options);
    return corpus;
}

void check_queries(const std::vector<FitCorpus>& corpora, const FitOptions& options) {
    if (options.exclude_queries.empty()) return;
    const auto ids = read_query_ids(options.exclude_queries);
    const std::set<std::string> refused(ids.begin(), ids.end());
    std::vector<std::string> names;
    for (const auto& corpus : corpora) {
        for (const auto* side : {&corpus.train_queries, &corpus.validation_queries}) {
            for (const auto q : *side) {
                if (refused.count(corpus.queries.id(q)) > 0) names.push_back(corpus.queries.id(q));
            }
        }
    }
    if (!names.empty()) overlap("training and evaluation queries", names);
}

// Contents on the fitting side against contents on the evaluation side; ids too where both sides use
// the same names.
void check_documents(const std::vector<FitCorpus>& corpora, const FitOptions& options) {
    std::map<Sha256::Digest, std::string> seen;
    std::set<std::string> ids;
    for (const auto& corpus : corpora) {
        if (corpus.role == DataRole::zero_shot) continue;
        for (const auto i : corpus.training_documents) {
            seen.emplace(corpus.page_hashes[i], corpus.documents.id(i));
            if (corpus.role == DataRole::train) ids.insert(corpus.documents.id(i));
        }
    }
    std::vector<std::string> same_content;
    const auto compare = [&](const MultiVectorSet& set, std::size_t i, const Sha256::Digest& hash) {
        const auto found = seen.find(hash);
        if (found == seen.end()) return;
        same_content.push_back(found->second == set.id(i) ? set.id(i) : found->second + " = " + set.id(i));
    };
    for (const auto& corpus : corpora) {
        const auto& side = corpus.role == DataRole::zero_shot ? corpus.training_documents : corpus.held_out_documents;
        for (const auto i : side) compare(corpus.documents, i, corpus.page_hashes[i]);
    }
    if (!options.evaluation_documents.empty()) {
        const MultiVectorSet set = read_multi_vectors(options.evaluation_documents);
        std::vector<std::string> same_id;
        for (std::size_t i = 0; i < set.size(); ++i) {
            if (ids.count(set.id(i)) > 0) same_id.push_back(set.id(i));
        }
        if (!same_id.empty()) overlap("ids of training and evaluation documents", same_id);
        const auto hashes = hash_pages(set, options.threads, options.cluster);
        for (std::size_t i = 0; i < set.size(); ++i) {
            if (set.vectors_of(i) > 0) compare(set, i, hashes[i]);
        }
    }
    if (!same_content.empty()) overlap("contents of training and evaluation documents", same_content);
}

}  // namespace

std::vector<std::size_t> FitCorpus::own_queries() const {
    std::vector<std::size_t> own = train_queries;
    own.insert(own.end(), validation_queries.begin(), validation_queries.end());
    std::sort(own.begin(), own.end());
    own.erase(std::unique(own.begin(), own.end()), own.end());
    return own;
}

std::vector<FitCorpus> load_fit_data(const FitOptions& options) {
    if (options.hold_out < 0 || options.hold_out >= 1) {
        fail(ErrorCode::invalid_argument, "--hold-out: expected a share from 0 to below 1, found {}", options.hold_out);
    }
    if (options.validation <= 0 || options.validation >= 1) {
        fail(ErrorCode::invalid_argument, "--validation: expected a share between 0 and 1, found {}",
             options.validation);
    }
    std::vector<FitCorpus> corpora;
    bool any = false;
    for (const auto& source : options.sources) {
        corpora.push_back(load_corpus(source, options));
        any = any || source.role == DataRole::train;
        if (corpora.back().documents.dim() != corpora.front().documents.dim()) {
            fail(ErrorCode::invalid_argument, "{}: dimension: expected {} as in {}, found {}",
                 source.documents.string(), corpora.front().documents.dim(), options.sources.front().documents.string(),
                 corpora.back().documents.dim());
        }
    }
    if (!any) fail(ErrorCode::invalid_argument, "fit: expected at least one dataset with role train, found none");
    for (std::size_t c = 0; c < corpora.size(); ++c) {
        const auto named = [&](const fs::path& file) { return file.empty() ? corpora[c].name : file.string(); };
        check_finite(corpora[c].documents, named(options.sources[c].documents), options.threads);
        check_finite(corpora[c].queries, named(options.sources[c].queries), options.threads);
    }
    for (auto& corpus : corpora) {
        corpus.page_hashes = hash_pages(corpus.documents, options.threads, options.cluster);
        const auto stored = [&](std::size_t q, auto&) {
            const VectorsView v = corpus.queries.vectors(q);
            return std::span(static_cast<const std::byte*>(v.data), v.bytes());
        };
        corpus.query_hashes = hash_each(corpus.queries.size(), options.threads, nullptr, stored);
    }
    check_queries(corpora, options);
    check_documents(corpora, options);
    return corpora;
}

float find_answers(ConstMatrix tokens, ConstMatrix page, MutMatrix answers) {
    std::vector<std::int32_t> winner(tokens.rows);
    std::vector<float> similarity(tokens.rows);
    nearest(tokens, page, winner, similarity);
    for (std::size_t t = 0; t < tokens.rows; ++t)
        std::copy_n(page.row(static_cast<std::size_t>(winner[t])), page.cols, answers.row(t));
    return std::accumulate(similarity.begin(), similarity.end(), 0.0f);
}

}  // namespace marginmerge
