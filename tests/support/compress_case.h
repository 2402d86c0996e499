#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "marginmerge/merge/model.h"
#include "marginmerge/merge/recipe.h"
#include "support/npy.h"

namespace marginmerge::test {

/// One document of the reference construction (tests/data/oracle/compress/NAME).
struct CompressCase {
    std::string name;
    Matrix V;
    Model model;    ///< prototypes, scaling, network
    Recipe recipe;  ///< coverage, fill index, learned, the case's keep ratio
    nlohmann::json meta;

    Matrix floats(const std::string& file) const {
        return load_floats(oracle("compress/" + name + "/" + file + ".npy"));
    }
    std::vector<std::int32_t> ints(const std::string& file) const {
        return load_ints(oracle("compress/" + name + "/" + file + ".npy"));
    }
    std::size_t k() const { return meta.at("k").get<std::size_t>(); }
};

CompressCase load_case(const std::string& name);
inline const std::vector<std::string>& compress_cases() {
    static const std::vector<std::string> names = {"tiny",      "single_vector", "keep_all",
                                                   "photo_238", "saturated_600", "page_1024"};
    return names;
}

/// The largest absolute difference of two matrices of the same shape (infinite when shapes differ).
double largest_gap(ConstMatrix a, ConstMatrix b);

/// n unit vectors around `centres` random directions; spread 0 gives copies.
Matrix random_page(std::size_t n, std::size_t d, std::size_t centres, double spread, std::uint64_t seed);

/// A model with a random bank, scaling and network that suits pages of d dimensions.
Model random_model(std::size_t prototypes, std::size_t d, std::uint64_t seed);

}  // namespace marginmerge::test
