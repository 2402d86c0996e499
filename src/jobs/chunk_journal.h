#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <string>

namespace marginmerge {

/// The finished parts of a long job, beside its output: OUTPUT.partial/ holds a fingerprint of
/// inputs and settings and one checksummed file for each finished chunk. A process that is killed
/// at any moment leaves whole chunks only; one that starts with another fingerprint starts anew.
/// One process at a time owns the folder (a lock that dies with it).
class ChunkJournal {
public:
    /// Takes over what an earlier run with the same fingerprint left. Throws Error(io) when another
    /// process is at work on the same output.
    ChunkJournal(const std::filesystem::path& output, const std::string& fingerprint);
    /// A folder without a finished chunk is of no use to anyone and goes.
    ~ChunkJournal();
    ChunkJournal(const ChunkJournal&) = delete;
    ChunkJournal& operator=(const ChunkJournal&) = delete;

    /// True when chunks of another fingerprint were thrown away.
    bool discarded() const { return discarded_; }
    /// True when chunk `index` is there, sound, and of this size.
    bool has(std::size_t index, std::size_t size) const;
    void save(std::size_t index, std::span<const std::byte> bytes);
    /// Hands the bytes of a saved chunk to `use`; Error(corrupt) when they have changed.
    void load(std::size_t index, const std::function<void(std::span<const std::byte>)>& use) const;
    /// Removes the folder: the output is complete.
    void finish();

private:
    std::filesystem::path chunk_path(std::size_t index) const;

    std::filesystem::path folder_;
    int lock_ = -1;
    bool discarded_ = false;
};

}  // namespace marginmerge
