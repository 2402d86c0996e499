#include "encode/json_fields.h"

#include <filesystem>
#include <fstream>

#include "core/fail.h"

namespace marginmerge {

namespace {

constexpr int deepest = 64;

const char* kind(const nlohmann::json& value) { return value.type_name(); }

}  // namespace

nlohmann::json parse_json(std::string_view text, const std::string& source) {
    int depth = 0;
    bool in_string = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (in_string) {
            if (c == '\\')
                ++i;
            else if (c == '"')
                in_string = false;
        } else if (c == '"') {
            in_string = true;
        } else if (c == '{' || c == '[') {
            if (++depth > deepest)
                fail(ErrorCode::corrupt, "{}: expected at most {} levels of JSON, found more", source, deepest);
        } else if (c == '}' || c == ']') {
            --depth;
        }
    }
    try {
        return nlohmann::json::parse(text);
    } catch (const nlohmann::json::exception& error) {
        fail(ErrorCode::corrupt, "{}: expected JSON: {}", source, error.what());
    }
}

std::string read_text_file(const std::string& path, std::uint64_t limit) {
    std::error_code error;
    if (!std::filesystem::exists(path, error)) fail(ErrorCode::not_found, "{}: no such file", path);
    if (!std::filesystem::is_regular_file(path, error)) fail(ErrorCode::io, "{}: expected a file", path);
    const std::uint64_t size = std::filesystem::file_size(path, error);
    if (error) fail(ErrorCode::io, "{}: cannot read: {}", path, error.message());
    if (size > limit) fail(ErrorCode::unsupported, "{}: expected at most {} bytes, found {}", path, limit, size);
    std::ifstream in(path, std::ios::binary);
    std::string text(static_cast<std::size_t>(size), '\0');
    in.read(text.data(), static_cast<std::streamsize>(size));
    if (!in) fail(ErrorCode::io, "{}: cannot read", path);
    return text;
}

JsonFields::JsonFields(const nlohmann::json& object, std::string source, std::string path)
    : object_(&object), source_(std::move(source)), path_(std::move(path)) {
    if (!object.is_object())
        fail(ErrorCode::corrupt, "{}: {}: expected an object, found {}", source_, path_.empty() ? "root" : path_,
             kind(object));
}

std::string JsonFields::where(const std::string& name) const {
    return source_ + ": " + (path_.empty() ? name : path_ + "." + name);
}

bool JsonFields::has(const char* name) const {
    const auto found = object_->find(name);
    return found != object_->end() && !found->is_null();
}

const nlohmann::json* JsonFields::find(const char* name) {
    seen_.insert(name);
    const auto found = object_->find(name);
    return found == object_->end() || found->is_null() ? nullptr : &*found;
}

const nlohmann::json& JsonFields::require(const char* name) {
    const nlohmann::json* value = find(name);
    if (value == nullptr) fail(ErrorCode::corrupt, "{}: expected a value, found none", where(name));
    return *value;
}

std::string JsonFields::text(const char* name) {
    const auto& value = require(name);
    if (!value.is_string()) fail(ErrorCode::corrupt, "{}: expected a string, found {}", where(name), kind(value));
    return value.get<std::string>();
}

std::string JsonFields::text(const char* name, const std::string& fallback) {
    return find(name) == nullptr ? fallback : text(name);
}

bool JsonFields::boolean(const char* name, bool fallback) {
    const auto* value = find(name);
    if (value == nullptr) return fallback;
    if (!value->is_boolean())
        fail(ErrorCode::corrupt, "{}: expected true or false, found {}", where(name), kind(*value));
    return value->get<bool>();
}

std::int64_t JsonFields::integer(const char* name, std::int64_t low, std::int64_t high) {
    const auto& value = require(name);
    if (!value.is_number_integer() ||
        (value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX)))
        fail(ErrorCode::corrupt, "{}: expected a whole number from {} to {}, found {}", where(name), low, high,
             value.is_number() ? value.dump() : kind(value));
    const auto number = value.get<std::int64_t>();
    if (number < low || number > high)
        fail(ErrorCode::corrupt, "{}: expected {} to {}, found {}", where(name), low, high, number);
    return number;
}

std::int64_t JsonFields::integer(const char* name, std::int64_t low, std::int64_t high, std::int64_t fallback) {
    return find(name) == nullptr ? fallback : integer(name, low, high);
}

double JsonFields::number(const char* name, double low, double high, double fallback) {
    const auto* value = find(name);
    if (value == nullptr) return fallback;
    if (!value->is_number()) fail(ErrorCode::corrupt, "{}: expected a number, found {}", where(name), kind(*value));
    const double x = value->get<double>();
    if (!(x >= low && x <= high))
        fail(ErrorCode::corrupt, "{}: expected {} to {}, found {}", where(name), low, high, x);
    return x;
}

std::size_t JsonFields::choice(const char* name, const std::vector<std::string>& words) {
    const std::string found = text(name);
    std::string list;
    for (std::size_t i = 0; i < words.size(); ++i) {
        if (words[i] == found) return i;
        list += (i == 0 ? "" : ", ") + words[i];
    }
    fail(ErrorCode::corrupt, "{}: expected one of {}, found '{}'", where(name), list, found);
}

std::size_t JsonFields::choice(const char* name, const std::vector<std::string>& words, std::size_t fallback) {
    return find(name) == nullptr ? fallback : choice(name, words);
}

std::vector<double> JsonFields::numbers(const char* name, std::size_t count, double low, double high) {
    const auto& value = require(name);
    if (!value.is_array() || value.size() != count)
        fail(ErrorCode::corrupt, "{}: expected {} numbers, found {}", where(name), count,
             value.is_array() ? std::to_string(value.size()) : kind(value));
    std::vector<double> out;
    for (const auto& element : value) {
        if (!element.is_number())
            fail(ErrorCode::corrupt, "{}: expected numbers, found {}", where(name), kind(element));
        const double x = element.get<double>();
        if (!(x >= low && x <= high))
            fail(ErrorCode::corrupt, "{}: expected {} to {}, found {}", where(name), low, high, x);
        out.push_back(x);
    }
    return out;
}

std::vector<std::string> JsonFields::texts(const char* name, const std::vector<std::string>& words) {
    const auto& value = require(name);
    if (!value.is_array() || value.empty())
        fail(ErrorCode::corrupt, "{}: expected a list of words, found {}", where(name), kind(value));
    std::vector<std::string> out;
    for (const auto& element : value) {
        std::string list;
        bool known = false;
        for (const auto& word : words) {
            known = known || (element.is_string() && element.get_ref<const std::string&>() == word);
            list += (list.empty() ? "" : ", ") + word;
        }
        if (!known)
            fail(ErrorCode::corrupt, "{}: expected words out of {}, found {}", where(name), list,
                 element.is_string() ? "'" + element.get<std::string>() + "'" : kind(element));
        out.push_back(element.get<std::string>());
    }
    return out;
}

JsonFields JsonFields::object(const char* name) {
    return JsonFields(require(name), source_, path_.empty() ? name : path_ + "." + name);
}

const nlohmann::json& JsonFields::raw(const char* name) { return require(name); }

void JsonFields::finish() const {
    for (const auto& [name, value] : object_->items()) {
        if (seen_.count(name) == 0 && (name.empty() || name[0] != '_'))
            fail(ErrorCode::corrupt, "{}: not a field of this format", where(name));
    }
}

}  // namespace marginmerge
