#include "io/trec_run.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "core/fail.h"
#include "io/atomic_file.h"
#include "io/mapped_file.h"
#include "io/text_lines.h"

namespace marginmerge {

namespace {

bool has_blank(std::string_view id) { return id.find(' ') != std::string_view::npos; }

void check_id(std::string_view id) {
    if (id.empty() || id.find_first_of("\t\n\r") != std::string_view::npos)
        fail(ErrorCode::unsupported,
             "run: id '{}': expected no tab, line break or empty id in a TREC run (JSON takes any)", id);
}

template <class T>
T number(std::string_view text, const char* what, const std::string& source, std::size_t line) {
    T value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size())
        fail(ErrorCode::corrupt, "{}: line {}: {}: expected a number, found '{}'", source, line, what,
             text.substr(0, 60));
    return value;
}

struct Entry {
    long rank;
    RankedDocument document;
};

}  // namespace

void append_trec_lines(std::string& out, std::string_view query, std::span<const RankedDocument> ranking,
                       std::string_view tag) {
    check_id(query);
    for (std::size_t i = 0; i < ranking.size(); ++i) {
        const auto& [id, score] = ranking[i];
        check_id(id);
        const char s = has_blank(query) || has_blank(id) || has_blank(tag) ? '\t' : ' ';
        out += fmt::format("{}{}Q0{}{}{}{}{}{}{}{}\n", query, s, s, id, s, i + 1, s, static_cast<float>(score), s, tag);
    }
}

void write_trec_run(const std::filesystem::path& path, const RankedRun& run, std::string_view tag) {
    AtomicFile file(path);
    std::string text;
    for (const auto& [query, ranking] : run) {
        append_trec_lines(text, query, ranking, tag);
        if (text.size() < (1U << 20)) continue;
        file.append(text);
        text.clear();
    }
    file.append(text);
    file.commit();
}

RankedRun parse_trec_run(std::string_view text, const std::string& source) {
    std::map<std::string, std::vector<Entry>> entries;
    TextLines lines(text);
    std::string_view line;
    while (lines.next(line)) {
        const auto fields = split_fields(line);
        if (fields.size() != 6)
            fail(ErrorCode::corrupt, "{}: line {}: expected 6 columns (query Q0 document rank score tag), found {}",
                 source, lines.number(), fields.size());
        Entry entry{number<long>(fields[3], "rank", source, lines.number()),
                    {std::string(fields[2]), number<double>(fields[4], "score", source, lines.number())}};
        if (!std::isfinite(entry.document.score))
            fail(ErrorCode::corrupt, "{}: line {}: score: expected a finite number, found '{}'", source, lines.number(),
                 fields[4]);
        entries[std::string(fields[0])].push_back(std::move(entry));
    }
    RankedRun run;
    for (auto& [query, list] : entries) {
        std::stable_sort(list.begin(), list.end(), [](const Entry& a, const Entry& b) {
            return a.document.score != b.document.score ? a.document.score > b.document.score : a.rank < b.rank;
        });
        std::set<std::string_view> seen;
        for (const Entry& e : list) {
            if (!seen.insert(e.document.id).second)
                fail(ErrorCode::corrupt, "{}: query '{}': expected each document once, found '{}' twice", source, query,
                     e.document.id);
        }
        auto& ranking = run[query];
        ranking.reserve(list.size());
        for (Entry& e : list) ranking.push_back(std::move(e.document));
    }
    return run;
}

RankedRun read_trec_run(const std::filesystem::path& path) {
    const MappedFile file(path);
    const auto bytes = file.bytes();
    return parse_trec_run({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path.string());
}

}  // namespace marginmerge
