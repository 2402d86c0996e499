#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace marginmerge {

/// The bytes of a file or of a buffer in memory (an HTTP body, a fuzzer's input), with the name
/// that errors use. Copies share the storage.
struct ByteSource {
    std::span<const std::byte> bytes;
    std::string name;
    std::shared_ptr<const void> storage;  ///< keeps `bytes` alive; null for borrowed memory
    bool mapped = false;                  ///< a memory-mapped file, whose pages may be given back

    std::string_view text() const { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }
    /// Gives the pages of this range back when the source is a mapped file; contents stay readable.
    void release(std::size_t offset, std::size_t length) const;
};

/// A whole file, memory-mapped. Throws Error(not_found) or Error(io).
ByteSource map_bytes(const std::filesystem::path& path);

/// Borrowed memory, which must outlive whatever is read from it.
ByteSource borrow_bytes(std::span<const std::byte> bytes, std::string name);

}  // namespace marginmerge
