#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <utility>

namespace marginmerge {

/// How the numbers of a vector are stored.
enum class ScalarType : std::uint8_t { f32, f16, bf16 };

/// Bytes of one stored number.
constexpr std::size_t scalar_size(ScalarType type) { return type == ScalarType::f32 ? 4 : 2; }

/// "F32", "F16" or "BF16", as in safetensors headers.
const char* to_string(ScalarType type);

/// Row-major, contiguous, borrowed. T is `float` or `const float` (or any plain number).
template <class T>
struct MatrixView {
    T* data = nullptr;
    std::size_t rows = 0;
    std::size_t cols = 0;

    T* row(std::size_t i) const { return data + i * cols; }
    std::span<T> row_span(std::size_t i) const { return {row(i), cols}; }
    T& operator()(std::size_t i, std::size_t j) const { return data[i * cols + j]; }
    std::size_t size() const { return rows * cols; }
    std::span<T> flat() const { return {data, size()}; }
    MatrixView middle_rows(std::size_t first, std::size_t count) const { return {row(first), count, cols}; }
    operator MatrixView<const T>() const { return {data, rows, cols}; }
};

using ConstMatrix = MatrixView<const float>;
using MutMatrix = MatrixView<float>;

/// Owning row-major float matrix, 64-byte aligned. New elements are zero.
class Matrix {
public:
    Matrix() = default;
    Matrix(std::size_t rows, std::size_t cols);
    explicit Matrix(ConstMatrix source);
    Matrix(const Matrix& other) : Matrix(other.view()) {}
    Matrix(Matrix&&) noexcept = default;
    Matrix& operator=(Matrix other) noexcept {
        std::swap(data_, other.data_);
        std::swap(capacity_, other.capacity_);
        rows_ = other.rows_;
        cols_ = other.cols_;
        return *this;
    }

    std::size_t rows() const { return rows_; }
    std::size_t cols() const { return cols_; }
    std::size_t size() const { return rows_ * cols_; }
    bool empty() const { return size() == 0; }
    float* data() { return data_.get(); }
    const float* data() const { return data_.get(); }
    float* row(std::size_t i) { return data() + i * cols_; }
    const float* row(std::size_t i) const { return data() + i * cols_; }
    float& operator()(std::size_t i, std::size_t j) { return row(i)[j]; }
    float operator()(std::size_t i, std::size_t j) const { return row(i)[j]; }
    std::span<const float> flat() const { return {data(), size()}; }
    std::span<float> flat() { return {data(), size()}; }
    ConstMatrix view() const { return {data(), rows_, cols_}; }
    MutMatrix view() { return {data(), rows_, cols_}; }
    operator ConstMatrix() const { return view(); }
    operator MutMatrix() { return view(); }

    /// Changes the shape, keeping the allocation when it is large enough. Contents are undefined
    /// afterwards: meant for workspaces that are reused from page to page.
    void reshape(std::size_t rows, std::size_t cols);

private:
    struct Free {
        void operator()(float* p) const { std::free(p); }
    };
    std::unique_ptr<float[], Free> data_;
    std::size_t rows_ = 0;
    std::size_t cols_ = 0;
    std::size_t capacity_ = 0;
};

/// Borrowed vectors in any storage type: rows x dim, contiguous, row-major.
struct VectorsView {
    const void* data = nullptr;
    ScalarType type = ScalarType::f32;
    std::size_t rows = 0;
    std::size_t dim = 0;

    VectorsView() = default;
    VectorsView(const void* bytes, ScalarType scalar, std::size_t row_count, std::size_t dimension)
        : data(bytes), type(scalar), rows(row_count), dim(dimension) {}
    VectorsView(ConstMatrix m) : data(m.data), rows(m.rows), dim(m.cols) {}
    VectorsView(MutMatrix m) : VectorsView(ConstMatrix(m)) {}
    VectorsView(const Matrix& m) : VectorsView(m.view()) {}

    std::size_t row_bytes() const { return dim * scalar_size(type); }
    std::size_t bytes() const { return rows * row_bytes(); }
    VectorsView middle_rows(std::size_t first, std::size_t count) const {
        return {static_cast<const char*>(data) + first * row_bytes(), type, count, dim};
    }
};

}  // namespace marginmerge
