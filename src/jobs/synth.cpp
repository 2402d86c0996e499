#include "marginmerge/jobs/synth.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/clock.h"
#include "core/fail.h"
#include "core/parallel.h"
#include "core/random.h"
#include "data/redundancy.h"
#include "io/folders.h"
#include "io/multi_vector_file.h"
#include "io/qrels.h"
#include "jobs/synth_model.h"
#include "kernels/convert.h"
#include "kernels/maxsim.h"

namespace marginmerge {

namespace {

constexpr std::array kind_table = {
    SynthKind{"natural", "natural", 238, 4.8},  SynthKind{"scene", "scene", 1011, 15.5},
    SynthKind{"dense", "dense", 1175, 17.7},    SynthKind{"Flickr30k", "natural", 237, 4.8},
    SynthKind{"Flickr", "natural", 238, 4.8},   SynthKind{"COCO", "natural", 361, 6.9},
    SynthKind{"TextCaps", "scene", 1011, 15.5}, SynthKind{"TabFQuad", "dense", 1175, 17.7},
    SynthKind{"ArxivQA", "dense", 2927, 46.1},  SynthKind{"InfoVQA", "dense", 3837, 48.5},
    SynthKind{"DocVQA", "dense", 4552, 63.4},   SynthKind{"TAT-DQA", "dense", 4862, 64.1},
};

bool same_name(std::string_view a, std::string_view b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

const SynthKind& kind_of(std::string_view name) {
    std::string names;
    for (const SynthKind& kind : kind_table) {
        if (same_name(kind.name, name)) return kind;
        names += (names.empty() ? "" : ", ") + std::string(kind.name);
    }
    fail(ErrorCode::invalid_argument, "kind: expected one of {}, found '{}'", names, name);
}

double mean_redundancy(const SynthModel& model, std::size_t pages, std::size_t threads) {
    std::vector<double> ratio(pages);
    parallel_for(pages, threads, [&](std::size_t i) {
        const SynthPage page = synth_page(model, i);
        ratio[i] = static_cast<double>(page.vectors.rows()) / effective_rank(page.vectors);
    });
    double sum = 0;
    for (const double r : ratio) sum += r;
    return sum / static_cast<double>(pages);
}

// More noise of the patches' own means less redundancy: bisect its share until pages are as asked.
void reach_redundancy(SynthModel& model, double asked, std::size_t pages, std::size_t threads) {
    double low = 0, high = 1;
    for (int step = 0; step < 12; ++step) {
        model.patch_noise = (low + high) / 2;
        (mean_redundancy(model, pages, threads) > asked ? low : high) = model.patch_noise;
    }
}

struct Trial {
    std::vector<SynthPage> pages;
    std::vector<std::size_t> gold;  ///< page of each query
};

// nDCG@5 of MaxSim over whole pages; one relevant page a query.
double full_ndcg(const SynthModel& model, const Trial& trial, std::size_t threads) {
    std::vector<double> gain(trial.gold.size());
    parallel_for(trial.gold.size(), threads, [&](std::size_t q) {
        const PreparedQuery query(synth_query(model, trial.pages[trial.gold[q]], q).view());
        const float own = maxsim(query, trial.pages[trial.gold[q]].vectors.view());
        std::size_t better = 0;
        for (std::size_t p = 0; p < trial.pages.size(); ++p)
            better += p != trial.gold[q] && maxsim(query, trial.pages[p].vectors.view()) >= own;
        gain[q] = better < 5 ? 1.0 / std::log2(static_cast<double>(better) + 2.0) : 0.0;
    });
    double sum = 0;
    for (const double g : gain) sum += g;
    return sum / static_cast<double>(gain.size());
}

// The page a query is about.
std::size_t gold_of(const SynthOptions& o, std::size_t query) {
    return Random(mix_seed(mix_seed(o.seed, 5), query)).below(o.documents);
}

// Noisier tokens make retrieval harder: bisect until the full index is right about as often as asked,
// on a sample that fits in memory and time.
double reach_difficulty(SynthModel& model, const SynthOptions& o) {
    const std::size_t page_bytes = model.vectors * model.dim * sizeof(float);
    const std::size_t pages =
        std::clamp<std::size_t>((96u << 20) / page_bytes, 8, std::min<std::size_t>(o.documents, 400));
    Trial trial;
    trial.pages.resize(std::min(pages, o.documents));
    parallel_for(trial.pages.size(), o.threads, [&](std::size_t i) { trial.pages[i] = synth_page(model, i); });
    for (std::size_t q = 0; q < 64; ++q) trial.gold.push_back(Random(mix_seed(o.seed, q)).below(trial.pages.size()));
    double low = 0, high = 6, reached = 0;
    for (int step = 0; step < 8; ++step) {
        model.token_noise = (low + high) / 2;
        reached = full_ndcg(model, trial, o.threads);
        (reached > o.difficulty ? low : high) = model.token_noise;
    }
    return reached;
}

SynthModel make_model(const SynthOptions& o, const SynthKind& kind, double asked) {
    SynthModel model;
    model.dim = o.dim;
    model.vectors = o.vectors > 0 ? o.vectors : kind.vectors;
    model.seed = o.seed;
    const double n = static_cast<double>(model.vectors);
    const double rank = n / asked;
    const double highest = n * static_cast<double>(o.dim) / (n + static_cast<double>(o.dim));
    if (asked < 1 || rank < 1.5 || rank > 0.97 * highest)
        fail(ErrorCode::invalid_argument,
             "redundancy: expected {:.2f} to {:.1f} for {} vectors of {} dimensions, found {}", n / (0.97 * highest),
             n / 1.5, model.vectors, o.dim, asked);
    model.regions =
        std::clamp<std::size_t>(static_cast<std::size_t>(0.6 * rank), 2, std::max<std::size_t>(2, model.vectors / 3));
    model.background = kind.content == "dense" ? 0.12 : kind.content == "scene" ? 0.06 : 0.02;
    model.shared = kind.content == "dense" ? 0.8 : kind.content == "scene" ? 0.7 : 0.6;
    model.draw_topics(400);
    reach_redundancy(model, asked, std::min<std::size_t>(o.documents, 8), o.threads);
    return model;
}

void write_documents(const SynthModel& model, const SynthOptions& o, const Progress& progress, SynthReport& report) {
    std::vector<std::int64_t> offsets{0};
    std::vector<std::int32_t> grid;
    std::string ids;
    for (std::size_t i = 0; i < o.documents; ++i) {
        const PatchGrid g = synth_grid(model, i);
        offsets.push_back(offsets.back() + static_cast<std::int64_t>(g.columns) * g.rows);
        grid.insert(grid.end(), {g.columns, g.rows});
        ids += fmt::format("{}d{}", i > 0 ? "\n" : "", i);
    }
    SafetensorsWriter writer(
        o.output / "docs.safetensors",
        {{"schema", multi_vector_schema}, {"version", schema_version}, {"source", "synth " + o.kind}});
    writer.declare("vectors", to_dtype(o.type), {static_cast<std::uint64_t>(offsets.back()), o.dim});
    writer.declare("offsets", DType::i64, {offsets.size()});
    writer.declare("ids", DType::u8, {ids.size()});
    writer.declare("grid", DType::i32, {o.documents, 2});
    writer.write("offsets", 0, std::span<const std::int64_t>(offsets));
    writer.write("ids", 0, std::as_bytes(std::span(ids)));
    writer.write("grid", 0, std::span<const std::int32_t>(grid));
    constexpr std::size_t batch = 64;  // pages between two progress reports
    for (std::size_t begin = 0; begin < o.documents; begin += batch) {
        const std::size_t count = std::min(batch, o.documents - begin);
        parallel_for(count, o.threads, [&](std::size_t i) {
            const SynthPage page = synth_page(model, begin + i);
            std::vector<std::byte> packed(page.vectors.size() * scalar_size(o.type));
            from_float(page.vectors.flat(), o.type, packed.data());
            writer.write("vectors", static_cast<std::uint64_t>(offsets[begin + i]) * o.dim * scalar_size(o.type),
                         std::span<const std::byte>(packed));
        });
        if (progress) progress({"synth", "pages", begin + count, o.documents, ""});
    }
    writer.commit();
    report.vectors = static_cast<std::size_t>(offsets.back());
}

void write_queries(const SynthModel& model, const SynthOptions& o, SynthReport& report) {
    std::vector<Matrix> tokens(o.queries);
    parallel_for(o.queries, o.threads,
                 [&](std::size_t q) { tokens[q] = synth_query(model, synth_page(model, gold_of(o, q)), q); });
    MultiVectorBuilder all(o.dim), train(o.dim), test(o.dim);
    Judgements all_qrels, train_qrels, test_qrels;
    for (std::size_t q = 0; q < o.queries; ++q) {
        const std::string query = fmt::format("q{}", q);
        const std::size_t gold = gold_of(o, q);
        const bool testing = Random(mix_seed(mix_seed(o.seed, 6), gold)).uniform() < 0.3;  // by document
        all.add(query, tokens[q]);
        (testing ? test : train).add(query, tokens[q]);
        all_qrels[query][fmt::format("d{}", gold)] = 1;
        (testing ? test_qrels : train_qrels)[query][fmt::format("d{}", gold)] = 1;
    }
    report.train_queries = train.size();
    report.test_queries = test.size();
    write_multi_vectors(o.output / "queries.safetensors", all.finish(), o.type);
    write_multi_vectors(o.output / "train_queries.safetensors", train.finish(), o.type);
    write_multi_vectors(o.output / "test_queries.safetensors", test.finish(), o.type);
    write_qrels(o.output / "qrels.tsv", all_qrels);
    write_qrels(o.output / "train_qrels.tsv", train_qrels);
    write_qrels(o.output / "test_qrels.tsv", test_qrels);
}

}  // namespace

std::span<const SynthKind> synth_kinds() { return kind_table; }

SynthReport synthesise(const SynthOptions& o, const Progress& progress) {
    const auto started = Clock::now();
    const SynthKind& kind = kind_of(o.kind);
    if (o.documents == 0) fail(ErrorCode::invalid_argument, "docs: expected at least 1, found 0");
    if (o.dim < 16 || o.dim > 4096) fail(ErrorCode::invalid_argument, "dim: expected 16 to 4096, found {}", o.dim);
    if (!(o.difficulty > 0 && o.difficulty < 1))
        fail(ErrorCode::invalid_argument, "difficulty: expected a value between 0 and 1, found {}", o.difficulty);
    make_folder(o.output);

    SynthReport report;
    report.documents = o.documents;
    report.queries = o.queries;
    report.dim = o.dim;
    report.redundancy_asked = o.redundancy > 0 ? o.redundancy : kind.redundancy;
    SynthModel model = make_model(o, kind, report.redundancy_asked);
    if (o.queries > 0) report.sample_ndcg = reach_difficulty(model, o);
    report.redundancy = mean_redundancy(model, std::min<std::size_t>(o.documents, 16), o.threads);
    write_documents(model, o, progress, report);
    if (o.queries > 0) write_queries(model, o, report);
    report.seconds = seconds_since(started);
    return report;
}

}  // namespace marginmerge
