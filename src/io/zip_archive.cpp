#include "io/zip_archive.h"

#include <zip.h>

#include <algorithm>

#include "core/fail.h"

namespace marginmerge {

namespace {

// Deflate cannot exceed about 1,032:1. Real vectors stay far below the second limit, which holds
// for a whole archive and only matters once it is large.
constexpr std::uint64_t max_deflate_ratio = 1040;
constexpr std::uint64_t max_total_ratio = 200;
constexpr std::uint64_t harmless_bytes = 256U << 20;
constexpr std::size_t chunk = 4U << 20;

class Reader : public ZipEntryReader {
public:
    Reader(zip_t* archive, const ZipArchive::Entry& entry, const ByteSource& source)
        : entry_(entry), source_(source), file_(zip_fopen_index(archive, entry.index, 0)) {
        if (file_ == nullptr)
            fail(ErrorCode::corrupt, "{}: entry '{}': cannot be opened: {}", source.name, entry.name,
                 zip_strerror(archive));
    }
    ~Reader() override { zip_fclose(file_); }
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;

    std::span<const std::byte> take(std::size_t count) override {
        check_left(count);
        // Grown as data really arrives: a lying size must not cost memory.
        buffer_.clear();
        while (buffer_.size() < count) {
            const std::size_t begin = buffer_.size();
            buffer_.resize(begin + std::min(chunk, count - begin));
            read(std::span(buffer_).subspan(begin));
        }
        finish();
        return buffer_;
    }
    void skip(std::uint64_t count) override {
        check_left(count);
        if (entry_.stored) {
            seek(position_ + count);
            return;
        }
        buffer_.resize(std::min<std::uint64_t>(chunk, count));
        while (count > 0) {
            const std::size_t part = std::min<std::uint64_t>(buffer_.size(), count);
            read(std::span(buffer_).first(part));
            count -= part;
        }
        finish();
    }
    std::uint64_t position() const override { return position_; }
    void seek(std::uint64_t position) override {
        if (position == position_) return;
        if (!entry_.stored) {
            if (position < position_)
                fail(ErrorCode::unsupported,
                     "{}: entry '{}': expected it stored, found it deflated and read out of order", source_.name,
                     entry_.name);
            return skip(position - position_);
        }
        if (position > entry_.size || zip_fseek(file_, static_cast<zip_int64_t>(position), SEEK_SET) != 0)
            fail(ErrorCode::corrupt, "{}: entry '{}': expected {} bytes or more, found {}", source_.name, entry_.name,
                 position, entry_.size);
        position_ = position;
        sequential_ = false;
    }

private:
    void check_left(std::uint64_t count) const {
        if (count > entry_.size - position_)
            fail(ErrorCode::corrupt, "{}: entry '{}': expected {} more bytes, found {} (truncated)", source_.name,
                 entry_.name, count, entry_.size - position_);
    }
    void read(std::span<std::byte> out) {
        while (!out.empty()) {
            const zip_int64_t count = zip_fread(file_, out.data(), out.size());
            if (count <= 0)
                fail(ErrorCode::corrupt, "{}: entry '{}': expected {} bytes, found damage after {}: {}", source_.name,
                     entry_.name, entry_.size, position_, zip_error_strerror(zip_file_get_error(file_)));
            out = out.subspan(static_cast<std::size_t>(count));
            position_ += static_cast<std::uint64_t>(count);
            unreleased_ += static_cast<std::uint64_t>(count);
        }
        // libzip reads out of the mapped archive; where exactly is its own business.
        if (unreleased_ >= 64U << 20) {
            source_.release(0, source_.bytes.size());
            unreleased_ = 0;
        }
    }
    // Reading past the end makes libzip compare the checksum.
    void finish() {
        if (position_ != entry_.size || !sequential_) return;
        std::byte beyond{};
        const zip_int64_t count = zip_fread(file_, &beyond, 1);
        if (count != 0)
            fail(ErrorCode::corrupt, "{}: entry '{}': expected {} bytes with their checksum, found {}", source_.name,
                 entry_.name, entry_.size, count > 0 ? "more bytes" : zip_error_strerror(zip_file_get_error(file_)));
        sequential_ = false;
    }

    const ZipArchive::Entry entry_;
    const ByteSource source_;
    zip_file_t* file_;
    std::vector<std::byte> buffer_;
    std::uint64_t position_ = 0;
    std::uint64_t unreleased_ = 0;
    bool sequential_ = true;
};

}  // namespace

struct ZipArchive::Handle {
    zip_t* archive = nullptr;
    ~Handle() {
        if (archive != nullptr) zip_discard(archive);
    }
};

ZipArchive::ZipArchive(ByteSource source) : source_(std::move(source)), handle_(std::make_unique<Handle>()) {
    zip_error_t error;
    zip_error_init(&error);
    zip_source_t* bytes = zip_source_buffer_create(source_.bytes.data(), source_.bytes.size(), 0, &error);
    handle_->archive = bytes == nullptr ? nullptr : zip_open_from_source(bytes, ZIP_RDONLY, &error);
    if (handle_->archive == nullptr) {
        const std::string why = zip_error_strerror(&error);
        if (bytes != nullptr) zip_source_free(bytes);
        zip_error_fini(&error);
        fail(ErrorCode::corrupt, "{}: expected a whole zip archive, found damage or a cut end: {}", source_.name, why);
    }
    zip_error_fini(&error);
    std::uint64_t total = 0;
    const zip_int64_t count = zip_get_num_entries(handle_->archive, 0);
    for (zip_int64_t i = 0; i < count; ++i) {
        zip_stat_t stat;
        zip_stat_init(&stat);
        const auto index = static_cast<zip_uint64_t>(i);
        constexpr zip_uint64_t needed = ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD;
        if (zip_stat_index(handle_->archive, index, ZIP_FL_ENC_RAW, &stat) != 0 || (stat.valid & needed) != needed)
            fail(ErrorCode::corrupt, "{}: entry {}: expected a name and sizes, found none", source_.name, i);
        const std::string name = stat.name;
        if (!name.empty() && name.back() == '/') continue;
        if (stat.comp_method != ZIP_CM_STORE && stat.comp_method != ZIP_CM_DEFLATE)
            fail(ErrorCode::unsupported, "{}: entry '{}': expected it stored or deflated, found method {}",
                 source_.name, name, stat.comp_method);
        if ((stat.valid & ZIP_STAT_ENCRYPTION_METHOD) != 0 && stat.encryption_method != ZIP_EM_NONE)
            fail(ErrorCode::unsupported, "{}: entry '{}': expected no encryption, found some", source_.name, name);
        const bool stored = stat.comp_method == ZIP_CM_STORE;
        const std::uint64_t most =
            stored
                ? stat.comp_size
                : (stat.comp_size > UINT64_MAX / max_deflate_ratio ? UINT64_MAX : stat.comp_size * max_deflate_ratio);
        if (stat.comp_size > source_.bytes.size() || stat.size > most ||
            __builtin_add_overflow(total, stat.size, &total))
            fail(ErrorCode::corrupt, "{}: entry '{}': expected at most {} bytes out of its {} in the archive, found {}",
                 source_.name, name, most, stat.comp_size, stat.size);
        entries_.push_back({name, index, stat.size, stored});
    }
    if (total > harmless_bytes && total / max_total_ratio > source_.bytes.size())
        fail(ErrorCode::corrupt, "{}: expected at most {} times its {} bytes when unpacked, found {} (a zip bomb?)",
             source_.name, max_total_ratio, source_.bytes.size(), total);
}

ZipArchive::~ZipArchive() = default;

const ZipArchive::Entry* ZipArchive::find(std::string_view wanted) const {
    for (const auto& entry : entries_)
        if (entry.name == wanted) return &entry;
    return nullptr;
}

std::unique_ptr<ZipEntryReader> ZipArchive::open(const Entry& entry) const {
    return std::make_unique<Reader>(handle_->archive, entry, source_);
}

std::vector<std::byte> ZipArchive::read(const Entry& entry, std::uint64_t limit) const {
    if (entry.size > limit)
        fail(ErrorCode::unsupported, "{}: entry '{}': expected at most {} bytes, found {}", source_.name, entry.name,
             limit, entry.size);
    const auto reader = open(entry);
    const auto bytes = reader->take(entry.size);
    return {bytes.begin(), bytes.end()};
}

}  // namespace marginmerge
