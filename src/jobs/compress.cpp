#include "marginmerge/jobs/compress.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <future>
#include <mutex>
#include <nlohmann/json.hpp>

#include "core/clock.h"
#include "core/fail.h"
#include "core/parallel.h"
#include "core/share.h"
#include "io/mapped_file.h"
#include "io/multi_vector_file.h"
#include "io/output_path.h"
#include "jobs/chunk_journal.h"
#include "jobs/compressed_file.h"
#include "jobs/fingerprint.h"
#include "jobs/page_worker.h"
#include "jobs/recipe_json.h"
#include "kernels/convert.h"
#include "kernels/maxsim.h"
#include "marginmerge/core/version.h"
#include "marginmerge/jobs/model_file.h"

namespace marginmerge {

namespace {

struct Range {
    std::size_t begin, end;  ///< pages of the source
};

// Contiguous shards with about as many source vectors each.
Range shard_range(const MultiVectorSet& set, const Shard& shard) {
    if (shard.count == 0 || shard.index < 1 || shard.index > shard.count)
        fail(ErrorCode::invalid_argument, "shard: expected I/N with 1 <= I <= N, found {}/{}", shard.index,
             shard.count);
    const auto offsets = set.offsets();
    const auto boundary = [&](std::size_t i) -> std::size_t {
        if (i == shard.count) return set.size();
        const auto target = static_cast<std::int64_t>(static_cast<double>(set.total_vectors()) /
                                                      static_cast<double>(shard.count) * static_cast<double>(i));
        return static_cast<std::size_t>(std::lower_bound(offsets.begin(), offsets.end() - 1, target) - offsets.begin());
    };
    return {boundary(shard.index - 1), boundary(shard.index)};
}

// Small corpora get small chunks, so that several processes find enough of them; large ones get few files.
std::size_t usual_chunk_bytes(const MultiVectorSet& set) {
    constexpr std::size_t least = 4u << 20, most = 64u << 20, chunks = 64;
    return std::clamp(set.all_vectors().bytes() / chunks, least, most);
}

std::vector<Range> plan_chunks(const MultiVectorSet& set, Range pages, std::size_t chunk_bytes) {
    constexpr std::size_t most_pages = 65536;
    if (chunk_bytes == 0) chunk_bytes = usual_chunk_bytes(set);
    std::vector<Range> chunks;
    for (std::size_t begin = pages.begin; begin < pages.end;) {
        std::size_t end = begin;
        std::size_t bytes = 0;
        while (end < pages.end && bytes < chunk_bytes && end - begin < most_pages) bytes += set.vectors(end++).bytes();
        chunks.push_back({begin, end});
        begin = end;
    }
    return chunks;
}

// Everything about the run that stays the same from page to page.
struct Run {
    const CompressOptions& options;
    MultiVectorSet set;
    Model model;
    Recipe recipe;
    Range pages;
    CompressedLayout layout;  ///< of this shard; page p of the source is entry p - pages.begin

    std::size_t vectors_out(Range r) const { return span_of(layout.offsets, r); }
    std::size_t vectors_in(Range r) const { return span_of(layout.source_offsets, r); }
    std::size_t row_bytes() const { return layout.dim * scalar_size(layout.type); }
    std::size_t chunk_bytes(Range r) const {
        return vectors_out(r) * row_bytes() + vectors_in(r) * sizeof(std::int32_t);
    }

private:
    std::size_t span_of(const std::vector<std::int64_t>& offsets, Range r) const {
        return static_cast<std::size_t>(offsets[r.end - pages.begin] - offsets[r.begin - pages.begin]);
    }
};

void plan_layout(Run& run) {
    CompressedLayout& l = run.layout;
    l.dim = run.set.dim();
    l.type = run.options.type;
    l.metadata = run.set.metadata();
    l.metadata["recipe"] = recipe_to_json(run.recipe).dump();
    l.metadata["source"] = nlohmann::json{{"documents", run.set.size()},
                                          {"vectors", run.set.total_vectors()},
                                          {"dtype", to_string(run.set.type())},
                                          {"fingerprint", file_fingerprint(run.options.documents)}}
                               .dump();
    if (!run.options.model.empty()) l.metadata["model"] = file_fingerprint(run.options.model);
    if (run.options.shard.count > 1)
        l.metadata["shard"] = fmt::format("{}/{}", run.options.shard.index, run.options.shard.count);
    for (std::size_t p = run.pages.begin; p < run.pages.end; ++p) {
        const std::size_t n = run.set.vectors_of(p);
        l.offsets.push_back(l.offsets.back() + static_cast<std::int64_t>(run.recipe.budget.count(n)));
        l.source_offsets.push_back(l.source_offsets.back() + static_cast<std::int64_t>(n));
        l.add_id(run.set.id(p));
        if (run.set.has_grid()) l.grid.insert(l.grid.end(), {run.set.grid(p).columns, run.set.grid(p).rows});
    }
}

// What must be the same for chunks to fit together. The kernel is part of it: another instruction set may round
// differently.
nlohmann::json run_identity(const Run& run) {
    return {{"metadata", run.layout.metadata},
            {"dtype", to_string(run.options.type)},
            {"kernel", kernel_name()},
            {"version", version()},
            {"chunk_bytes", run.options.chunk_bytes}};
}

std::string run_fingerprint(const Run& run) {
    nlohmann::json j = run_identity(run);
    j["documents"] = file_stamp(run.options.documents);
    return j.dump() + "\n";
}

// Processes that read other files or round otherwise would spoil the output; found before any work is done.
void check_processes(const Run& run, Cluster* cluster) {
    check_same(cluster, version(), "version");
    check_same(cluster, kernel_name(), "kernel (MARGINMERGE_KERNEL names one that all machines have)");
    check_same(cluster, run_identity(run).dump(), "documents, model and settings");
}

class Compressor {
public:
    Compressor(const Run& run, const Progress& progress)
        : run_(run), progress_(progress), workers_(resolve_threads(run.options.threads)) {}

    // Pages count as they are done, or (shared by several processes) when their chunk arrives.
    bool counts_pages() const { return run_.options.cluster == nullptr; }

    // The stored bytes of a chunk: representatives, then owners.
    std::vector<std::byte> chunk(Range r) {
        std::vector<std::byte> bytes(run_.chunk_bytes(r));
        std::byte* owners = bytes.data() + run_.vectors_out(r) * run_.row_bytes();
        parallel_for_workers(r.end - r.begin, run_.options.threads, [&](std::size_t i, std::size_t worker) {
            const Range before{r.begin, r.begin + i};
            page(before.end, workers_[worker], bytes.data() + run_.vectors_out(before) * run_.row_bytes(),
                 owners + run_.vectors_in(before) * sizeof(std::int32_t));
            if (counts_pages()) finished(1);
        });
        const VectorsView first = run_.set.vectors(r.begin);
        release_pages(first.data, run_.vectors_in(r) * first.row_bytes());
        return bytes;
    }

    void finished(std::size_t pages) {
        const std::lock_guard lock(mutex_);
        done_ += pages;
        const std::size_t total = run_.pages.end - run_.pages.begin;
        const auto now = Clock::now();
        if (!progress_ || (done_ < total && now - reported_ < std::chrono::milliseconds(50))) return;
        reported_ = now;
        progress_({"compress", "pages", done_, total, ""});
    }

    std::size_t odd_norms() const {
        std::size_t sum = 0;
        for (const PageWorker& w : workers_) sum += w.odd_norms();
        return sum;
    }

private:
    void page(std::size_t p, PageWorker& worker, std::byte* vectors, std::byte* owners) {
        const CompressedPage& page = worker.compress(run_.set.vectors(p), run_.set.grid(p), p, run_.model, run_.recipe,
                                                     run_.options.documents.string(), run_.set.id(p));
        from_float(page.representatives.flat(), run_.options.type, vectors);
        std::ranges::copy(std::as_bytes(std::span(page.owner)), owners);
    }

    const Run& run_;
    const Progress& progress_;
    std::vector<PageWorker> workers_;
    std::mutex mutex_;
    std::size_t done_ = 0;
    Clock::time_point reported_;
};

// Has the missing chunks computed by all processes; the first keeps them in its journal. A result is the chunk and the
// number of its vectors that are not of unit norm. Returns how many those are.
std::size_t share_chunks(const std::vector<Range>& chunks, std::span<const std::size_t> missing, Compressor& compressor,
                         ChunkJournal* journal, Cluster& cluster) {
    std::uint64_t odd_norms = 0;
    const auto compute = [&](std::size_t c) {
        const std::uint64_t before = compressor.odd_norms();
        std::vector<std::byte> bytes = compressor.chunk(chunks[c]);
        const std::uint64_t odd = compressor.odd_norms() - before;
        const auto tail = std::as_bytes(std::span(&odd, 1));
        bytes.insert(bytes.end(), tail.begin(), tail.end());
        return bytes;
    };
    const auto collect = [&](std::size_t c, std::span<const std::byte> bytes) {
        std::uint64_t odd = 0;
        std::memcpy(&odd, bytes.last(sizeof odd).data(), sizeof odd);
        odd_norms += odd;
        journal->save(c, bytes.first(bytes.size() - sizeof odd));
        compressor.finished(chunks[c].end - chunks[c].begin);
    };
    cluster.run(missing, compute, collect);
    return odd_norms;
}

// Computes the missing chunks one after another. While one is computed the one before is written and synced, which
// costs hardly any processor time and much waiting.
void compute_chunks(const std::vector<Range>& chunks, std::span<const std::size_t> missing, Compressor& compressor,
                    ChunkJournal& journal) {
    std::future<void> saved;
    for (const std::size_t c : missing) {
        std::vector<std::byte> bytes = compressor.chunk(chunks[c]);
        if (saved.valid()) saved.get();
        saved = std::async(std::launch::async, [&journal, c, own = std::move(bytes)] { journal.save(c, own); });
    }
    if (saved.valid()) saved.get();
}

Run prepare(const CompressOptions& options) {
    Run run{options, read_multi_vectors(options.documents), {}, {}, {}, {}};
    if (run.set.has_owner())
        fail(ErrorCode::invalid_argument, "{}: is already compressed; compress the original vectors",
             options.documents.string());
    check_output(options.output, {options.documents, options.model});
    if (!options.model.empty()) run.model = load_model(options.model);
    run.recipe = resolve_recipe(options.recipe, options.model.empty() ? nullptr : &run.model, run.set.offsets());
    check_model_dimension(run.model, run.set.dim(), options.model.string());
    run.pages = shard_range(run.set, options.shard);
    plan_layout(run);
    return run;
}

}  // namespace

CompressReport compress(const CompressOptions& options, const Progress& progress) {
    const auto started = Clock::now();
    const Run run = prepare(options);
    const auto chunks = plan_chunks(run.set, run.pages, options.chunk_bytes);
    if (options.cluster != nullptr) {
        check_processes(run, options.cluster);
        if (!options.cluster->leads()) {
            const Progress silent;
            Compressor compressor(run, silent);
            share_chunks(chunks, {}, compressor, nullptr, *options.cluster);
            return {};
        }
    }
    ChunkJournal journal(options.output, run_fingerprint(run));
    CompressReport report;
    if (journal.discarded())
        report.notes.push_back("an interrupted run with other inputs or settings was found and discarded");
    Compressor compressor(run, progress);
    std::vector<std::size_t> missing;
    for (std::size_t c = 0; c < chunks.size(); ++c) {
        if (journal.has(c, run.chunk_bytes(chunks[c]))) {
            report.resumed_pages += chunks[c].end - chunks[c].begin;
            compressor.finished(chunks[c].end - chunks[c].begin);
        } else {
            missing.push_back(c);
        }
    }
    std::size_t odd_norms = 0;
    try {
        if (options.cluster != nullptr) {
            odd_norms = share_chunks(chunks, missing, compressor, &journal, *options.cluster);
        } else {
            compute_chunks(chunks, missing, compressor, journal);
            odd_norms = compressor.odd_norms();
        }
    } catch (const Error& error) {
        // Documents that cannot be compressed will be others when they can: nothing to go on from.
        if (error.code() == ErrorCode::corrupt) journal.finish();
        throw;
    }

    CompressedWriter writer(options.output, run.layout);
    for (std::size_t c = 0; c < chunks.size(); ++c)
        journal.load(c, [&](std::span<const std::byte> bytes) {
            const std::size_t vectors = run.vectors_out(chunks[c]) * run.row_bytes();
            writer.write_pages(chunks[c].begin - run.pages.begin, bytes.first(vectors), bytes.subspan(vectors));
        });
    writer.commit();
    journal.finish();

    report.pages = run.layout.pages();
    report.vectors_in = static_cast<std::size_t>(run.layout.source_offsets.back());
    report.vectors_out = static_cast<std::size_t>(run.layout.offsets.back());
    report.bytes_in = report.vectors_in * run.set.dim() * scalar_size(run.set.type());
    report.bytes_out = report.vectors_out * run.row_bytes();
    report.kernel = kernel_name();
    report.recipe = run.recipe;
    if (report.resumed_pages > 0)
        report.notes.push_back(fmt::format("{} pages were taken over from an interrupted run", report.resumed_pages));
    if (odd_norms > 0) report.notes.push_back(odd_norms_note(odd_norms));
    report.seconds = seconds_since(started);
    return report;
}

}  // namespace marginmerge
