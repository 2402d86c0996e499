#include "service_json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <numeric>

#include "kernels/convert.h"
#include "kernels/maxsim.h"
#include "kernels/products.h"

namespace marginmerge::server {

using Json = nlohmann::ordered_json;

double short_number(float value) {
    if (!std::isfinite(value)) return 0;
    char text[32];
    const auto end = std::to_chars(text, text + sizeof text - 1, value).ptr;
    *end = '\0';
    return std::strtod(text, nullptr);
}

Json metadata_json(const Index& index, std::size_t position) {
    const std::string_view text = index.metadata(position);
    if (text.empty()) return Json::object();
    Json value = Json::parse(text, nullptr, false);
    return value.is_object() ? value : Json::object();
}

std::string metadata_text(std::string_view metadata, const char* field) {
    if (metadata.find(field) == metadata.npos) return {};
    const auto value = nlohmann::json::parse(metadata, nullptr, false);
    if (!value.is_object()) return {};
    const auto it = value.find(field);
    return it != value.end() && it->is_string() ? it->get<std::string>() : std::string();
}

Json page_json(const Index& index, std::size_t position) {
    const PatchGrid grid = index.grid(position);
    return Json{{"id", index.id(position)},
                {"vectors", index.vectors_of(position)},
                {"source_vectors", index.source_vectors_of(position)},
                {"grid", grid.known() ? Json{grid.columns, grid.rows} : Json(nullptr)},
                {"metadata", metadata_json(index, position)}};
}

Json view_json(const View& view) {
    const char* kinds[] = {"stored", "prefix", "variant", "full"};
    return Json{{"name", view.name},
                {"kind", kinds[static_cast<int>(view.kind)]},
                {"share", view.share},
                {"vectors", view.vectors},
                {"vector_bytes", view.vector_bytes}};
}

Json vectors_json(VectorsView vectors) {
    const Matrix m = to_float(vectors);
    Json rows = Json::array();
    for (std::size_t i = 0; i < m.rows(); ++i) {
        Json row = Json::array();
        for (std::size_t j = 0; j < m.cols(); ++j) row.push_back(short_number(m(i, j)));
        rows.push_back(std::move(row));
    }
    return rows;
}

Json overview_json(const Overview& overview) {
    Json out{{"ready", true}, {"sampled", overview.sampled}, {"basis", overview.basis}};
    std::vector<double> values;
    for (const PageSummary& page : overview.pages) values.push_back(page.redundancy);
    std::sort(values.begin(), values.end());
    const auto quantile = [&](double q) {
        return values.empty() ? 0.0 : values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1))];
    };
    const double sum = std::accumulate(values.begin(), values.end(), 0.0);
    out["redundancy"] = {{"mean", values.empty() ? 0.0 : sum / static_cast<double>(values.size())},
                         {"minimum", quantile(0)},
                         {"median", quantile(0.5)},
                         {"maximum", quantile(1)}};
    out["fields"] = Json::array();
    for (const FieldSummary& field : overview.fields) {
        Json item{{"name", field.name}, {"pages", field.pages}, {"type", field.numeric ? "number" : "text"}};
        if (field.numeric) {
            item["minimum"] = field.minimum;
            item["maximum"] = field.maximum;
        } else {
            item["values"] = Json::array();
            for (const auto& [value, count] : field.values)
                item["values"].push_back({{"value", value}, {"pages", count}});
            item["more_values"] = field.more_values;
        }
        out["fields"].push_back(std::move(item));
    }
    out["pages"] = Json::array();
    for (const PageSummary& page : overview.pages) {
        out["pages"].push_back({{"id", page.id},
                                {"vectors", page.vectors},
                                {"source_vectors", page.source_vectors},
                                {"redundancy", short_number(static_cast<float>(page.redundancy))}});
    }
    return out;
}

namespace {

// Which patches the regions belong to: the originals' when they are kept, else those of pages that
// were never compressed. Null when they are not known.
Json boxes_json(std::span<const float> boxes, std::size_t patches) {
    if (boxes.empty() || boxes.size() != 4 * patches) return nullptr;
    Json out = Json::array();
    for (std::size_t i = 0; i < patches; ++i) {
        Json box = Json::array();
        for (std::size_t j = 0; j < 4; ++j) box.push_back(short_number(boxes[4 * i + j]));
        out.push_back(std::move(box));
    }
    return out;
}

std::vector<std::int32_t> owner_of(const Index& index, std::size_t position) {
    const auto given = index.owner(position);
    if (!given.empty()) return {given.begin(), given.end()};
    std::vector<std::int32_t> self(index.vectors_of(position));  // never compressed: every vector stands for itself
    std::iota(self.begin(), self.end(), 0);
    return self;
}

}  // namespace

void add_clusters(Json& page, const Index& index, std::size_t position) {
    const std::vector<std::int32_t> owner = owner_of(index, position);
    page["boxes"] = boxes_json(index.has_full() ? index.full_boxes(position) : index.boxes(position), owner.size());
    page["owner"] = owner;
}

void borrow_places(Json& page, const Snapshot& snapshot) {
    if (!page["boxes"].is_null() || !page["grid"].is_null()) return;
    for (const View& view : snapshot.views) {
        if (view.kind != View::Kind::full || view.index == snapshot.index) continue;
        const auto at = view.index->find(page["id"].get<std::string>());
        if (!at) continue;
        page["boxes"] = boxes_json(view.index->boxes(*at), page["owner"].size());
        const PatchGrid grid = view.index->grid(*at);
        if (grid.known()) page["grid"] = Json{grid.columns, grid.rows};
    }
}

Json explain_page(const View& view, std::size_t position, VectorsView query, bool similarities) {
    const Index& index = *view.index;
    Matrix stored = view.options.full ? to_float(index.full_vectors(position)) : index.vectors(position);
    std::vector<std::int32_t> owner;
    if (view.options.full) {
        owner.resize(stored.rows());
        std::iota(owner.begin(), owner.end(), 0);
    } else {
        owner = owner_of(index, position);
    }
    if (view.options.keep < 1) {
        const auto wanted = static_cast<std::size_t>(std::ceil(view.options.keep * static_cast<double>(owner.size())));
        const std::size_t kept = std::min(std::max<std::size_t>(1, wanted), stored.rows());
        stored = Matrix(stored.view().middle_rows(0, kept));
        for (auto& o : owner) o = o < static_cast<std::int32_t>(kept) ? o : -1;
    }
    const PreparedQuery prepared(query);
    std::vector<float> best(query.rows);
    std::vector<std::int32_t> winner(query.rows);
    maxsim_winners(prepared, ConstMatrix(stored.view()), best, winner);

    const PatchGrid grid = index.grid(position);
    Json out{{"id", index.id(position)}, {"view", view.name}};
    float score = 0;
    for (const float b : best) score += b;
    out["score"] = short_number(score);
    out["vectors"] = stored.rows();
    out["source_vectors"] = owner.size();
    out["grid"] = grid.known() ? Json{grid.columns, grid.rows} : Json(nullptr);
    out["owner"] = owner;
    out["boxes"] = boxes_json(
        view.options.full || index.has_full() ? index.full_boxes(position) : index.boxes(position), owner.size());
    out["tokens"] = Json::array();
    for (std::size_t t = 0; t < query.rows; ++t) {
        Json patches = Json::array();
        for (std::size_t p = 0; p < owner.size(); ++p) {
            if (owner[p] == winner[t] && winner[t] >= 0) patches.push_back(p);
        }
        out["tokens"].push_back({{"token", t},
                                 {"representative", winner[t]},
                                 {"score", short_number(best[t])},
                                 {"patches", std::move(patches)}});
    }
    if (similarities) {
        Matrix all(query.rows, stored.rows());
        product(to_float(query), stored, all);
        out["similarities"] = Json::array();
        for (std::size_t t = 0; t < query.rows; ++t) {
            Json row = Json::array();
            for (std::size_t r = 0; r < stored.rows(); ++r) row.push_back(std::round(all(t, r) * 1e4) / 1e4);
            out["similarities"].push_back(std::move(row));
        }
    }
    return out;
}

}  // namespace marginmerge::server
