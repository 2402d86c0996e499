#include "data/redundancy.h"

#include <algorithm>

#include "kernels/products.h"

namespace marginmerge {

double effective_rank(ConstMatrix v) {
    // The smaller of the two Gram matrices, in blocks of rows: V V^T directly, V^T V from V transposed.
    Matrix transposed;
    ConstMatrix rows = v;
    if (v.rows > v.cols) {
        transposed = Matrix(v.cols, v.rows);
        for (std::size_t i = 0; i < v.rows; ++i)
            for (std::size_t j = 0; j < v.cols; ++j) transposed(j, i) = v(i, j);
        rows = transposed;
    }
    constexpr std::size_t block = 128;
    double trace = 0;
    double square = 0;
    Matrix gram;
    for (std::size_t begin = 0; begin < rows.rows; begin += block) {
        const std::size_t count = std::min(block, rows.rows - begin);
        gram.reshape(count, rows.rows);
        product(rows.middle_rows(begin, count), rows, gram);
        for (std::size_t r = 0; r < count; ++r) trace += gram(r, begin + r);
        for (const float g : gram.flat()) square += static_cast<double>(g) * g;
    }
    return square > 0 ? trace * trace / square : 0;
}

}  // namespace marginmerge
