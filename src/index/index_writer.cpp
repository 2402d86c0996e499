#include "marginmerge/index/index_writer.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "core/fail.h"
#include "index/limited_json.h"
#include "index/segment_writer.h"
#include "index/state.h"
#include "index/writer_files.h"
#include "index/writer_lock.h"
#include "io/atomic_file.h"
#include "io/folders.h"
#include "io/multi_vector_file.h"

namespace marginmerge {

namespace fs = std::filesystem;

struct IndexWriter::Impl {
    fs::path folder;
    std::unique_ptr<WriterLock> lock;
    bool exists = false;  ///< a manifest is there

    std::shared_ptr<const Index> snapshot;  ///< what the manifest says now; null before the first add

    const Manifest& manifest() const {
        static const Manifest none;
        return snapshot ? snapshot->state().manifest : none;
    }

    void require_index() const {
        if (!snapshot)
            fail(ErrorCode::not_found, "{}: expected an index, found a folder without {}", folder.string(),
                 manifest_name);
    }

    // The one instant at which a change happens; files it no longer names go afterwards.
    void commit(const Manifest& next) {
        write_text_file(folder / manifest_name, manifest_text(next));
        snapshot = snapshot ? Index::reopen(snapshot) : Index::open(folder);
        remove_leftovers(folder, next);
    }

    std::string name(std::uint64_t generation, const std::string& what) const {
        return fmt::format("{}-{:08}.safetensors", what, generation);
    }

    void add_tombstones(Manifest& next, const std::vector<std::vector<std::int64_t>>& gone) const;
    std::vector<std::vector<std::int64_t>> current_tombstones() const;
};

namespace {

// Compacts the JSON and proves that it is an object on one line.
std::string canonical_metadata(const std::string& text, const std::string& id) {
    if (text.empty()) return {};
    const auto value = parse_limited_json(text, "metadata of page '" + id + "'");
    if (!value.is_object()) fail(ErrorCode::corrupt, "metadata of page '{}': expected a JSON object", id);
    return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::vector<std::size_t> full_positions(const MultiVectorSet& pages, const MultiVectorSet& full) {
    if (full.size() > 0 && full.dim() != pages.dim())
        fail(ErrorCode::invalid_argument, "full vectors: expected {} dimensions, found {}", pages.dim(), full.dim());
    std::vector<std::size_t> positions;
    for (std::size_t i = 0; i < pages.size(); ++i) {
        const auto found = full.find(pages.id(i));
        if (!found) fail(ErrorCode::not_found, "full vectors: expected page '{}', found none", pages.id(i));
        if (pages.has_owner() && pages.source_vectors_of(i) != full.vectors_of(*found))
            fail(ErrorCode::corrupt, "full vectors of page '{}': expected {} as before compression, found {}",
                 pages.id(i), pages.source_vectors_of(i), full.vectors_of(*found));
        positions.push_back(*found);
    }
    return positions;
}

}  // namespace

IndexWriter::IndexWriter(const fs::path& folder, Options options) : impl_(std::make_unique<Impl>()) {
    impl_->folder = folder;
    if (!fs::exists(folder)) {
        if (!options.create) fail(ErrorCode::not_found, "{}: expected an index folder, found nothing", folder.string());
        make_folder(folder);
    } else if (!fs::is_directory(folder)) {
        fail(ErrorCode::invalid_argument,
             "{}: expected an index folder, found a file; make one with 'marginmerge index add FOLDER {}'",
             folder.string(), folder.string());
    } else if (!fs::exists(folder / manifest_name) && !only_leftovers(folder)) {
        fail(ErrorCode::invalid_argument, "{}: expected an index or an empty folder, found other files",
             folder.string());
    }
    impl_->lock = std::make_unique<WriterLock>(folder, options.lock_timeout);
    if (fs::exists(folder / manifest_name))
        impl_->snapshot = Index::open(folder);
    else if (!options.create)
        impl_->require_index();
    remove_leftovers(folder, impl_->manifest());
}

IndexWriter::~IndexWriter() = default;

std::vector<std::vector<std::int64_t>> IndexWriter::Impl::current_tombstones() const {
    std::vector<std::vector<std::int64_t>> gone;
    for (const SegmentEntry& s : manifest().segments)
        gone.push_back(s.deleted ? read_deleted(folder / s.deleted->file, s.count) : std::vector<std::int64_t>());
    return gone;
}

// Replaces the tombstones of those segments that lost pages; a segment without live pages goes.
void IndexWriter::Impl::add_tombstones(Manifest& next, const std::vector<std::vector<std::int64_t>>& gone) const {
    std::vector<SegmentEntry> kept;
    for (std::size_t i = 0; i < next.segments.size(); ++i) {
        SegmentEntry s = next.segments[i];
        if (i < gone.size() && gone[i].size() != s.deleted_count) {
            if (gone[i].size() == s.count) continue;
            std::vector<std::int64_t> sorted = gone[i];
            std::sort(sorted.begin(), sorted.end());
            s.deleted = write_deleted(folder / name(next.generation, "deleted-" + std::to_string(i)), sorted);
            s.deleted_count = sorted.size();
        }
        kept.push_back(std::move(s));
    }
    next.segments = std::move(kept);
}

AddReport IndexWriter::add(const MultiVectorSet& pages, std::span<const std::string> metadata, const AddOptions& o) {
    if (!metadata.empty() && metadata.size() != pages.size())
        fail(ErrorCode::invalid_argument, "metadata: expected {} entries, found {}", pages.size(), metadata.size());
    Manifest next = impl_->manifest();
    if (!impl_->snapshot) {
        next.code = o.code.value_or(VectorCode::f16);
        next.dim = pages.dim();
    }
    if (o.code && *o.code != next.code)
        fail(ErrorCode::invalid_argument,
             "{}: code: expected {} as in the index, found {}; 'index compact --code' changes it",
             impl_->folder.string(), to_string(next.code), to_string(*o.code));
    if (next.segments.empty()) next.dim = pages.dim();
    if (pages.size() > 0 && pages.dim() != next.dim)
        fail(ErrorCode::invalid_argument, "{}: expected pages of {} dimensions as in the index, found {}",
             impl_->folder.string(), next.dim, pages.dim());
    ++next.generation;

    // An index that keeps full vectors keeps them for every page, or they are of no use.
    const bool keeps_full = !next.segments.empty() && next.segments.front().full.has_value();
    if (!next.segments.empty() && keeps_full != (o.full != nullptr))
        fail(ErrorCode::invalid_argument,
             "{}: this index {} full vectors for its pages; add these pages {} --keep-full", impl_->folder.string(),
             keeps_full ? "keeps" : "does not keep", keeps_full ? "with" : "without");

    AddReport report;
    report.added = pages.size();
    auto gone = impl_->current_tombstones();
    if (impl_->snapshot) {
        const auto& segments = impl_->snapshot->state().segments;
        std::vector<std::unordered_set<std::int64_t>> dead(gone.size());
        for (std::size_t s = 0; s < gone.size(); ++s) dead[s].insert(gone[s].begin(), gone[s].end());
        for (std::size_t i = 0; i < pages.size(); ++i) {
            const std::string id = pages.id(i);
            for (std::size_t s = 0; s < segments.size(); ++s) {
                const auto local = segments[s]->layout().find(id);
                if (!local || dead[s].count(static_cast<std::int64_t>(*local)) > 0) continue;
                if (!o.replace)
                    fail(ErrorCode::invalid_argument,
                         "{}: page '{}' is already in the index; --replace takes its place", impl_->folder.string(),
                         id);
                gone[s].push_back(static_cast<std::int64_t>(*local));
                ++report.replaced;
            }
        }
    }

    std::vector<std::string> canonical;
    for (std::size_t i = 0; i < metadata.size(); ++i) canonical.push_back(canonical_metadata(metadata[i], pages.id(i)));
    const auto source = Segment::wrap(pages);
    std::vector<PageSource> list(pages.size());
    for (std::size_t i = 0; i < pages.size(); ++i)
        list[i] = {source.get(), i, canonical.empty() ? std::string_view() : std::string_view(canonical[i])};
    impl_->add_tombstones(next, gone);
    if (!list.empty()) {
        SegmentEntry entry;
        entry.count = list.size();
        entry.pages =
            write_segment(impl_->folder / impl_->name(next.generation, "pages"), list, next.dim, next.code, o.progress);
        if (o.full != nullptr)
            entry.full = write_full(impl_->folder / impl_->name(next.generation, "full"), *o.full,
                                    full_positions(pages, *o.full));
        next.segments.push_back(std::move(entry));
    }
    if (o.example_queries != nullptr) {
        const auto path = impl_->folder / impl_->name(next.generation, "queries");
        write_multi_vectors(path, *o.example_queries, o.example_queries->type());
        next.queries = file_entry(path);
    }
    impl_->commit(next);
    report.generation = next.generation;
    return report;
}

DeleteReport IndexWriter::remove(std::span<const std::string> ids, const DeleteOptions& o) {
    impl_->require_index();
    Manifest next = impl_->manifest();
    auto gone = impl_->current_tombstones();
    const auto& segments = impl_->snapshot->state().segments;
    std::vector<std::set<std::int64_t>> dead;
    dead.reserve(gone.size());
    for (const auto& g : gone) dead.emplace_back(g.begin(), g.end());
    DeleteReport report;
    const std::unordered_set<std::string> distinct(ids.begin(), ids.end());
    for (const auto& id : distinct) {
        bool found = false;
        for (std::size_t s = 0; s < segments.size(); ++s) {
            const auto local = segments[s]->layout().find(id);
            if (local && dead[s].insert(static_cast<std::int64_t>(*local)).second) found = true;
        }
        if (!found && !o.ignore_missing)
            fail(ErrorCode::not_found, "{}: expected a page '{}', found none; nothing was deleted",
                 impl_->folder.string(), id);
        ++(found ? report.deleted : report.missing);
    }
    report.generation = next.generation;
    if (report.deleted == 0) return report;
    ++next.generation;
    for (std::size_t s = 0; s < gone.size(); ++s) gone[s].assign(dead[s].begin(), dead[s].end());
    impl_->add_tombstones(next, gone);
    impl_->commit(next);
    report.generation = next.generation;
    return report;
}

CompactReport IndexWriter::compact(const CompactOptions& o) {
    impl_->require_index();
    const std::shared_ptr<const Index> before = impl_->snapshot;
    Manifest next = impl_->manifest();
    CompactReport report;
    report.pages = before->size();
    report.segments_before = next.segments.size();
    const IndexStats old = before->stats();
    report.bytes_before = old.bytes + old.full_bytes;
    if (o.code && *o.code != next.code) {
        if (code_fineness(*o.code) > code_fineness(next.code))
            fail(ErrorCode::invalid_argument,
                 "code: expected one no finer than {}, found {}: what was dropped cannot come back",
                 to_string(next.code), to_string(*o.code));
        next.code = *o.code;
    }
    report.generation = next.generation;
    report.bytes_after = report.bytes_before;
    const bool nothing_to_do = next.segments.size() <= 1 && old.deleted == 0 && next.code == impl_->manifest().code;
    if (nothing_to_do) return report;
    ++next.generation;
    std::vector<PageSource> list;
    for (const Part& part : before->state().parts)
        for (std::size_t p = part.first; p < part.first + part.count; ++p)
            list.push_back({part.segment.get(), part.local(p), part.segment->metadata(part.local(p))});
    next.segments.clear();
    if (!list.empty()) {
        SegmentEntry entry;
        entry.count = list.size();
        entry.pages =
            write_segment(impl_->folder / impl_->name(next.generation, "pages"), list, next.dim, next.code, o.progress);
        if (before->has_full()) entry.full = merge_full(impl_->folder / impl_->name(next.generation, "full"), list);
        next.segments.push_back(std::move(entry));
    }
    impl_->commit(next);
    const IndexStats now = impl_->snapshot->stats();
    report.bytes_after = now.bytes + now.full_bytes;
    report.generation = next.generation;
    return report;
}

}  // namespace marginmerge
