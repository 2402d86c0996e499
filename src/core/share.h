#pragma once

#include <cstddef>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "marginmerge/core/cluster.h"

namespace marginmerge {

/// Bytes on their way to other processes.
class ByteWriter {
public:
    template <class T>
    void put(std::span<const T> values) {
        static_assert(std::is_trivially_copyable_v<T>);
        const std::size_t at = bytes_.size();
        bytes_.resize(at + values.size_bytes());
        if (!values.empty()) std::memcpy(bytes_.data() + at, values.data(), values.size_bytes());
    }
    template <class T>
    void put(const T& value) {
        put(std::span<const T>(&value, 1));
    }
    std::span<const std::byte> bytes() const { return bytes_; }

private:
    std::vector<std::byte> bytes_;
};

/// The same on their way in; reading past the end is Error(internal).
class ByteReader {
public:
    explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}
    template <class T>
    void take(std::span<T> values) {
        static_assert(std::is_trivially_copyable_v<T>);
        const auto from = next(values.size_bytes());
        if (!values.empty()) std::memcpy(values.data(), from.data(), from.size());
    }
    template <class T>
    T take() {
        T value{};
        take(std::span<T>(&value, 1));
        return value;
    }

private:
    std::span<const std::byte> next(std::size_t count);
    std::span<const std::byte> bytes_;
};

/// parallel_for_workers over several processes: each runs body(i, worker) for its part of [0, count), then every
/// process learns what the others made. `put` writes the result of i, `take` reads one that another process wrote; both
/// are called in order of i on one thread. Without a cluster it is parallel_for_workers.
void share_for(Cluster* cluster, std::size_t count, std::size_t threads,
               const std::function<void(std::size_t index, std::size_t worker)>& body,
               const std::function<void(std::size_t index, ByteWriter& out)>& put,
               const std::function<void(std::size_t index, ByteReader& in)>& take);

/// Error(invalid_argument) unless every process gives the same text: those that read other files or compute with other
/// kernels would spoil the result. `what` names it.
void check_same(Cluster* cluster, const std::string& text, const char* what);

}  // namespace marginmerge
