#include "learn/train_oracle.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "support/npy.h"

namespace marginmerge::test {

Network load_network(const std::string& folder) {
    Network network;
    const auto put = [&](const char* name, std::size_t at) {
        const Matrix m = load_floats(oracle(folder + "/" + name + ".npy"));
        std::copy_n(m.data(), m.size(), network.parameters.data() + at);
    };
    put("w1", Network::w1);
    put("b1", Network::b1);
    put("w2", Network::w2);
    put("b2", Network::b2);
    put("w3", Network::w3);
    put("b3", Network::b3);
    return network;
}

TrainOracle::TrainOracle() {
    const Matrix mean = load_floats(oracle("train/feature_mean.npy"));
    const Matrix deviation = load_floats(oracle("train/feature_std.npy"));
    FeatureScaling scaling;
    std::copy_n(mean.data(), feature_count, scaling.mean.begin());
    std::copy_n(deviation.data(), feature_count, scaling.deviation.begin());
    for (int i = 0; i < 12; ++i) vectors.push_back(load_floats(oracle(fmt::format("train/docs/doc_{:02}.npy", i))));
    for (int i = 0; i < 12; ++i) {
        PageClusters clusters;
        clusters.anchors = load_ints(oracle(fmt::format("train/docs/anchors_{:02}.npy", i)));
        clusters.assign = load_ints(oracle(fmt::format("train/docs/assign_{:02}.npy", i)));
        clusters.features = load_floats(oracle(fmt::format("train/docs/features_{:02}.npy", i)));
        // The reference holds the base weight whole; here it is split into cosine and relevance.
        const Matrix base = load_floats(oracle(fmt::format("train/docs/base_weight_{:02}.npy", i)));
        for (const float b : base.flat()) {
            clusters.anchor_cosine.push_back(std::log(b) * 0.1F);
            clusters.relevance.push_back(1.0F);
        }
        pages.push_back(make_training_page(ConstMatrix(vectors[static_cast<std::size_t>(i)]), clusters, scaling, 0.0));
    }
    for (int i = 0; i < 20; ++i) {
        const Matrix tokens = load_floats(oracle(fmt::format("train/queries/query_{:02}.npy", i)));
        queries.emplace_back(ConstMatrix(tokens));
    }
    full_scores = load_floats(oracle("train/full_scores.npy"));
    gold = load_ints(oracle("train/gold.npy"));
    negatives = load_ints(oracle("train/hard_negatives.npy"));
    start.network = load_network("train/start");
}

TrainingExample TrainOracle::example(std::size_t query) const {
    TrainingExample e;
    e.query = &queries[query];
    e.positive_weight = {1.0};
    const auto add = [&](std::int32_t document) {
        e.pages.push_back(&pages[static_cast<std::size_t>(document)]);
        e.full_scores.push_back(full_scores(query, static_cast<std::size_t>(document)));
    };
    add(gold[query]);
    for (std::size_t j = 0; j < 8; ++j) add(negatives[query * 8 + j]);
    return e;
}

}  // namespace marginmerge::test
