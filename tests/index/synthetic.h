#pragma once

#include <string>

#include "core/random.h"
#include "kernels/products.h"
#include "marginmerge/data/multi_vector_set.h"

namespace marginmerge::test {

inline Matrix random_vectors(std::size_t rows, std::size_t dim, std::uint64_t seed) {
    Random random(seed);
    Matrix m(rows, dim);
    for (float& x : m.flat()) x = static_cast<float>(random.normal());
    normalise_rows(m);
    return m;
}

/// Ragged pages of 1 to `most` unit vectors with ids prefix-0, prefix-1, …
inline MultiVectorSet random_pages(std::size_t pages, std::size_t most, std::size_t dim, std::uint64_t seed,
                                   const std::string& prefix = "page-") {
    MultiVectorBuilder builder(dim);
    Random random(seed);
    for (std::size_t i = 0; i < pages; ++i)
        builder.add(prefix + std::to_string(i), random_vectors(1 + random.below(most), dim, mix_seed(seed, i)));
    return builder.finish();
}

}  // namespace marginmerge::test
