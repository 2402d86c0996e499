#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "io/vector_source.h"
#include "marginmerge/core/error.h"

namespace marginmerge::fuzz {

inline std::span<const std::byte> as_bytes(const std::uint8_t* data, std::size_t size) {
    return {reinterpret_cast<const std::byte*>(data), size};
}

inline volatile unsigned sink = 0;

/// Touches every byte, so that the sanitizers see reads past the end.
inline void touch(const void* data, std::size_t size) {
    const auto* bytes = static_cast<const unsigned char*>(data);
    unsigned sum = 0;
    for (std::size_t i = 0; i < size; ++i) sum += bytes[i];
    sink = sum;
}

/// Reads a source to its end.
inline void consume(VectorSource& source) {
    SourceDocument document;
    while (source.next(document)) {
        touch(document.vectors.data, document.vectors.bytes());
        touch(document.boxes.data(), document.boxes.size_bytes());
        touch(document.id.data(), document.id.size());
    }
}

/// Runs a reader: our own errors are fine, anything else is a finding.
template <class Body>
int run(Body&& body) {
    try {
        body();
    } catch (const Error&) {
    }
    return 0;
}

}  // namespace marginmerge::fuzz
