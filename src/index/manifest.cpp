#include "index/manifest.h"

#include <fmt/core.h>
#include <xxhash.h>

#include "core/fail.h"
#include "index/limited_json.h"
#include "io/mapped_file.h"

namespace marginmerge {

namespace {

using nlohmann::json;

// Larger than any manifest of a sane number of segments; compact long before.
constexpr std::size_t max_segments = 100000;

class Reader {
public:
    Reader(const json& object, std::string where) : object_(object), where_(std::move(where)) {
        if (!object.is_object()) fail(ErrorCode::corrupt, "{}: expected an object", where_);
    }

    const json* find(const char* name) const {
        const auto found = object_.find(name);
        return found == object_.end() || found->is_null() ? nullptr : &*found;
    }
    std::uint64_t number(const char* name) const {
        const json* v = find(name);
        if (v == nullptr || !v->is_number_unsigned())
            fail(ErrorCode::corrupt, "{}: {}: expected a non-negative integer, found {}", where_, name,
                 v == nullptr ? "none" : v->dump());
        return v->get<std::uint64_t>();
    }
    std::string text(const char* name) const {
        const json* v = find(name);
        if (v == nullptr || !v->is_string()) fail(ErrorCode::corrupt, "{}: {}: expected a string", where_, name);
        return v->get<std::string>();
    }
    std::optional<FileEntry> file(const char* name) const {
        const json* v = find(name);
        if (v == nullptr) return std::nullopt;
        const Reader r(*v, where_ + ": " + name);
        FileEntry entry{r.text("file"), r.number("bytes"), r.checksum("xxh64")};
        // A manifest must not reach outside its own folder.
        if (entry.file.empty() || entry.file.front() == '.' ||
            entry.file.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-._") != std::string::npos)
            fail(ErrorCode::corrupt, "{}: {}: expected a plain file name, found '{}'", where_, name, entry.file);
        return entry;
    }
    std::uint64_t checksum(const char* name) const {
        const std::string digits = text(name);
        if (digits.size() != 16 || digits.find_first_not_of("0123456789abcdef") != std::string::npos)
            fail(ErrorCode::corrupt, "{}: {}: expected 16 hexadecimal digits, found '{}'", where_, name, digits);
        return std::stoull(digits, nullptr, 16);
    }

private:
    const json& object_;
    std::string where_;
};

SegmentEntry parse_segment(const json& value, const std::string& where) {
    const Reader r(value, where);
    SegmentEntry s;
    const auto pages = r.file("pages");
    if (!pages) fail(ErrorCode::corrupt, "{}: pages: expected a file", where);
    s.pages = *pages;
    s.count = r.number("count");
    s.deleted = r.file("deleted");
    s.deleted_count = r.number("deleted_count");
    s.full = r.file("full");
    if (s.deleted_count > s.count || (s.deleted_count > 0) != s.deleted.has_value())
        fail(ErrorCode::corrupt, "{}: deleted_count: expected at most {} and a file when positive, found {}", where,
             s.count, s.deleted_count);
    return s;
}

json to_json(const FileEntry& f) {
    return {{"file", f.file}, {"bytes", f.bytes}, {"xxh64", checksum_text(f.checksum)}};
}

}  // namespace

std::vector<FileEntry> Manifest::files() const {
    std::vector<FileEntry> all;
    for (const auto& s : segments) {
        all.push_back(s.pages);
        if (s.deleted) all.push_back(*s.deleted);
        if (s.full) all.push_back(*s.full);
    }
    if (queries) all.push_back(*queries);
    return all;
}

Manifest parse_manifest(std::string_view text, const std::string& source) {
    json value = parse_limited_json(text, source, 8);
    const Reader r(value, source);
    if (r.text("schema") != manifest_schema)
        fail(ErrorCode::unsupported, "{}: schema: expected {}, found {}", source, manifest_schema, r.text("schema"));
    if (r.text("version") != manifest_version)
        fail(ErrorCode::unsupported, "{}: version: expected {}, found {}", source, manifest_version, r.text("version"));
    const std::uint64_t expected = r.checksum("xxh64");
    json rest = value;
    rest.erase("xxh64");
    const std::uint64_t found = checksum_bytes(rest.dump(-1, ' ', false, json::error_handler_t::replace));
    if (expected != found)
        fail(ErrorCode::corrupt, "{}: xxh64: expected {}, found {}", source, checksum_text(expected),
             checksum_text(found));
    Manifest m;
    m.generation = r.number("generation");
    m.dim = r.number("dim");
    try {
        m.code = parse_vector_code(r.text("code"));
    } catch (const Error& error) {
        fail(ErrorCode::unsupported, "{}: {}", source, error.what());
    }
    m.queries = r.file("queries");
    const json* segments = r.find("segments");
    if (segments == nullptr || !segments->is_array() || segments->size() > max_segments)
        fail(ErrorCode::corrupt, "{}: segments: expected an array of at most {}", source, max_segments);
    for (std::size_t i = 0; i < segments->size(); ++i)
        m.segments.push_back(parse_segment((*segments)[i], fmt::format("{}: segment {}", source, i)));
    return m;
}

std::string manifest_text(const Manifest& m) {
    json segments = json::array();
    for (const auto& s : m.segments) {
        json entry = {{"pages", to_json(s.pages)}, {"count", s.count}, {"deleted_count", s.deleted_count}};
        if (s.deleted) entry["deleted"] = to_json(*s.deleted);
        if (s.full) entry["full"] = to_json(*s.full);
        segments.push_back(std::move(entry));
    }
    json value = {{"schema", manifest_schema},  {"version", manifest_version},
                  {"generation", m.generation}, {"dim", m.dim},
                  {"code", to_string(m.code)},  {"segments", std::move(segments)}};
    if (m.queries) value["queries"] = to_json(*m.queries);
    // The checksum is over the compact dump with sorted keys, so that reformatting the file by hand
    // without changing a value keeps it valid.
    value["xxh64"] = checksum_text(checksum_bytes(value.dump()));
    return value.dump(1) + "\n";
}

std::uint64_t checksum_bytes(std::string_view bytes) { return XXH64(bytes.data(), bytes.size(), 0); }

std::uint64_t checksum_file(const std::filesystem::path& path) {
    const MappedFile file(path);
    return XXH64(file.bytes().data(), file.bytes().size(), 0);
}

std::string checksum_text(std::uint64_t checksum) { return fmt::format("{:016x}", checksum); }

}  // namespace marginmerge
