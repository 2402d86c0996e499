#include "snapshot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "api_error.h"
#include "core/fail.h"
#include "io/multi_vector_file.h"

namespace marginmerge::server {

namespace {

double share_of(const IndexStats& stats) {
    return stats.source_vectors > 0 ? static_cast<double>(stats.vectors) / static_cast<double>(stats.source_vectors)
                                    : 1;
}

std::string percent(double share) {
    const double p = 100 * share;
    const double whole = std::round(p);
    // Rounding up of each page's count makes "5%" store a little more than that.
    return whole >= 1 && std::abs(p - whole) < 0.06 * whole + 0.3 ? fmt::format("{:.0f}%", whole)
                                                                  : fmt::format("{:.1f}%", p);
}

std::string free_name(const std::vector<View>& views, std::string name, const std::string& instead) {
    const bool taken = std::any_of(views.begin(), views.end(), [&](const View& v) { return v.name == name; });
    return taken ? instead : name;
}

std::shared_ptr<const Index> open_again(const std::filesystem::path& path,
                                        const std::shared_ptr<const Snapshot>& previous) {
    if (previous) {
        for (const View& view : previous->views) {
            if (view.index->path() == path) return Index::reopen(view.index);
        }
    }
    return Index::open(path);
}

void add_prefix_views(Snapshot& s, const IndexStats& stats) {
    const double stored = share_of(stats);
    if (stored >= 0.999) return;  // never compressed: its order of vectors means nothing
    for (const double keep : {0.02, 0.05, 0.1, 0.2, 0.5}) {
        if (keep > 0.93 * stored) break;
        View view;
        view.kind = View::Kind::prefix;
        view.share = keep;
        view.name = percent(keep);
        view.index = s.index;
        view.options.keep = keep;
        for (std::size_t i = 0; i < s.index->size(); ++i) {
            const auto wanted =
                static_cast<std::size_t>(std::ceil(keep * static_cast<double>(s.index->source_vectors_of(i))));
            view.vectors += std::min(std::max<std::size_t>(1, wanted), s.index->vectors_of(i));
        }
        view.vector_bytes = stats.vectors > 0 ? view.vectors * (stats.vector_bytes / stats.vectors) : 0;
        s.views.push_back(std::move(view));
    }
}

}  // namespace

const View& Snapshot::view(const std::string& name) const {
    for (const View& v : views) {
        if (v.name == (name.empty() ? "index" : name)) return v;
    }
    throw ApiError(404, "view_not_found", "no view '" + name + "'; GET /v1/stats lists them");
}

std::shared_ptr<const Snapshot> open_snapshot(const SnapshotSources& sources,
                                              const std::shared_ptr<const Snapshot>& previous) {
    auto s = std::make_shared<Snapshot>();
    s->number = previous ? previous->number + 1 : 1;
    s->index = previous ? Index::reopen(previous->index) : Index::open(sources.index);
    const IndexStats stats = s->index->stats();

    View stored;
    stored.name = "index";
    stored.share = share_of(stats);
    stored.vectors = stats.vectors;
    stored.vector_bytes = stats.vector_bytes;
    stored.index = s->index;
    s->views.push_back(stored);
    if (sources.variants.empty()) add_prefix_views(*s, stats);
    for (const auto& path : sources.variants) {
        View view;
        view.kind = View::Kind::variant;
        view.index = open_again(path, previous);
        const IndexStats other = view.index->stats();
        if (other.dim != stats.dim && stats.pages > 0) {
            fail(ErrorCode::invalid_argument, "--variants {}: expected {} dimensions as in the index, found {}",
                 path.string(), stats.dim, other.dim);
        }
        view.share = share_of(other);
        view.vectors = other.vectors;
        view.vector_bytes = other.vector_bytes;
        view.name = free_name(s->views, percent(view.share), path.stem().string());
        s->views.push_back(std::move(view));
    }
    if (!sources.full.empty() || s->index->has_full()) {
        View view;
        view.kind = View::Kind::full;
        view.name = "full";
        if (!sources.full.empty()) {
            view.index = open_again(sources.full, previous);
            const IndexStats other = view.index->stats();
            if (other.dim != stats.dim && stats.pages > 0) {
                fail(ErrorCode::invalid_argument, "--full {}: expected {} dimensions as in the index, found {}",
                     sources.full.string(), stats.dim, other.dim);
            }
            view.vectors = other.vectors;
            view.vector_bytes = other.vector_bytes;
        } else {
            view.index = s->index;
            view.options.full = true;
            for (std::size_t i = 0; i < s->index->size(); ++i) {
                const VectorsView v = s->index->full_vectors(i);
                view.vectors += v.rows;
                view.vector_bytes += v.bytes();
            }
        }
        s->views.push_back(std::move(view));
    }
    std::stable_sort(s->views.begin(), s->views.end(), [](const View& a, const View& b) { return a.share < b.share; });

    s->examples = sources.queries.empty() ? s->index->example_queries() : read_multi_vectors(sources.queries);
    if (s->examples.size() > 0 && s->examples.dim() != stats.dim && stats.pages > 0) {
        fail(ErrorCode::invalid_argument, "{}: expected queries of {} dimensions as in the index, found {}",
             sources.queries.string(), stats.dim, s->examples.dim());
    }
    if (const auto text = s->examples.metadata().find("texts"); text != s->examples.metadata().end()) {
        const auto list = nlohmann::json::parse(text->second, nullptr, false);
        if (list.is_array() && list.size() == s->examples.size()) {
            for (const auto& item : list)
                s->example_texts.push_back(item.is_string() ? item.get<std::string>() : std::string());
        }
    }
    return s;
}

}  // namespace marginmerge::server
