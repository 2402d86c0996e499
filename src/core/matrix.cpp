#include "marginmerge/core/matrix.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace marginmerge {

namespace {
constexpr std::size_t alignment = 64;
}

const char* to_string(ScalarType type) {
    switch (type) {
        case ScalarType::f32: return "F32";
        case ScalarType::f16: return "F16";
        case ScalarType::bf16: return "BF16";
    }
    return "F32";
}

Matrix::Matrix(std::size_t rows, std::size_t cols) {
    reshape(rows, cols);
    std::fill_n(data(), size(), 0.0f);
}

Matrix::Matrix(ConstMatrix source) {
    reshape(source.rows, source.cols);
    if (size() > 0) std::memcpy(data(), source.data, size() * sizeof(float));
}

void Matrix::reshape(std::size_t rows, std::size_t cols) {
    const std::size_t count = rows * cols;
    if (count > capacity_) {
        const std::size_t bytes = (count * sizeof(float) + alignment - 1) / alignment * alignment;
        auto* p = static_cast<float*>(std::aligned_alloc(alignment, bytes));
        if (p == nullptr) throw std::bad_alloc();
        data_.reset(p);
        capacity_ = count;
    }
    rows_ = rows;
    cols_ = cols;
}

}  // namespace marginmerge
