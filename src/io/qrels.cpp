#include "io/qrels.h"

#include <charconv>
#include <optional>

#include "core/fail.h"
#include "io/atomic_file.h"
#include "io/mapped_file.h"
#include "io/text_lines.h"

namespace marginmerge {

namespace {

constexpr int max_grade = 1000;

// Some exporters write grades as "1.0"; a fraction that is not zero would be silently cut.
std::optional<int> parse_grade(std::string_view text) {
    if (const auto dot = text.find('.'); dot != std::string_view::npos && dot > 0) {
        if (text.substr(dot + 1).find_first_not_of('0') != std::string_view::npos) return std::nullopt;
        text = text.substr(0, dot);
    }
    int grade = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), grade);
    if (error != std::errc() || end != text.data() + text.size() || grade < -max_grade || grade > max_grade)
        return std::nullopt;
    return grade;
}

// A first line whose grade is no number, or whose names are those of a header.
bool is_header(const std::vector<std::string_view>& fields) {
    if (fields[0] == "query-id" || fields[0] == "query_id" || fields[0] == "qid") return true;
    return fields.size() >= 3 && fields.back().find_first_of("0123456789") == std::string_view::npos;
}

std::string shorten(std::string_view text) {
    return text.size() <= 60 ? std::string(text) : std::string(text.substr(0, 60)) + "...";
}

}  // namespace

Judgements parse_qrels(std::string_view text, const std::string& source) {
    Judgements judgements;
    TextLines lines(text);
    std::string_view line;
    std::size_t columns = 0;
    while (lines.next(line)) {
        const auto fields = split_fields(line);
        if (columns == 0) {
            columns = fields.size();
            if (columns < 2 || columns > 4)
                fail(ErrorCode::corrupt, "{}: line {}: expected 2 to 4 columns (query, document, grade), found {}",
                     source, lines.number(), columns);
            if (is_header(fields)) continue;
        }
        if (fields.size() != columns)
            fail(ErrorCode::corrupt, "{}: line {}: expected {} columns like the lines before, found {}", source,
                 lines.number(), columns, fields.size());
        const std::string_view query = fields[0];
        const std::string_view document = columns == 4 ? fields[2] : fields[1];
        if (query.empty() || document.empty())
            fail(ErrorCode::corrupt, "{}: line {}: expected a query and a document id, found an empty column", source,
                 lines.number());
        const auto grade = columns == 2 ? std::optional<int>(1) : parse_grade(fields.back());
        if (!grade)
            fail(ErrorCode::corrupt, "{}: line {}: grade: expected a whole number from {} to {}, found '{}'", source,
                 lines.number(), -max_grade, max_grade, shorten(fields.back()));
        const auto [entry, added] = judgements[std::string(query)].emplace(document, *grade);
        if (!added && entry->second != *grade)
            fail(ErrorCode::corrupt, "{}: line {}: query '{}', document '{}': expected one grade, found {} and {}",
                 source, lines.number(), shorten(query), shorten(document), entry->second, *grade);
    }
    if (judgements.empty()) fail(ErrorCode::corrupt, "{}: expected relevance judgements, found none", source);
    return judgements;
}

Judgements read_qrels(const std::filesystem::path& path) {
    const MappedFile file(path);
    const auto bytes = file.bytes();
    return parse_qrels({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path.string());
}

void write_qrels(const std::filesystem::path& path, const Judgements& judgements) {
    std::string text = "query-id\tcorpus-id\tscore\n";
    for (const auto& [query, documents] : judgements)
        for (const auto& [document, grade] : documents) text += fmt::format("{}\t{}\t{}\n", query, document, grade);
    write_text_file(path, text);
}

}  // namespace marginmerge
