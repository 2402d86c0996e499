#include "jobs/chunk_journal.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "core/fail.h"
#include "io/atomic_file.h"
#include "io/folders.h"
#include "io/mapped_file.h"

namespace marginmerge {

namespace {

namespace fs = std::filesystem;

std::string read_text(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
}

// What a killed run left beside the output while it was being put together.
void remove_stale_temporaries(const fs::path& output) {
    const auto folder = folder_of(output);
    const std::string prefix = output.filename().string() + ".tmp-";
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(folder, ignored))
        if (entry.path().filename().string().starts_with(prefix)) fs::remove(entry.path(), ignored);
}

std::uint64_t checksum(std::span<const std::byte> bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

// A chunk file is its bytes followed by their checksum.
bool sound(std::span<const std::byte> file) {
    if (file.size() < sizeof(std::uint64_t)) return false;
    std::uint64_t stored = 0;
    std::memcpy(&stored, file.last(sizeof stored).data(), sizeof stored);
    return stored == checksum(file.first(file.size() - sizeof stored));
}

}  // namespace

ChunkJournal::ChunkJournal(const fs::path& output, const std::string& fingerprint) : folder_(output) {
    folder_ += ".partial";
    make_folder(folder_);
    const auto lock_path = folder_ / "lock";
    lock_ = ::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (lock_ < 0) fail(ErrorCode::io, "{}: cannot create: {}", lock_path.string(), std::strerror(errno));
    if (::flock(lock_, LOCK_EX | LOCK_NB) != 0) {
        ::close(lock_);
        lock_ = -1;
        fail(ErrorCode::io, "{}: another process is writing {}", folder_.string(), output.string());
    }
    remove_stale_temporaries(output);
    const auto mark = folder_ / "fingerprint";
    if (fs::exists(mark) && read_text(mark) == fingerprint) return;
    for (const auto& entry : fs::directory_iterator(folder_)) {
        if (entry.path().filename() == "lock") continue;
        discarded_ = discarded_ || entry.path().extension() == ".chunk";
        std::error_code ignored;
        fs::remove_all(entry.path(), ignored);
    }
    write_text_file(mark, fingerprint);
}

ChunkJournal::~ChunkJournal() {
    if (lock_ < 0) return;
    std::error_code error;
    const auto is_chunk = [](const fs::directory_entry& entry) { return entry.path().extension() == ".chunk"; };
    if (std::none_of(fs::directory_iterator(folder_, error), fs::directory_iterator(), is_chunk) && !error)
        fs::remove_all(folder_, error);
    ::close(lock_);
}

fs::path ChunkJournal::chunk_path(std::size_t index) const { return folder_ / fmt::format("{:08}.chunk", index); }

bool ChunkJournal::has(std::size_t index, std::size_t size) const {
    std::error_code error;
    if (fs::file_size(chunk_path(index), error) != size + sizeof(std::uint64_t) || error) return false;
    return sound(MappedFile(chunk_path(index)).bytes());
}

void ChunkJournal::save(std::size_t index, std::span<const std::byte> bytes) {
    AtomicFile file(chunk_path(index));
    file.append(bytes);
    const std::uint64_t sum = checksum(bytes);
    file.append(std::as_bytes(std::span(&sum, 1)));
    file.commit();
}

void ChunkJournal::load(std::size_t index, const std::function<void(std::span<const std::byte>)>& use) const {
    const MappedFile file(chunk_path(index));
    if (!sound(file.bytes())) fail(ErrorCode::corrupt, "{}: checksum does not match", chunk_path(index).string());
    use(file.bytes().first(file.bytes().size() - sizeof(std::uint64_t)));
}

void ChunkJournal::finish() {
    std::error_code error;
    fs::remove_all(folder_, error);
}

}  // namespace marginmerge
