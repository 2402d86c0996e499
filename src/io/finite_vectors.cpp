#include "io/finite_vectors.h"

#include "core/fail.h"
#include "core/parallel.h"
#include "io/multi_vector_file.h"

namespace marginmerge {

namespace {

// NaN and infinities are what has every bit of the exponent set; a loop without a branch looks for one.
template <class Word>
bool finite(const void* data, std::size_t count, Word exponent) {
    const auto* words = static_cast<const Word*>(data);
    bool found = false;
    for (std::size_t i = 0; i < count; ++i) found |= (words[i] & exponent) == exponent;
    return !found;
}

bool finite(VectorsView v) {
    switch (v.type) {
        case ScalarType::f32: return finite<std::uint32_t>(v.data, v.rows * v.dim, 0x7F800000U);
        case ScalarType::f16: return finite<std::uint16_t>(v.data, v.rows * v.dim, 0x7C00U);
        case ScalarType::bf16: return finite<std::uint16_t>(v.data, v.rows * v.dim, 0x7F80U);
    }
    return false;
}

}  // namespace

void check_finite(const MultiVectorSet& set, const std::string& source, std::size_t threads) {
    parallel_for(set.size(), threads, [&](std::size_t i) {
        const VectorsView v = set.vectors(i);
        if (finite(v)) return;
        std::size_t row = 0;
        while (finite(v.middle_rows(row, 1))) ++row;
        fail(ErrorCode::corrupt, "{}: '{}' row {}: expected finite numbers, found NaN or infinity", source, set.id(i),
             row);
    });
}

MultiVectorSet read_finite_vectors(const std::filesystem::path& path, std::size_t threads) {
    MultiVectorSet set = read_multi_vectors(path);
    check_finite(set, path.string(), threads);
    return set;
}

}  // namespace marginmerge
