#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace marginmerge {

/// Reads the fields of one JSON object strictly: a missing field, a wrong type, a number out of
/// range or a field nobody asked for is an Error(corrupt) that names the file and the field.
class JsonFields {
public:
    /// `source` is the file, `path` the dotted path of this object ("" for the root).
    JsonFields(const nlohmann::json& object, std::string source, std::string path);

    bool has(const char* name) const;
    std::string text(const char* name);
    std::string text(const char* name, const std::string& fallback);
    bool boolean(const char* name, bool fallback);
    std::int64_t integer(const char* name, std::int64_t low, std::int64_t high);
    std::int64_t integer(const char* name, std::int64_t low, std::int64_t high, std::int64_t fallback);
    double number(const char* name, double low, double high, double fallback);
    /// One of these words; the index of the one found.
    std::size_t choice(const char* name, const std::vector<std::string>& words);
    std::size_t choice(const char* name, const std::vector<std::string>& words, std::size_t fallback);
    std::vector<double> numbers(const char* name, std::size_t count, double low, double high);
    std::vector<std::string> texts(const char* name, const std::vector<std::string>& words);
    JsonFields object(const char* name);
    /// The members of an object whose names are free.
    const nlohmann::json& raw(const char* name);

    /// Fails when a field is left that was never asked for: a misspelt option must not be ignored.
    void finish() const;
    /// "card.json: image.mean"
    std::string where(const std::string& name) const;
    const nlohmann::json& json() const { return *object_; }

private:
    const nlohmann::json& require(const char* name);
    const nlohmann::json* find(const char* name);

    const nlohmann::json* object_;
    std::string source_;
    std::string path_;
    std::set<std::string> seen_;
};

/// Parses JSON text with a limit on nesting (deep nesting is how a hostile file exhausts a stack).
nlohmann::json parse_json(std::string_view text, const std::string& source);

/// A whole small file; `limit` bytes at most.
std::string read_text_file(const std::string& path, std::uint64_t limit);

}  // namespace marginmerge
