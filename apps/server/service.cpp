#include "service.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <nlohmann/json.hpp>
#include <numeric>

#include "api_error.h"
#include "core/parallel.h"
#include "kernels/maxsim.h"
#include "marginmerge/core/version.h"
#include "marginmerge/index/index_writer.h"
#include "service_json.h"

namespace marginmerge::server {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

namespace {

constexpr std::size_t cached_texts = 256;
constexpr std::size_t overview_pages = 2000;
constexpr double overview_seconds = 10;

double milliseconds_since(Clock::time_point begin) {
    return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

}  // namespace

struct Service::Running {
    explicit Running(Service& s) : service(s), active(++s.running_) {}
    ~Running() { --service.running_; }
    // One search alone uses every core; under load each gets its share, which wastes the least.
    std::size_t threads() const { return std::max<std::size_t>(1, resolve_threads(service.options_.threads) / active); }
    Service& service;
    std::size_t active;
};

Service::Service(ServiceOptions options) : options_(std::move(options)) {
    if (!options_.assets.empty()) assets_ = Assets(options_.assets);
    install(open_snapshot(options_.sources, nullptr));
    ready_ = true;
    watcher_ = std::thread([this] { watch(); });
    summariser_ = std::thread([this] { summarise(); });
}

Service::~Service() {
    {
        const std::lock_guard lock(wake_mutex_);
        end_ = true;
    }
    wake_.notify_all();
    watcher_.join();
    summariser_.join();
}

std::shared_ptr<const Snapshot> Service::snapshot() const {
    const std::lock_guard lock(mutex_);
    return snapshot_;
}

void Service::install(std::shared_ptr<const Snapshot> next) {
    {
        const std::lock_guard lock(mutex_);
        snapshot_ = std::move(next);
        last_reload_error_.clear();
    }
    {
        const std::lock_guard lock(wake_mutex_);
        overview_due_ = true;
    }
    wake_.notify_all();
}

Json Service::reload() {
    const std::lock_guard lock(reload_mutex_);
    try {
        install(open_snapshot(options_.sources, snapshot()));
        metrics_.add("marginmerge_reloads_total");
    } catch (const std::exception& error) {
        metrics_.add("marginmerge_reload_failures_total");
        const std::lock_guard state(mutex_);
        last_reload_error_ = error.what();
        throw;
    }
    const auto now = snapshot();
    return Json{
        {"pages", now->index->size()}, {"generation", now->index->stats().generation}, {"reloads", now->number - 1}};
}

// Notices what other processes did to the index.
void Service::watch() {
    while (!end_) {
        {
            std::unique_lock lock(wake_mutex_);
            const auto pause = std::chrono::duration<double>(options_.poll_seconds > 0 ? options_.poll_seconds : 3600);
            wake_.wait_for(lock, pause, [this] { return end_.load(); });
        }
        if (end_ || options_.poll_seconds <= 0) continue;
        try {
            const auto current = snapshot();
            if (Index::reopen(current->index) != current->index) reload();
        } catch (const std::exception& error) {
            const std::lock_guard lock(mutex_);
            last_reload_error_ = error.what();
        }
    }
}

void Service::summarise() {
    while (!end_) {
        {
            std::unique_lock lock(wake_mutex_);
            wake_.wait(lock, [this] { return end_ || overview_due_; });
            overview_due_ = false;
        }
        if (end_) return;
        const auto current = snapshot();
        try {
            auto made =
                std::make_shared<const Overview>(make_overview(*current, overview_pages, overview_seconds, end_));
            const std::lock_guard lock(mutex_);
            overview_ = std::move(made);
        } catch (const std::exception&) {
            metrics_.add("marginmerge_overview_failures_total");
        }
    }
}

EncodedText Service::encode_text(const std::string& text) {
    if (!options_.encoder) {
        throw ApiError(501, "no_encoder",
                       "text queries need an encoder: start the server with --encoder-url, or send vectors");
    }
    {
        const std::lock_guard lock(cache_mutex_);
        const auto it =
            std::find_if(cache_.begin(), cache_.end(), [&](const auto& entry) { return entry.first == text; });
        if (it != cache_.end()) {
            cache_.splice(cache_.begin(), cache_, it);
            return cache_.front().second;
        }
    }
    EncodedText encoded = options_.encoder->encode(text);
    const std::lock_guard lock(cache_mutex_);
    cache_.emplace_front(text, encoded);
    if (cache_.size() > cached_texts) cache_.pop_back();
    return encoded;
}

MultiVectorSet Service::resolve(const QueryInput& query, const Snapshot& s) {
    MultiVectorBuilder builder(s.index->dim());
    const auto add = [&](std::string id, ConstMatrix vectors) {
        if (vectors.cols != s.index->dim()) {
            throw ApiError(400, "dimension_mismatch",
                           "the index has " + std::to_string(s.index->dim()) + " dimensions, the query " +
                               std::to_string(vectors.cols));
        }
        builder.add(std::move(id), vectors);
    };
    for (std::size_t i = 0; i < query.vectors.size(); ++i) {
        add(i < query.ids.size() ? query.ids[i] : std::to_string(i), query.vectors[i]);
    }
    for (std::size_t i = 0; i < query.texts.size(); ++i) add(std::to_string(i), encode_text(query.texts[i]).vectors);
    std::vector<std::size_t> positions;
    for (const auto& id : query.examples) {
        const auto at = s.examples.find(id);
        if (!at) throw ApiError(404, "example_not_found", "no example query '" + id + "'");
        positions.push_back(*at);
    }
    return positions.empty() ? builder.finish() : s.examples.subset(positions);
}

std::vector<std::vector<Hit>> Service::run(const MultiVectorSet& queries, const SearchRequest& request,
                                           const Snapshot& s, std::size_t threads) const {
    const View& view = s.view(request.view);
    SearchOptions options = view.options;
    options.k = request.k;
    options.threads = threads;
    options.filter = request.filter;
    options.first_pass = request.first_pass;
    options.candidates = request.candidates;
    options.prefix = request.prefix;
    options.rerank = request.rerank;
    const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                             std::chrono::duration<double>(options_.limits.search_seconds));
    options.check = [deadline] {
        if (Clock::now() > deadline)
            throw ApiError(504, "deadline_exceeded", "the search took longer than the server allows");
    };
    const bool other = view.index != s.index;
    if (other) {
        // Other files know no metadata and perhaps other pages: rank all of theirs, keep ours.
        options.filter = {};
        if (!request.filter.empty() || view.index->size() != s.index->size()) options.k = view.index->size();
    }
    std::vector<std::vector<Hit>> results;
    if (queries.size() == 1) {
        results.push_back(view.index->search(queries.vectors(0), options));
    } else {
        results = view.index->search_batch(queries, options);
    }
    if (other) {
        for (auto& hits : results) {
            std::vector<Hit> kept;
            for (Hit& hit : hits) {
                const auto at = s.index->find(hit.id);
                if (!at || kept.size() >= request.k) continue;
                if (!request.filter.empty() && !request.filter.matches(s.index->metadata(*at))) continue;
                hit.position = *at;
                kept.push_back(std::move(hit));
            }
            hits = std::move(kept);
        }
    }
    return results;
}

Json Service::search(const SearchRequest& request) {
    const auto begin = Clock::now();
    const Running running(*this);
    const auto s = snapshot();
    const View& view = s->view(request.view);
    const MultiVectorSet queries = resolve(request.query, *s);
    const auto results = run(queries, request, *s, running.threads());
    metrics_.add("marginmerge_queries_total", queries.size());
    Json out{{"view", view.name}, {"generation", s->index->stats().generation}};
    const auto hits_json = [&](const std::vector<Hit>& hits) {
        Json list = Json::array();
        for (std::size_t i = 0; i < hits.size(); ++i) {
            Json hit{{"rank", i + 1}, {"id", hits[i].id}, {"score", short_number(hits[i].score)}};
            if (request.metadata) hit["metadata"] = metadata_json(*s->index, hits[i].position);
            list.push_back(std::move(hit));
        }
        return list;
    };
    if (request.query.batch) {
        out["results"] = Json::array();
        for (std::size_t q = 0; q < results.size(); ++q) {
            out["results"].push_back(
                {{"query", queries.id(q)}, {"tokens", queries.vectors_of(q)}, {"hits", hits_json(results[q])}});
        }
    } else {
        out["tokens"] = queries.vectors_of(0);
        out["hits"] = hits_json(results.at(0));
    }
    out["took_ms"] = short_number(static_cast<float>(milliseconds_since(begin)));
    return out;
}

Json Service::explain(const ExplainRequest& request) {
    const Running running(*this);
    const auto s = snapshot();
    const View& view = s->view(request.view);
    const MultiVectorSet queries = resolve(request.query, *s);
    const auto position = s->index->find(request.id);
    const auto at = view.index->find(request.id);
    if (!position || !at) throw ApiError(404, "page_not_found", "no page '" + request.id + "'");
    Json out = explain_page(view, *at, queries.vectors(0), request.similarities);
    borrow_places(out, *s);
    if (!request.query.texts.empty()) {
        const auto tokens = encode_text(request.query.texts[0]).tokens;
        for (std::size_t i = 0; i < tokens.size() && i < out["tokens"].size(); ++i)
            out["tokens"][i]["text"] = tokens[i];
    }
    out["metadata"] = metadata_json(*s->index, *position);
    add_asset_flags(out, *s->index, *position);
    return out;
}

void Service::add_asset_flags(Json& page, const Index& index, std::size_t position) const {
    const std::string id = index.id(position);
    const std::string_view metadata = index.metadata(position);
    page["image"] = assets_.image(id, metadata_text(metadata, "image")).has_value();
    page["text"] = assets_.text(id, metadata_text(metadata, "text_file")).has_value();
}

Json Service::encode(const QueryInput& query) {
    const auto s = snapshot();
    const MultiVectorSet queries = resolve(query, *s);
    Json out{{"dim", queries.dim()}, {"queries", Json::array()}};
    for (std::size_t q = 0; q < queries.size(); ++q) {
        out["queries"].push_back(
            {{"id", queries.id(q)}, {"tokens", queries.vectors_of(q)}, {"vectors", vectors_json(queries.vectors(q))}});
    }
    return out;
}

std::string Service::writable_path() const {
    if (!std::filesystem::is_directory(options_.sources.index)) {
        throw ApiError(
            409, "read_only",
            "this server serves a single file; make an index folder with 'marginmerge index add' to change pages");
    }
    return options_.sources.index.string();
}

namespace {

IndexWriter open_writer(const std::string& path) {
    IndexWriter::Options options;
    options.create = false;
    options.lock_timeout = 5;
    try {
        return IndexWriter(path, options);
    } catch (const Error& error) {
        if (error.code() == ErrorCode::io) throw ApiError(503, "locked", error.what());
        throw;
    }
}

}  // namespace

Json Service::add(const AddRequest& request) {
    const std::string path = writable_path();
    const std::lock_guard lock(write_mutex_);
    const auto s = snapshot();
    if (s->index->size() > 0 && request.pages.dim() != s->index->dim()) {
        throw ApiError(400, "dimension_mismatch",
                       "the index has " + std::to_string(s->index->dim()) + " dimensions, the pages " +
                           std::to_string(request.pages.dim()));
    }
    for (std::size_t i = 0; i < request.pages.size(); ++i) {
        if (request.pages.vectors_of(i) == 0)
            throw ApiError(400, "invalid_argument", "page '" + request.pages.id(i) + "' has no vectors");
        if (!request.replace && s->index->find(request.pages.id(i))) {
            throw ApiError(409, "conflict", "page '" + request.pages.id(i) + "' exists; say replace to overwrite it");
        }
    }
    AddOptions options;
    options.replace = request.replace;
    options.threads = options_.threads;
    const AddReport report = open_writer(path).add(request.pages, request.metadata, options);
    reload();
    metrics_.add("marginmerge_pages_added_total", report.added);
    return Json{{"added", report.added}, {"replaced", report.replaced}, {"generation", report.generation}};
}

Json Service::remove(const std::vector<std::string>& ids, bool must_exist) {
    const std::string path = writable_path();
    const std::lock_guard lock(write_mutex_);
    if (must_exist && !snapshot()->index->find(ids.at(0)))
        throw ApiError(404, "page_not_found", "no page '" + ids[0] + "'");
    DeleteOptions options;
    options.ignore_missing = true;
    const DeleteReport report = open_writer(path).remove(ids, options);
    reload();
    metrics_.add("marginmerge_pages_deleted_total", report.deleted);
    return Json{{"deleted", report.deleted}, {"missing", report.missing}, {"generation", report.generation}};
}

Json Service::page(const std::string& id) const {
    const auto s = snapshot();
    const auto at = s->index->find(id);
    if (!at) throw ApiError(404, "page_not_found", "no page '" + id + "'");
    Json out = page_json(*s->index, *at);
    add_clusters(out, *s->index, *at);
    borrow_places(out, *s);
    add_asset_flags(out, *s->index, *at);
    return out;
}

Json Service::pages(std::size_t offset, std::size_t limit, const Filter& filter) const {
    const auto s = snapshot();
    Json out{{"total", s->index->size()}, {"matching", 0}, {"offset", offset}, {"pages", Json::array()}};
    std::size_t matching = 0;
    for (std::size_t i = 0; i < s->index->size(); ++i) {
        if (!filter.empty() && !filter.matches(s->index->metadata(i))) continue;
        if (matching >= offset && out["pages"].size() < limit) out["pages"].push_back(page_json(*s->index, i));
        ++matching;
        if (filter.empty() && out["pages"].size() == limit) break;
    }
    out["matching"] = filter.empty() ? s->index->size() : matching;
    return out;
}

Json Service::examples(std::size_t offset, std::size_t limit) const {
    const auto s = snapshot();
    Json out{{"total", s->examples.size()}, {"offset", offset}, {"examples", Json::array()}};
    for (std::size_t i = offset; i < s->examples.size() && out["examples"].size() < limit; ++i) {
        Json item{{"id", s->examples.id(i)}, {"tokens", s->examples.vectors_of(i)}};
        if (!s->example_texts.empty()) item["text"] = s->example_texts[i];
        out["examples"].push_back(std::move(item));
    }
    return out;
}

Json Service::stats() const {
    const auto s = snapshot();
    const IndexStats stats = s->index->stats();
    Json out{{"name", s->index->path().filename().string()},
             {"version", version()},
             {"kernel", kernel_name()},
             {"pages", stats.pages},
             {"deleted", stats.deleted},
             {"dim", stats.dim},
             {"code", to_string(stats.code)},
             {"vectors", stats.vectors},
             {"source_vectors", stats.source_vectors},
             {"vector_bytes", stats.vector_bytes},
             {"bytes", stats.bytes},
             {"full_bytes", stats.full_bytes},
             {"segments", stats.segments},
             {"generation", stats.generation},
             {"reloads", s->number - 1},
             {"writable", std::filesystem::is_directory(options_.sources.index)},
             {"encoder", options_.encoder ? Json(options_.encoder->description()) : Json(nullptr)},
             {"assets", assets_.available()},
             {"examples", s->examples.size()},
             {"views", Json::array()}};
    for (const View& view : s->views) out["views"].push_back(view_json(view));
    out["limits"] = {{"k", options_.limits.k},
                     {"batch", options_.limits.batch},
                     {"query_vectors", options_.limits.query_vectors},
                     {"body_bytes", options_.limits.body_bytes},
                     {"json_bytes", options_.limits.json_bytes}};
    const std::lock_guard lock(mutex_);
    out["reload_error"] = last_reload_error_.empty() ? Json(nullptr) : Json(last_reload_error_);
    return out;
}

Json Service::overview() const {
    std::shared_ptr<const Overview> made;
    {
        const std::lock_guard lock(mutex_);
        made = overview_;
    }
    if (!made) return Json{{"ready", false}};
    return overview_json(*made);
}

Asset Service::asset(const std::string& id, bool image) const {
    const auto s = snapshot();
    const auto at = s->index->find(id);
    if (!at) throw ApiError(404, "page_not_found", "no page '" + id + "'");
    const std::string named = metadata_text(s->index->metadata(*at), image ? "image" : "text_file");
    const auto found = image ? assets_.image(id, named) : assets_.text(id, named);
    if (!found)
        throw ApiError(404, "asset_not_found",
                       std::string("no ") + (image ? "image" : "text") + " for page '" + id + "'");
    return *found;
}

}  // namespace marginmerge::server
