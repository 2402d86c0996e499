#pragma once

#include <string>
#include <vector>

#include "core/random.h"
#include "io/atomic_file.h"
#include "io/multi_vector_file.h"
#include "kernels/products.h"
#include "marginmerge/core/error.h"
#include "marginmerge/jobs/fit.h"
#include "support/made_files.h"
#include "support/temporary_directory.h"

namespace marginmerge::test {

constexpr std::size_t fit_dimensions = 24;

// Documents that mix a few of thirty topics; a query asks for the topics of its document.
struct FitCorpusFiles {
    TemporaryDirectory folder;
    FitOptions options;

    explicit FitCorpusFiles(std::size_t documents = 40, std::size_t queries = 24, std::uint64_t seed = 1,
                            std::size_t lengths = 20) {
        Random random(seed);
        Matrix topics(30, fit_dimensions);
        for (float& x : topics.flat()) x = static_cast<float>(random.normal());
        normalise_rows(topics);
        const auto near = [&](const float* topic, double spread, float* out) {
            for (std::size_t j = 0; j < fit_dimensions; ++j) {
                out[j] = topic[j] +
                         static_cast<float>(spread * random.normal() / std::sqrt(static_cast<double>(fit_dimensions)));
            }
        };
        MultiVectorBuilder docs(fit_dimensions), asks(fit_dimensions);
        std::vector<std::vector<std::size_t>> mixes;
        for (std::size_t i = 0; i < documents; ++i) {
            auto& mix = mixes.emplace_back();
            for (int t = 0; t < 4; ++t) mix.push_back(random.below(30));
            Matrix v(40 + random.below(lengths), fit_dimensions);
            for (std::size_t r = 0; r < v.rows(); ++r) near(topics.row(mix[random.below(4)]), 0.6, v.row(r));
            normalise_rows(v);
            docs.add("doc" + std::to_string(i), v);
        }
        std::string qrels = "query-id\tcorpus-id\tscore\n";
        for (std::size_t q = 0; q < queries; ++q) {
            const std::size_t document = random.below(documents);
            Matrix v(5, fit_dimensions);
            for (std::size_t r = 0; r < v.rows(); ++r)
                near(topics.row(mixes[document][random.below(4)]), 0.8, v.row(r));
            normalise_rows(v);
            asks.add("q" + std::to_string(q), v);
            qrels += "q" + std::to_string(q) + "\tdoc" + std::to_string(document) + "\t2\n";
            qrels += "q" + std::to_string(q) + "\tdoc" + std::to_string((document + 1) % documents) + "\t1\n";
        }
        write_multi_vectors(folder / "docs.safetensors", docs.finish(), ScalarType::f16);
        write_multi_vectors(folder / "train_queries.safetensors", asks.finish(), ScalarType::f16);
        write_text_file(folder / "train_qrels.tsv", qrels);
        options.sources = {source_from_folder(folder.path().string())};
        options.output = folder / "model.safetensors";
        options.keep = 0.1;
        options.prototypes = 16;
        options.probes = 200;
        options.checkpoint_seconds = 0;
    }
    std::string bytes() const { return read_file(options.output); }
};

inline std::string fit_failure(const FitOptions& options) {
    try {
        fit(options);
    } catch (const Error& error) {
        return error.what();
    }
    return "no error";
}

}  // namespace marginmerge::test
