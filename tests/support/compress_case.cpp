#include "support/compress_case.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>

#include "core/random.h"
#include "kernels/products.h"
#include "marginmerge/jobs/presets.h"

namespace marginmerge::test {

CompressCase load_case(const std::string& name) {
    CompressCase c;
    c.name = name;
    c.V = c.floats("V");
    c.model.bank.prototypes = c.floats("Z");
    const Matrix frequencies = c.floats("frequencies");
    c.model.bank.frequencies.assign(frequencies.flat().begin(), frequencies.flat().end());
    FeatureScaling scaling;
    std::ranges::copy(c.floats("feature_mean").flat(), scaling.mean.begin());
    std::ranges::copy(c.floats("feature_std").flat(), scaling.deviation.begin());
    c.model.scaling = scaling;
    Network network;
    auto out = network.parameters.begin();
    for (const char* part : {"w1", "b1", "w2", "b2", "w3", "b3"})
        out = std::ranges::copy(c.floats(std::string("mlp_") + part).flat(), out).out;
    c.model.network = network;
    std::ifstream(oracle("compress/" + name + "/meta.json")) >> c.meta;
    c.recipe = preset_recipe("paper");
    c.recipe.budget.keep = c.meta.at("rho").get<double>();
    c.model.recipe = c.recipe;
    return c;
}

double largest_gap(ConstMatrix a, ConstMatrix b) {
    if (a.rows != b.rows || a.cols != b.cols) return std::numeric_limits<double>::infinity();
    double gap = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        const double x = std::abs(static_cast<double>(a.data[i]) - b.data[i]);
        if (!(x <= gap)) gap = x;
    }
    return gap;
}

Matrix random_page(std::size_t n, std::size_t d, std::size_t centres, double spread, std::uint64_t seed) {
    Random random(seed);
    Matrix middle(centres, d);
    for (float& x : middle.flat()) x = static_cast<float>(random.normal());
    normalise_rows(middle);
    Matrix page(n, d);
    for (std::size_t i = 0; i < n; ++i) {
        const float* from = middle.row(random.below(centres));
        for (std::size_t j = 0; j < d; ++j)
            page(i, j) = from[j] + static_cast<float>(spread * random.normal() / std::sqrt(static_cast<double>(d)));
    }
    normalise_rows(page);
    return page;
}

Model random_model(std::size_t prototypes, std::size_t d, std::uint64_t seed) {
    Random random(seed);
    Model model;
    model.bank.prototypes = random_page(prototypes, d, std::max<std::size_t>(prototypes / 4, 1), 1.0, seed + 1);
    for (std::size_t t = 0; t < prototypes; ++t)
        model.bank.frequencies.push_back(
            static_cast<float>((0.5 + random.uniform()) / static_cast<double>(prototypes)));
    FeatureScaling scaling;
    scaling.mean.fill(0.3f);
    scaling.deviation.fill(0.5f);
    model.scaling = scaling;
    Network network;
    for (float& x : network.parameters) x = static_cast<float>(0.3 * random.normal());
    model.network = network;
    model.recipe = preset_recipe("paper");
    return model;
}

}  // namespace marginmerge::test
