#include "marginmerge/index/index.h"

#include <algorithm>
#include <numeric>
#include <thread>

#include "core/fail.h"
#include "index/state.h"
#include "io/mapped_file.h"
#include "io/multi_vector_file.h"

namespace marginmerge {

namespace {

using StatePtr = std::shared_ptr<const Index::State>;
namespace fs = std::filesystem;

std::vector<std::uint32_t> live_pages(std::size_t count, const std::vector<std::int64_t>& deleted) {
    std::vector<std::uint32_t> live;
    live.reserve(count - deleted.size());
    std::size_t next = 0;
    for (std::size_t i = 0; i < count; ++i) {
        if (next < deleted.size() && static_cast<std::size_t>(deleted[next]) == i)
            ++next;
        else
            live.push_back(static_cast<std::uint32_t>(i));
    }
    return live;
}

std::shared_ptr<const Segment> open_segment(const fs::path& folder, const SegmentEntry& entry, const Manifest& m) {
    const auto path = folder / entry.pages.file;
    auto segment = Segment::open(path, entry.full ? folder / entry.full->file : fs::path());
    if (segment->size() != entry.count || segment->dim() != m.dim || segment->code() != m.code)
        fail(ErrorCode::corrupt, "{}: expected {} pages of {} dimensions in {}, found {} of {} in {}", path.string(),
             entry.count, m.dim, to_string(m.code), segment->size(), segment->dim(), to_string(segment->code()));
    return segment;
}

// Whether the segment of an earlier snapshot can serve this entry: files are never rewritten under
// a name, so equal names and checksums mean equal contents.
std::shared_ptr<const Segment> reuse(const Index::State* old, const SegmentEntry& entry,
                                     const std::vector<std::shared_ptr<const Segment>>& segments) {
    if (old == nullptr) return nullptr;
    for (std::size_t i = 0; i < old->manifest.segments.size(); ++i) {
        const SegmentEntry& e = old->manifest.segments[i];
        const bool same_full =
            e.full.has_value() == entry.full.has_value() &&
            (!e.full || (e.full->file == entry.full->file && e.full->checksum == entry.full->checksum));
        if (same_full && e.pages.file == entry.pages.file && e.pages.checksum == entry.pages.checksum)
            return segments[i];
    }
    return nullptr;
}

StatePtr open_folder(const fs::path& path, const Index::State* old) {
    auto state = std::make_shared<Index::State>();
    state->path = path;
    state->folder = true;
    state->manifest = read_manifest(path);
    const Manifest& m = state->manifest;
    state->dim = m.dim;
    state->code = m.code;
    for (const SegmentEntry& entry : m.segments) {
        auto segment =
            reuse(old, entry, old != nullptr ? old->segments : std::vector<std::shared_ptr<const Segment>>());
        if (!segment) segment = open_segment(path, entry, m);
        std::vector<std::uint32_t> live;
        if (entry.deleted) {
            const auto deleted = read_deleted(path / entry.deleted->file, entry.count);
            if (deleted.size() != entry.deleted_count)
                fail(ErrorCode::corrupt, "{}: deleted: expected {} entries, found {}",
                     (path / entry.deleted->file).string(), entry.deleted_count, deleted.size());
            live = live_pages(segment->size(), deleted);
        }
        state->segments.push_back(segment);
        if (entry.deleted_count < entry.count) state->append(segment, std::move(live));
    }
    if (m.queries) state->queries = read_multi_vectors(path / m.queries->file);
    return state;
}

StatePtr open_file(const fs::path& path) {
    auto state = std::make_shared<Index::State>();
    state->path = path;
    std::error_code error;
    state->modified = fs::last_write_time(path, error);
    state->file_size = error ? 0 : fs::file_size(path, error);
    auto segment = Segment::open(path);
    state->dim = segment->dim();
    state->code = segment->code();
    state->segments.push_back(segment);
    if (segment->size() > 0) state->append(segment, {});
    return state;
}

// A compact may remove a file between our reading of the manifest and our opening of the file;
// the new manifest is then in place, so a second look succeeds.
StatePtr open_state(const fs::path& path, const Index::State* old) {
    if (!fs::is_directory(path)) return open_file(path);
    for (int attempt = 0;; ++attempt) {
        try {
            return open_folder(path, old);
        } catch (const Error& error) {
            if (error.code() != ErrorCode::not_found || attempt >= 20 || !fs::exists(path / manifest_name)) throw;
            std::this_thread::sleep_for(std::chrono::milliseconds(attempt));
        }
    }
}

}  // namespace

Manifest read_manifest(const fs::path& folder) {
    const auto path = folder / manifest_name;
    if (!fs::exists(path))
        fail(ErrorCode::not_found, "{}: expected an index: a folder with {}, or a multi-vector file", folder.string(),
             manifest_name);
    const MappedFile file(path);
    return parse_manifest({reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()}, path.string());
}

std::vector<std::int64_t> read_deleted(const fs::path& path, std::uint64_t count) {
    const SafetensorsFile file(path);
    const auto values = file.require_span<std::int64_t>("deleted", DType::i64, 1);
    std::int64_t previous = -1;
    for (const auto v : values) {
        if (v <= previous || v >= static_cast<std::int64_t>(count))
            fail(ErrorCode::corrupt, "{}: deleted: expected ascending positions below {}, found {}", path.string(),
                 count, v);
        previous = v;
    }
    return {values.begin(), values.end()};
}

std::optional<std::size_t> Part::position(std::size_t local_page) const {
    if (live.empty()) return first + local_page;
    const auto found = std::lower_bound(live.begin(), live.end(), local_page);
    if (found == live.end() || *found != local_page) return std::nullopt;
    return first + static_cast<std::size_t>(found - live.begin());
}

PageRef Index::State::at(std::size_t position) const {
    if (position >= size)
        fail(ErrorCode::invalid_argument, "position: expected less than {}, found {}", size, position);
    const auto after = std::upper_bound(parts.begin(), parts.end(), position,
                                        [](std::size_t p, const Part& part) { return p < part.first; });
    const Part& part = *std::prev(after);
    return {&part, part.local(position)};
}

void Index::State::append(std::shared_ptr<const Segment> segment, std::vector<std::uint32_t> live) {
    Part part;
    part.count = live.empty() ? segment->size() : live.size();
    part.segment = std::move(segment);
    part.live = std::move(live);
    part.first = size;
    size += part.count;
    parts.push_back(std::move(part));
}

Index::Index(std::shared_ptr<const State> state) : state_(std::move(state)) {}
Index::~Index() = default;

std::shared_ptr<const Index> Index::open(const fs::path& path) {
    return std::make_shared<const Index>(open_state(path, nullptr));
}

std::shared_ptr<const Index> Index::reopen(const std::shared_ptr<const Index>& current) {
    const State& s = current->state();
    if (s.path.empty()) return current;
    if (s.folder) {
        if (read_manifest(s.path).generation == s.manifest.generation) return current;
    } else {
        std::error_code gone;  // opening says which file is missing
        if (fs::last_write_time(s.path, gone) == s.modified && fs::file_size(s.path, gone) == s.file_size)
            return current;
    }
    return std::make_shared<const Index>(open_state(s.path, &s));
}

std::shared_ptr<const Index> Index::wrap(const MultiVectorSet& pages) {
    auto state = std::make_shared<State>();
    auto segment = Segment::wrap(pages);
    state->dim = segment->dim();
    state->code = segment->code();
    state->segments.push_back(segment);
    if (segment->size() > 0) state->append(segment, {});
    return std::make_shared<const Index>(std::move(state));
}

const fs::path& Index::path() const { return state_->path; }
std::size_t Index::size() const { return state_->size; }
std::size_t Index::dim() const { return state_->dim; }
VectorCode Index::code() const { return state_->code; }

IndexStats Index::stats() const {
    IndexStats s;
    s.pages = size();
    s.dim = dim();
    s.code = code();
    s.segments = state_->segments.size();
    s.generation = state_->manifest.generation;
    for (const Part& part : state_->parts) {
        for (std::size_t p = part.first; p < part.first + part.count; ++p) {
            const std::size_t local = part.local(p);
            s.vectors += part.segment->layout().vectors_of(local);
            s.source_vectors += part.segment->source_vectors_of(local);
            s.vector_bytes += part.segment->vector_bytes(local);
        }
    }
    if (!state_->folder) {
        s.bytes = state_->file_size;
        return s;
    }
    for (const auto& e : state_->manifest.segments) {
        s.deleted += e.deleted_count;
        s.bytes += e.pages.bytes + (e.deleted ? e.deleted->bytes : 0);
        s.full_bytes += e.full ? e.full->bytes : 0;
    }
    return s;
}

std::string Index::id(std::size_t position) const {
    const PageRef page = state_->at(position);
    return page.segment().layout().id(page.local);
}

std::optional<std::size_t> Index::find(std::string_view id) const {
    for (const Part& part : state_->parts) {
        const auto local = part.segment->layout().find(id);
        if (!local) continue;
        if (const auto position = part.position(*local)) return position;
    }
    return std::nullopt;
}

std::size_t Index::vectors_of(std::size_t position) const {
    const PageRef page = state_->at(position);
    return page.segment().layout().vectors_of(page.local);
}

Matrix Index::vectors(std::size_t position) const {
    const PageRef page = state_->at(position);
    return page.segment().decoded(page.local);
}

PatchGrid Index::grid(std::size_t position) const {
    const PageRef page = state_->at(position);
    const PatchGrid grid = page.segment().layout().grid(page.local);
    return !grid.known() && page.segment().full() != nullptr ? page.segment().full()->grid(page.local) : grid;
}

std::span<const float> Index::boxes(std::size_t position) const {
    const PageRef page = state_->at(position);
    return page.segment().layout().boxes(page.local);
}

std::span<const std::int32_t> Index::owner(std::size_t position) const {
    const PageRef page = state_->at(position);
    return page.segment().layout().owner(page.local);
}

std::size_t Index::source_vectors_of(std::size_t position) const {
    const PageRef page = state_->at(position);
    return page.segment().source_vectors_of(page.local);
}

std::string_view Index::metadata(std::size_t position) const {
    const PageRef page = state_->at(position);
    return page.segment().metadata(page.local);
}

bool Index::has_full() const {
    return !state_->parts.empty() && std::all_of(state_->parts.begin(), state_->parts.end(),
                                                 [](const Part& p) { return p.segment->full() != nullptr; });
}

VectorsView Index::full_vectors(std::size_t position) const {
    const PageRef page = state_->at(position);
    if (page.segment().full() == nullptr)
        fail(ErrorCode::unsupported, "{}: expected full vectors, found an index that does not keep them",
             path().string());
    return page.segment().full()->vectors(page.local);
}

std::span<const float> Index::full_boxes(std::size_t position) const {
    const PageRef page = state_->at(position);
    return page.segment().full() != nullptr ? page.segment().full()->boxes(page.local) : std::span<const float>();
}

const MultiVectorSet& Index::example_queries() const { return state_->queries; }

}  // namespace marginmerge
