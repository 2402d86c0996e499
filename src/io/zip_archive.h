#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io/array_reader.h"
#include "io/byte_source.h"

namespace marginmerge {

/// One entry of an archive being read; may start anywhere when the entry is stored uncompressed.
class ZipEntryReader : public ByteStream {
public:
    virtual std::uint64_t position() const = 0;
    /// Moves to a byte of the entry. Backwards only in stored entries.
    virtual void seek(std::uint64_t position) = 0;
};

/// A zip archive in memory or memory-mapped: stored and deflated entries. Opening refuses other
/// methods, encryption and archives that promise far more bytes than they hold (zip bombs).
class ZipArchive {
public:
    struct Entry {
        std::string name;
        std::uint64_t index = 0;
        std::uint64_t size = 0;  ///< uncompressed
        bool stored = true;
    };

    explicit ZipArchive(ByteSource source);
    ~ZipArchive();
    ZipArchive(const ZipArchive&) = delete;
    ZipArchive& operator=(const ZipArchive&) = delete;

    const std::string& name() const { return source_.name; }
    const std::vector<Entry>& entries() const { return entries_; }  ///< in archive order, folders left out
    const Entry* find(std::string_view name) const;
    /// The reader borrows the archive.
    std::unique_ptr<ZipEntryReader> open(const Entry& entry) const;
    /// A whole entry of at most `limit` bytes.
    std::vector<std::byte> read(const Entry& entry, std::uint64_t limit) const;

private:
    struct Handle;
    ByteSource source_;
    std::unique_ptr<Handle> handle_;
    std::vector<Entry> entries_;
};

}  // namespace marginmerge
