#include "bodies.h"

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "api_error.h"

namespace marginmerge::server {

using nlohmann::json;

namespace {

[[noreturn]] void bad_field(const std::string& field, const std::string& what) {
    throw ApiError(400, "invalid_argument", field + ": " + what);
}

[[noreturn]] void past_limit(const std::string& field, std::size_t limit) {
    throw ApiError(400, "limit_exceeded", field + ": at most " + std::to_string(limit));
}

json parse_object(std::string_view body, const Limits& limits) {
    if (body.size() > limits.json_bytes) {
        throw ApiError(
            413, "body_too_large",
            "a JSON body may have " + std::to_string(limits.json_bytes) + " bytes; send vectors as safetensors or npy");
    }
    json value;
    try {
        value = json::parse(body);
    } catch (const json::parse_error& error) {
        throw ApiError(400, "invalid_json", "not valid JSON at byte " + std::to_string(error.byte));
    } catch (const json::exception&) {
        throw ApiError(400, "invalid_json", "not valid JSON");
    }
    if (!value.is_object()) throw ApiError(400, "invalid_json", "expected a JSON object");
    return value;
}

void only_fields(const json& object, std::initializer_list<std::string_view> known) {
    for (const auto& [name, value] : object.items()) {
        if (std::find(known.begin(), known.end(), name) == known.end()) bad_field(name, "unknown field");
    }
}

std::size_t count_field(const json& object, const char* name, std::size_t fallback, std::size_t limit) {
    const auto it = object.find(name);
    if (it == object.end() || it->is_null()) return fallback;
    if (!it->is_number_integer() || *it < 0) bad_field(name, "expected a whole number, zero or more");
    const auto value = it->get<std::uint64_t>();
    if (value > limit) past_limit(name, limit);
    return static_cast<std::size_t>(value);
}

bool flag_field(const json& object, const char* name, bool fallback) {
    const auto it = object.find(name);
    if (it == object.end()) return fallback;
    if (!it->is_boolean()) bad_field(name, "expected true or false");
    return it->get<bool>();
}

std::string text_field(const json& object, const char* name, const std::string& fallback = {}) {
    const auto it = object.find(name);
    if (it == object.end()) return fallback;
    if (!it->is_string()) bad_field(name, "expected a string");
    return it->get<std::string>();
}

Matrix matrix_from(const json& value, const std::string& field, std::size_t max_rows) {
    if (!value.is_array() || value.empty()) bad_field(field, "expected a list of vectors, each a list of numbers");
    if (value.size() > max_rows) past_limit(field + " (vectors)", max_rows);
    if (!value[0].is_array() || value[0].empty())
        bad_field(field, "expected a list of vectors, each a list of numbers");
    const std::size_t dim = value[0].size();
    for (const json& row : value) {
        if (!row.is_array() || row.size() != dim) bad_field(field, "vectors of one query must have the same length");
    }
    Matrix out(value.size(), dim);
    float* to = out.data();
    for (const json& row : value) {
        for (const json& number : row) {
            if (!number.is_number()) bad_field(field, "expected numbers");
            const float f = static_cast<float>(number.get<double>());
            if (!std::isfinite(f)) bad_field(field, "a number is out of range");
            *to++ = f;
        }
    }
    return out;
}

std::vector<std::string> text_list(const json& value, const std::string& field, const Limits& limits) {
    if (!value.is_array() || value.empty()) bad_field(field, "expected a list of strings");
    if (value.size() > limits.batch) past_limit(field, limits.batch);
    std::vector<std::string> out;
    for (const json& item : value) {
        if (!item.is_string()) bad_field(field, "expected strings");
        out.push_back(item.get<std::string>());
    }
    return out;
}

QueryInput query_from(const json& object, const Limits& limits) {
    QueryInput query;
    int kinds = 0;
    const auto given = [&](const char* name) {
        if (!object.contains(name)) return false;
        ++kinds;
        return true;
    };
    if (given("vectors")) query.vectors.push_back(matrix_from(object["vectors"], "vectors", limits.query_vectors));
    if (given("queries")) {
        const json& list = object["queries"];
        if (!list.is_array() || list.empty())
            bad_field("queries", "expected a list of queries, each a list of vectors");
        if (list.size() > limits.batch) past_limit("queries", limits.batch);
        for (const json& item : list) query.vectors.push_back(matrix_from(item, "queries", limits.query_vectors));
        query.batch = true;
    }
    if (given("text")) query.texts.push_back(text_field(object, "text"));
    if (given("texts")) {
        query.texts = text_list(object["texts"], "texts", limits);
        query.batch = true;
    }
    if (given("example")) query.examples.push_back(text_field(object, "example"));
    if (given("examples")) {
        query.examples = text_list(object["examples"], "examples", limits);
        query.batch = true;
    }
    if (kinds != 1) bad_field("query", "give exactly one of vectors, queries, text, texts, example, examples");
    for (const auto& text : query.texts) {
        if (text.size() > limits.text_bytes) past_limit("text (bytes)", limits.text_bytes);
        if (text.find_first_not_of(" \t\r\n") == text.npos) bad_field("text", "empty");
    }
    return query;
}

Filter filter_from(const json& value) {
    if (value.is_null()) return {};
    if (value.is_string()) return Filter::parse(value.get<std::string>());
    if (value.is_object()) return Filter::parse_json(value.dump());
    if (value.is_array() && value.size() <= 16) {
        Filter all;
        for (const json& part : value) {
            if (part.is_array()) bad_field("filter", "expected expressions or objects in the list");
            const Filter next = filter_from(part);
            all = all.empty() ? next : next.empty() ? all : all & next;
        }
        return all;
    }
    bad_field("filter", "expected an expression, an object or a list of at most 16 of them");
}

// Options of a binary request stand in the query string; make them the same JSON.
json object_from(const Parameters& parameters) {
    json object = json::object();
    for (const auto& [name, value] : parameters) {
        std::uint64_t number = 0;
        const auto [stop, error] = std::from_chars(value.data(), value.data() + value.size(), number);
        const bool whole = error == std::errc() && stop == value.data() + value.size() && !value.empty();
        const bool textual = name == "filter" || name == "view" || name == "id" || name == "first_pass";
        if (value == "true" || value == "false") {
            object[name] = value == "true";
        } else if (whole && !textual) {
            object[name] = number;
        } else if (name == "filter" && !value.empty() && value.front() == '{') {
            object[name] = json::parse(value, nullptr, false);
        } else {
            object[name] = value;
        }
    }
    return object;
}

QueryInput binary_query(BodyKind kind, std::string_view body, const Limits& limits) {
    return kind == BodyKind::npy ? parse_npy_queries(body, limits) : parse_safetensors_queries(body, limits);
}

}  // namespace

BodyKind body_kind(std::string_view content_type, std::string_view body) {
    std::string type(content_type.substr(0, content_type.find(';')));
    for (char& c : type) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    while (!type.empty() && type.back() == ' ') type.pop_back();
    if (type == "application/json") return BodyKind::json;
    if (type == "application/x-npy") return BodyKind::npy;
    if (type == "application/vnd.safetensors" || type == "application/x-safetensors") return BodyKind::safetensors;
    if (type == "application/octet-stream")
        return body.substr(0, 6) == "\x93NUMPY" ? BodyKind::npy : BodyKind::safetensors;
    throw ApiError(415, "unsupported_media_type",
                   "send application/json, or application/octet-stream with a safetensors or npy file");
}

SearchRequest parse_search(BodyKind kind, std::string_view body, const Parameters& parameters, const Limits& limits) {
    SearchRequest request;
    json object;
    if (kind == BodyKind::json) {
        object = parse_object(body, limits);
        only_fields(object, {"vectors", "queries", "text", "texts", "example", "examples", "k", "filter", "view",
                             "first_pass", "candidates", "prefix", "rerank", "metadata"});
        request.query = query_from(object, limits);
    } else {
        object = object_from(parameters);
        only_fields(object, {"k", "filter", "view", "first_pass", "candidates", "prefix", "rerank", "metadata"});
        request.query = binary_query(kind, body, limits);
    }
    request.k = count_field(object, "k", 10, limits.k);
    if (request.k == 0) bad_field("k", "expected at least 1");
    if (object.contains("filter")) request.filter = filter_from(object["filter"]);
    request.view = text_field(object, "view");
    if (object.contains("first_pass")) request.first_pass = parse_first_pass(text_field(object, "first_pass"));
    request.candidates = count_field(object, "candidates", 0, 1000000);
    request.prefix = count_field(object, "prefix", 0, 10000);
    request.rerank = count_field(object, "rerank", 0, 10000);
    request.metadata = flag_field(object, "metadata", true);
    return request;
}

ExplainRequest parse_explain(BodyKind kind, std::string_view body, const Parameters& parameters, const Limits& limits) {
    ExplainRequest request;
    json object;
    if (kind == BodyKind::json) {
        object = parse_object(body, limits);
        only_fields(object, {"vectors", "text", "example", "id", "view", "similarities"});
        request.query = query_from(object, limits);
    } else {
        object = object_from(parameters);
        only_fields(object, {"id", "view", "similarities"});
        request.query = binary_query(kind, body, limits);
    }
    if (request.query.size() != 1)
        bad_field("query", "expected one query, found " + std::to_string(request.query.size()));
    if (!object.contains("id")) bad_field("id", "which page to explain is missing");
    request.id = text_field(object, "id");
    request.view = text_field(object, "view");
    request.similarities = flag_field(object, "similarities", false);
    return request;
}

AddRequest parse_add(BodyKind kind, std::string_view body, const Parameters& parameters, const Limits& limits) {
    AddRequest request;
    if (kind == BodyKind::npy)
        throw ApiError(415, "unsupported_media_type", "send pages as JSON or as a multi-vector safetensors file");
    if (kind == BodyKind::safetensors) {
        const json object = object_from(parameters);
        only_fields(object, {"replace"});
        request.replace = flag_field(object, "replace", false);
        request.pages = parse_multi_vectors(body);
        if (request.pages.size() == 0) throw ApiError(400, "invalid_body", "no pages");
        if (request.pages.size() > limits.pages) past_limit("pages", limits.pages);
        const auto text = request.pages.metadata().find("page_metadata");
        if (text == request.pages.metadata().end()) return request;
        const json all = json::parse(text->second, nullptr, false);
        if (!all.is_object())
            throw ApiError(400, "invalid_body", "page_metadata: expected a JSON object of id to object");
        request.metadata.assign(request.pages.size(), "");
        for (const auto& [id, value] : all.items()) {
            const auto position = request.pages.find(id);
            if (!position) throw ApiError(400, "invalid_body", "page_metadata: no page '" + id + "' in this file");
            if (!value.is_object())
                throw ApiError(400, "invalid_body", "page_metadata: expected an object for each page");
            request.metadata[*position] = value.dump();
        }
        return request;
    }
    const json object = parse_object(body, limits);
    only_fields(object, {"pages", "replace"});
    request.replace = flag_field(object, "replace", false);
    const auto pages = object.find("pages");
    if (pages == object.end() || !pages->is_array() || pages->empty()) bad_field("pages", "expected a list of pages");
    if (pages->size() > limits.pages) past_limit("pages", limits.pages);
    std::optional<MultiVectorBuilder> builder;
    std::size_t dim = 0;
    for (const json& page : *pages) {
        if (!page.is_object()) bad_field("pages", "expected objects");
        only_fields(page, {"id", "vectors", "grid", "metadata"});
        const std::string id = text_field(page, "id");
        if (id.empty() || id.find('\n') != id.npos) bad_field("pages.id", "expected a name without line breaks");
        if (!page.contains("vectors")) bad_field("pages.vectors", "missing");
        const Matrix vectors = matrix_from(page["vectors"], "pages.vectors", 100000);
        if (!builder) builder.emplace(dim = vectors.cols());
        if (vectors.cols() != dim) bad_field("pages.vectors", "all pages must have the same dimension");
        PatchGrid grid;
        if (page.contains("grid")) {
            const json& g = page["grid"];
            const auto side = [](const json& v) { return v.is_number_integer() && v >= 0 && v <= 100000; };
            if (!g.is_array() || g.size() != 2 || !side(g[0]) || !side(g[1]))
                bad_field("pages.grid", "expected [columns, rows]");
            grid = {g[0].get<std::int32_t>(), g[1].get<std::int32_t>()};
        }
        builder->add(id, vectors, grid);
        request.metadata.emplace_back();
        if (page.contains("metadata")) {
            if (!page["metadata"].is_object()) bad_field("pages.metadata", "expected an object");
            request.metadata.back() = page["metadata"].dump();
        }
    }
    try {
        request.pages = builder->finish();
    } catch (const Error& error) {
        throw ApiError(400, "invalid_argument", error.what());
    }
    return request;
}

std::vector<std::string> parse_ids(std::string_view body, const Limits& limits) {
    const json object = parse_object(body, limits);
    only_fields(object, {"ids"});
    const auto ids = object.find("ids");
    if (ids == object.end() || !ids->is_array() || ids->empty()) bad_field("ids", "expected a list of page ids");
    if (ids->size() > limits.pages) past_limit("ids", limits.pages);
    std::vector<std::string> out;
    for (const json& id : *ids) {
        if (!id.is_string()) bad_field("ids", "expected strings");
        out.push_back(id.get<std::string>());
    }
    return out;
}

}  // namespace marginmerge::server
