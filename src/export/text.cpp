#include "export/text.h"

#include <fmt/core.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "core/sha256.h"
#include "marginmerge/core/version.h"

namespace marginmerge {

void append_number(std::string& out, float value) {
    char digits[32];
    const auto end = std::to_chars(digits, digits + sizeof digits, value);
    out.append(digits, end.ptr);
}

void append_row(std::string& out, std::span<const float> row) {
    out += '[';
    for (std::size_t j = 0; j < row.size(); ++j) {
        if (j > 0) out += ',';
        append_number(out, row[j]);
    }
    out += ']';
}

void append_rows(std::string& out, ConstMatrix rows) {
    out += '[';
    for (std::size_t i = 0; i < rows.rows; ++i) {
        if (i > 0) out += ',';
        append_row(out, rows.row_span(i));
    }
    out += ']';
}

std::string rows_text(ConstMatrix rows) {
    std::string text;
    append_rows(text, rows);
    return text;
}

std::string json_text(std::string_view text) {
    return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string json_list(std::span<const std::string> elements) {
    std::size_t bytes = 2;
    for (const auto& element : elements) bytes += element.size() + 1;
    std::string out;
    out.reserve(bytes);
    out += '[';
    for (const auto& element : elements) {
        if (out.size() > 1) out += ',';
        out += element;
    }
    out += ']';
    return out;
}

std::string sql_text(std::string_view text) {
    std::string out = "'";
    for (const char c : text) {
        if (c == '\'') out += '\'';
        out += c;
    }
    return out + "'";
}

std::string page_uuid(std::string_view id) {
    Sha256 hash;
    hash.update("marginmerge page ");
    hash.update(id);
    auto digest = hash.finish();
    digest[6] = static_cast<std::uint8_t>((digest[6] & 0x0F) | 0x80);
    digest[8] = static_cast<std::uint8_t>((digest[8] & 0x3F) | 0x80);
    std::string out;
    for (std::size_t i = 0; i < 16; ++i) {
        if (i == 4 || i == 6 || i == 8 || i == 10) out += '-';
        out += fmt::format("{:02x}", digest[i]);
    }
    return out;
}

std::string capitalised(std::string name) {
    if (!name.empty() && name[0] >= 'a' && name[0] <= 'z') name[0] = static_cast<char>(name[0] - 'a' + 'A');
    return name;
}

std::string fill(std::string_view text, std::initializer_list<std::pair<std::string_view, std::string>> values) {
    std::string out;
    while (!text.empty()) {
        const std::size_t begin = text.find("{{");
        out += text.substr(0, begin);
        if (begin == std::string_view::npos) break;
        const std::size_t end = text.find("}}", begin);
        const std::string_view key = text.substr(begin + 2, end - begin - 2);
        for (const auto& [name, value] : values)
            if (name == key) out += value;
        text.remove_prefix(end + 2);
    }
    return out;
}

std::string readme_text(const ExportPlan& plan, const Readme& readme) {
    std::string norms =
        plan.unit_norm ? "All vectors were scaled to unit norm for this export, so inner product and cosine agree.\n"
        : plan.unit()
            ? "All vectors have unit norm, so inner product and cosine agree.\n"
            : fmt::format(
                  "Norms lie between {:.3f} and {:.3f} and carry meaning: compare by inner product, not by cosine.\n",
                  plan.shortest, plan.longest);
    return fmt::format(
        "# {} pages for {}\n\n"
        "{} pages, {} vectors of {} dimensions, at most {} vectors a page; written by marginmerge {}.\n{}\n"
        "## Load\n\n```bash\n{}```\n\n## Ask\n\n```bash\n{}```\n\n"
        "The example asks {} (query `{}`, {} vectors). `expected.tsv` is the answer marginmerge's own exact search "
        "gives\n"
        "to it: rank, page, score.\n\n{}\n{}",
        plan.pages, readme.title, plan.pages, plan.vectors, plan.dim, plan.most_vectors, version(), norms,
        plan.uploaded_to.empty() ? readme.load : "# nothing to do: the pages were sent to " + plan.uploaded_to + "\n",
        readme.query, plan.query_from, plan.query_id, plan.query.rows(), readme.notes,
        readme.tried ? ""
                     : "This form follows the engine's documentation; marginmerge's own tests check it against a "
                       "stand-in, not against a\nlive server.\n");
}

std::string expected_text(const ExportPlan& plan) {
    std::string text = "rank\tpage\tscore\n";
    for (std::size_t i = 0; i < plan.expected.size(); ++i) {
        text += fmt::format("{}\t{}\t", i + 1, plan.expected[i].id);
        append_number(text, plan.expected[i].score);
        text += '\n';
    }
    return text;
}

}  // namespace marginmerge
