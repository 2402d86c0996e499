#include "jobs/encode.h"

#include <xxhash.h>

#include <algorithm>
#include <mutex>

#include "core/clock.h"
#include "core/fail.h"
#include "core/parallel.h"
#include "encode/json_fields.h"
#include "encode/onnx_session.h"
#include "encode/projection.h"
#include "encode/resample.h"
#include "io/multi_vector_file.h"
#include "jobs/encode_parts.h"
#include "jobs/encode_write.h"
#include "marginmerge/core/version.h"

namespace marginmerge {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t unit_pages = 32;            // kept as one piece; bounds memory and lost work
constexpr std::uint64_t large_model = 400 << 20;  // beyond it one run uses all cores
constexpr std::uint32_t render_side = 1600;       // of pages a visual encoder reads

/// Everything besides the file itself that decides what a unit's result is.
std::string fingerprint(const EncodeOptions& o, const Encoder& encoder, ScalarType type) {
    const EncoderCard& card = encoder.card();
    const fs::path file = fs::is_directory(o.card) ? o.card / "card.json" : o.card;
    const auto model = locate(card, card.document.model, o.models);
    std::error_code ignored;
    return fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|{}", version(), read_text_file(file.string(), 4 << 20), model.string(),
                       fs::file_size(model, ignored), fs::last_write_time(model, ignored).time_since_epoch().count(),
                       to_string(type), o.page_images, o.image_side, o.pca > 0);
}

/// The file of a page's image or text in the assets folder: its id with an ending, which is where the server looks
/// for it. An id that is no plain relative path gets a name of its own, and pages.jsonl says which.
std::string asset_name(const std::string& id, const char* ending) {
    bool plain = id.size() < 200 && !fs::path(id).is_absolute();
    for (const auto& part : fs::path(id)) plain = plain && !part.empty() && part.native().front() != '.';
    if (plain) return id + ending;
    return fmt::format("page-{:016x}{}", XXH3_64bits(id.data(), id.size()), ending);
}

class Job {
public:
    Job(const EncodeOptions& options, const Progress& progress)
        : options_(options), progress_(progress), threads_(resolve_threads(options.threads)) {
        if (options_.shards == 0 || options_.shard >= options_.shards)
            fail(ErrorCode::invalid_argument, "--shard: expected I/N with I from 1 to N");
        if (options_.pca > 0 && options_.shards > 1)
            fail(ErrorCode::invalid_argument,
                 "--pca with --shard would fit every shard its own projection; fit one on a sample and use its card");
        for (std::size_t i = 0; i < threads_; ++i) readers_.emplace_back(options_.reader);
        if (options_.assets.empty()) {
            options_.assets = options_.output;
            options_.assets += ".assets";
        }
    }

    EncodeReport run() {
        const auto started = Clock::now();
        EncoderCard card = read_card(options_.card);
        if (options_.pca > 0 && options_.pca > static_cast<std::size_t>(card.dim))
            fail(ErrorCode::invalid_argument, "--pca: expected 1 to {}, found {}", card.dim, options_.pca);
        std::error_code ignored;
        const auto model = locate(card, card.document.model, options_.models);
        const bool large = fs::file_size(model, ignored) > large_model;
        EncoderOptions how;
        how.models = options_.models;
        how.threads = large ? threads_ : 1;
        how.queries = false;
        how.project = options_.pca == 0;
        const Encoder encoder(std::move(card), how);
        encoder_ = &encoder;
        const ScalarType part_type = options_.pca > 0 ? ScalarType::f32 : options_.type;
        fs::path partial = options_.output;
        partial += ".partial";
        const PartStore parts(partial, fingerprint(options_, encoder, part_type), options_.fresh);

        std::vector<WorkUnit> units = plan();
        for (const auto& unit : units) {
            if (!parts.has(unit)) continue;
            for (const auto& item : unit) report_.reused_pages += item.count;
        }
        done_ = report_.reused_pages;
        parallel_for_workers(units.size(), large ? 1 : threads_, [&](std::size_t i, std::size_t worker) {
            if (parts.has(units[i])) return;
            const UnitResult result = encode_unit(units[i], readers_[worker]);
            parts.put(units[i], result, encoder.dim(), part_type);
        });
        finish(units, parts);
        report_.runtime = onnxruntime_description();
        report_.assets = options_.assets;
        report_.seconds = seconds_since(started);
        return std::move(report_);
    }

private:
    void skip(std::vector<SkippedPage>& list, const SourceFile& file, std::size_t page, const Error& error) const {
        if (options_.strict) throw error;
        list.push_back({file.name, page, error.what()});
    }

    void tell(const char* phase, std::size_t done, std::size_t total) {
        if (progress_) progress_({phase, phase == std::string("encode") ? "pages" : "files", done, total, ""});
    }

    /// Opens every file once to count its pages, so that progress and units are known beforehand.
    std::vector<WorkUnit> plan() {
        auto files = list_sources(options_.sources);
        std::vector<SourceFile> mine;
        for (std::size_t i = 0; i < files.size(); ++i) {
            if (i % options_.shards == options_.shard) mine.push_back(std::move(files[i]));
        }
        if (files.empty()) fail(ErrorCode::not_found, "found no PDF, image or text file to encode");
        std::vector<std::size_t> pages(mine.size(), 0);
        std::vector<std::vector<SkippedPage>> broken(mine.size());
        std::size_t scanned = 0;
        parallel_for_workers(mine.size(), threads_, [&](std::size_t i, std::size_t worker) {
            try {
                pages[i] = readers_[worker].pages(mine[i].path);
            } catch (const Error& error) {
                skip(broken[i], mine[i], 0, error);
            }
            const std::lock_guard lock(mutex_);
            tell("scan", ++scanned, mine.size());
        });
        std::vector<WorkUnit> units;
        std::size_t room = 0;
        for (std::size_t i = 0; i < mine.size(); ++i) {
            report_.skipped.insert(report_.skipped.end(), broken[i].begin(), broken[i].end());
            report_.files += pages[i] > 0 ? 1 : 0;
            total_ += pages[i];
            for (std::size_t first = 0; first < pages[i]; first += unit_pages) {
                const std::size_t count = std::min(unit_pages, pages[i] - first);
                if (count > room) {
                    units.emplace_back();
                    room = unit_pages;
                }
                units.back().push_back({mine[i], first, count});
                room -= count;
            }
        }
        return units;
    }

    UnitResult encode_unit(const WorkUnit& unit, PageReader& reader) {
        UnitResult result;
        for (const auto& item : unit) {
            for (std::size_t p = item.first; p < item.first + item.count; ++p) {
                try {
                    encode_page(reader, item.file, p, result);
                } catch (const Error& error) {
                    skip(result.skipped, item.file, p + 1, error);
                }
                const std::lock_guard lock(mutex_);
                tell("encode", ++done_, total_);
            }
        }
        const std::lock_guard lock(mutex_);
        report_.tokens += result.tokens;
        return result;
    }

    void encode_page(PageReader& reader, const SourceFile& file, std::size_t index, UnitResult& result) const {
        const bool visual = encoder_->card().kind == EncoderCard::Kind::visual;
        PageRequest request;
        request.text = true;
        request.longest_side = visual ? render_side : options_.page_images ? options_.image_side : 0;
        const Page page = reader.load(file.path, index, request);
        const std::string id = fmt::format("{}#{}", file.name, index + 1);
        EncodedPage encoded;
        if (visual) {
            encoded = encoder_->encode_image(page.image, id);
        } else {
            if (page.text.text.empty())
                fail(ErrorCode::unsupported, "{}: page {}: no text on it, and this encoder reads text",
                     file.path.string(), index + 1);
            encoded = encoder_->encode_text(page.text);
        }
        if (encoded.vectors.rows() == 0)
            fail(ErrorCode::unsupported, "{}: page {}: nothing on it to encode", file.path.string(), index + 1);
        PageRecord record{id, file.name, index + 1, page.title, page.width, page.height, "", ""};
        if (options_.page_images && !page.image.empty()) {
            record.image = asset_name(id, ".jpg");
            write_asset(record.image, encode_jpeg(fit_within(page.image, options_.image_side), 85));
        }
        if (!page.text.text.empty()) {
            record.text = asset_name(id, ".txt");
            write_asset(record.text, page.text.text);
        }
        result.tokens += encoded.tokens;
        result.pages.push_back(std::move(record));
        result.vectors.push_back(std::move(encoded));
    }

    void write_asset(const std::string& name, std::string_view bytes) const {
        const fs::path path = options_.assets / name;
        std::error_code error;
        fs::create_directories(path.parent_path(), error);
        // Assets need no sync of their own: a lost one is made again with its unit.
        write_plain_file(path, bytes);
    }

    void finish(const std::vector<WorkUnit>& units, const PartStore& parts) {
        Merged merged;
        merged.output = options_.output;
        merged.type = options_.type;
        merged.dim = encoder_->dim();
        merged.metadata = {{"encoder", encoder_->card().name}, {"kind", "documents"}};
        report_.card = options_.card;
        Projection projection;
        std::error_code error;
        fs::create_directories(options_.assets, error);
        if (options_.pca > 0) {
            projection = fit_projection(units, parts, encoder_->dim(), options_.pca, report_.pca_kept);
            write_projection(options_.assets / "projection.safetensors", projection);
            report_.card = options_.assets / "card.json";
            write_text_file(report_.card, card_with_projection(options_.card, options_.models, options_.assets,
                                                               "projection.safetensors"));
            merged.projection = &projection;
            merged.normalise = encoder_->card().normalise;
            merged.dim = options_.pca;
        }
        std::string lines;
        merge_parts(units, parts, merged, [&](const PartStore::Part& part) {
            for (const auto& page : part.pages) lines += to_json_line(page) + "\n";
            report_.skipped.insert(report_.skipped.end(), part.skipped.begin(), part.skipped.end());
            report_.pages += part.set.size();
            report_.vectors += part.set.total_vectors();
        });
        write_text_file(options_.assets / "pages.jsonl", lines);
        report_.dim = merged.dim;
        parts.remove();
    }

    EncodeOptions options_;
    Progress progress_;
    std::size_t threads_;
    std::vector<PageReader> readers_;  // one for each worker
    const Encoder* encoder_ = nullptr;
    EncodeReport report_;
    std::mutex mutex_;
    std::size_t done_ = 0;
    std::size_t total_ = 0;
};

}  // namespace

EncodeReport encode_documents(const EncodeOptions& options, const Progress& progress) {
    return Job(options, progress).run();
}

}  // namespace marginmerge
