#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>
#include <type_traits>

namespace marginmerge {

/// A zeroed array of plain numbers on a 64-byte boundary, padded to whole cache lines so that a
/// kernel may load the last vector in full.
template <class T>
class AlignedArray {
    static_assert(std::is_trivially_copyable_v<T>);

public:
    AlignedArray() = default;
    explicit AlignedArray(std::size_t size) : size_(size) {
        const std::size_t bytes = (size * sizeof(T) + 127) / 64 * 64;
        auto* p = static_cast<T*>(std::aligned_alloc(64, bytes));
        if (p == nullptr) throw std::bad_alloc();
        for (std::size_t i = 0; i < bytes / sizeof(T); ++i) p[i] = T{};
        data_.reset(p);
    }
    T* data() { return data_.get(); }
    const T* data() const { return data_.get(); }
    std::size_t size() const { return size_; }
    T& operator[](std::size_t i) { return data()[i]; }
    T operator[](std::size_t i) const { return data()[i]; }
    std::span<const T> span() const { return {data(), size_}; }

private:
    struct Free {
        void operator()(T* p) const { std::free(p); }
    };
    std::unique_ptr<T[], Free> data_;
    std::size_t size_ = 0;
};

}  // namespace marginmerge
