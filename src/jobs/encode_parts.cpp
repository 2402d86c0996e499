#include "jobs/encode_parts.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <nlohmann/json.hpp>

#include "core/fail.h"
#include "io/folders.h"
#include "io/multi_vector_file.h"

namespace marginmerge {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using nlohmann::ordered_json;

constexpr auto replace = json::error_handler_t::replace;

ordered_json to_json(const PageRecord& r) {
    ordered_json line = {{"id", r.id},       {"source", r.source}, {"page", r.page},
                         {"title", r.title}, {"width", r.width},   {"height", r.height}};
    if (!r.image.empty()) line["image"] = r.image;
    if (!r.text.empty()) line["text_file"] = r.text;
    return line;
}

PageRecord from_json(const json& j) {
    PageRecord r;
    r.id = j.at("id").get<std::string>();
    r.source = j.at("source").get<std::string>();
    r.page = j.at("page").get<std::size_t>();
    r.title = j.at("title").get<std::string>();
    r.width = j.at("width").get<double>();
    r.height = j.at("height").get<double>();
    r.image = j.value("image", "");
    r.text = j.value("text_file", "");
    return r;
}

}  // namespace

std::string to_json_line(const PageRecord& record) { return to_json(record).dump(-1, ' ', false, replace); }

PartStore::PartStore(fs::path folder, std::string fingerprint, bool fresh)
    : folder_(std::move(folder)), fingerprint_(std::move(fingerprint)) {
    std::error_code ignored;
    if (fresh) fs::remove_all(folder_, ignored);
    make_folder(folder_);
}

fs::path PartStore::path_of(const WorkUnit& unit) const {
    std::string key = fingerprint_;
    for (const auto& item : unit) {
        std::error_code ignored;
        const auto size = fs::file_size(item.file.path, ignored);
        const auto time = fs::last_write_time(item.file.path, ignored).time_since_epoch().count();
        key += fmt::format("\n{}\t{}\t{}\t{}\t{}\t{}", item.file.path.string(), item.file.name, size, time, item.first,
                           item.count);
    }
    return folder_ / fmt::format("{:016x}.safetensors", XXH3_64bits(key.data(), key.size()));
}

bool PartStore::has(const WorkUnit& unit) const {
    std::error_code ignored;
    return fs::exists(path_of(unit), ignored);
}

void PartStore::put(const WorkUnit& unit, const UnitResult& result, std::size_t dim, ScalarType type) const {
    MultiVectorBuilder builder(dim);
    ordered_json pages = ordered_json::array(), skipped = ordered_json::array();
    for (std::size_t i = 0; i < result.pages.size(); ++i) {
        const EncodedPage& page = result.vectors[i];
        builder.add(result.pages[i].id, page.vectors, page.grid, page.boxes);
        pages.push_back(to_json(result.pages[i]));
    }
    for (const auto& s : result.skipped)
        skipped.push_back({{"source", s.source}, {"page", s.page}, {"reason", s.reason}});
    write_multi_vectors(
        path_of(unit), builder.finish(), type,
        {{"pages", pages.dump(-1, ' ', false, replace)}, {"skipped", skipped.dump(-1, ' ', false, replace)}});
}

PartStore::Part PartStore::get(const WorkUnit& unit) const {
    const fs::path path = path_of(unit);
    Part part;
    part.set = read_multi_vectors(path);
    try {
        for (const auto& line : json::parse(part.set.metadata().at("pages"))) part.pages.push_back(from_json(line));
        for (const auto& s : json::parse(part.set.metadata().at("skipped")))
            part.skipped.push_back({s.at("source"), s.at("page"), s.at("reason")});
    } catch (const std::exception& error) {
        fail(ErrorCode::corrupt, "{}: left by an interrupted run and unreadable ({}); use --fresh", path.string(),
             error.what());
    }
    if (part.pages.size() != part.set.size())
        fail(ErrorCode::corrupt, "{}: expected {} pages, found {}; use --fresh", path.string(), part.set.size(),
             part.pages.size());
    return part;
}

void PartStore::remove() const {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
}

}  // namespace marginmerge
