#include "lab/table.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "jobs/svg_parts.h"

namespace marginmerge::lab {

namespace {

std::string latex_escape(const std::string& text) {
    std::string out;
    for (const char c : text) {
        switch (c) {
            case '&':
            case '%':
            case '#':
            case '_':
            case '$':
            case '{':
            case '}': out += std::string("\\") + c; break;
            case '~': out += "\\textasciitilde{}"; break;
            case '^': out += "\\textasciicircum{}"; break;
            case '\\': out += "\\textbackslash{}"; break;
            default: out += c;
        }
    }
    return out;
}

std::string markdown_escape(const std::string& text) {
    std::string out;
    for (const char c : text) out += c == '|' ? std::string("\\|") : std::string(1, c == '\n' ? ' ' : c);
    return out;
}

}  // namespace

std::string short_number(double value, int digits) {
    std::string text = fmt::format("{:.{}f}", value, digits);
    if (text.starts_with("0.")) return text.substr(1);
    if (text.starts_with("-0.")) return text.erase(1, 1);
    return text;
}

std::string signed_number(double value, int digits) {
    const std::string text = short_number(std::fabs(value), digits);
    return (value < 0 ? "-" : "+") + text;
}

std::string csv_field(const std::string& text) {
    if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
    std::string out = "\"";
    for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
    return out + "\"";
}

void mark_best(Table& table, const std::vector<std::vector<std::optional<double>>>& values, double near) {
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
        double best = -1e300;
        for (const auto& row : values)
            if (c < row.size() && row[c]) best = std::max(best, *row[c]);
        for (std::size_t r = 0; r < values.size(); ++r) {
            if (c >= values[r].size() || !values[r][c]) continue;
            auto& mark = table.rows[r].cells[c].mark;
            mark = *values[r][c] == best          ? Cell::Mark::best
                   : *values[r][c] >= best - near ? Cell::Mark::near
                                                  : Cell::Mark::none;
        }
    }
}

std::string to_markdown(const Table& t) {
    std::string out = fmt::format("**{}** {}\n\n|", markdown_escape(t.title), markdown_escape(t.caption));
    std::vector<std::string> heads;
    std::size_t c = 0;
    for (const auto& g : t.groups)
        for (std::size_t i = 0; i < g.columns && c < t.columns.size(); ++i, ++c)
            heads.push_back(g.title.empty() ? t.columns[c] : g.title + ": " + t.columns[c]);
    if (t.groups.empty()) heads = t.columns;
    out += fmt::format(" {} |", markdown_escape(t.head));
    for (const auto& h : heads) out += fmt::format(" {} |", markdown_escape(h));
    out += "\n|---|";
    for (std::size_t i = 0; i < heads.size(); ++i) out += "---|";
    out += "\n";
    for (const auto& row : t.rows) {
        out += "| " + (row.band ? "**" + markdown_escape(row.name) + "**" : markdown_escape(row.name)) + " |";
        for (std::size_t i = 0; i < t.columns.size(); ++i) {
            const Cell cell = i < row.cells.size() ? row.cells[i] : Cell{};
            std::string text = markdown_escape(cell.text);
            if (!text.empty() && cell.mark == Cell::Mark::best) text = "**" + text + "**";
            if (!text.empty() && cell.mark == Cell::Mark::near) text += "≈";
            if (!text.empty() && cell.italic) text = "*" + text + "*";
            if (cell.paper) text += fmt::format(" ({})", short_number(*cell.paper, t.digits));
            out += " " + text + " |";
        }
        out += "\n";
    }
    return out;
}

std::string to_latex(const Table& t) {
    std::string out = "% needs booktabs, xcolor[table]\n\\begin{table*}[t]\n\\centering\\scriptsize\n";
    out += fmt::format("\\caption{{\\textbf{{{}}} {}}}\n\\label{{tab:{}}}\n\\begin{{tabular}}{{l{}}}\n\\toprule\n",
                       latex_escape(t.title), latex_escape(t.caption), t.id, std::string(t.columns.size(), 'c'));
    if (!t.groups.empty()) {
        std::size_t at = 2;
        std::string rules;
        for (const auto& g : t.groups) {
            out += fmt::format("& \\multicolumn{{{}}}{{c}}{{{}}} ", g.columns, latex_escape(g.title));
            if (!g.title.empty()) rules += fmt::format("\\cmidrule(lr){{{}-{}}}", at, at + g.columns - 1);
            at += g.columns;
        }
        out += "\\\\\n" + rules + "\n";
    }
    out += latex_escape(t.head);
    for (const auto& c : t.columns) out += fmt::format(" & {}", latex_escape(c));
    out += " \\\\\n\\midrule\n";
    for (const auto& row : t.rows) {
        if (row.band) {
            out += fmt::format("\\midrule\n\\multicolumn{{{}}}{{c}}{{\\textbf{{{}}}}} \\\\\n\\midrule\n",
                               t.columns.size() + 1, latex_escape(row.name));
            continue;
        }
        if (row.shaded) out += "\\rowcolor[gray]{0.88} ";
        out += latex_escape(row.name);
        for (std::size_t i = 0; i < t.columns.size(); ++i) {
            const Cell cell = i < row.cells.size() ? row.cells[i] : Cell{};
            std::string text = latex_escape(cell.text);
            if (!text.empty() && cell.mark == Cell::Mark::best) text = "\\textbf{" + text + "}";
            if (!text.empty() && cell.mark == Cell::Mark::near) text += "\\textsuperscript{$\\approx$}";
            if (!text.empty() && cell.italic) text = "\\emph{" + text + "}";
            out += " & " + text;
        }
        out += " \\\\\n";
    }
    return out + "\\bottomrule\n\\end{tabular}\n\\end{table*}\n";
}

std::string to_html(const Table& t) {
    std::string out = fmt::format("<div class=\"scroll\"><table><caption><b>{}</b> {}</caption><thead>",
                                  html_escape(t.title), html_escape(t.caption));
    if (!t.groups.empty()) {
        out += "<tr><th></th>";
        for (const auto& g : t.groups)
            out += fmt::format("<th colspan=\"{}\" class=\"group\">{}</th>", g.columns, html_escape(g.title));
        out += "</tr>";
    }
    out += "<tr><th>" + html_escape(t.head) + "</th>";
    for (const auto& c : t.columns) out += "<th>" + html_escape(c) + "</th>";
    out += "</tr></thead><tbody>\n";
    for (const auto& row : t.rows) {
        if (row.band) {
            out += fmt::format("<tr class=\"band\"><th colspan=\"{}\">{}</th></tr>\n", t.columns.size() + 1,
                               html_escape(row.name));
            continue;
        }
        out += fmt::format("<tr{}><td>{}</td>", row.shaded ? " class=\"ours\"" : "", html_escape(row.name));
        for (std::size_t i = 0; i < t.columns.size(); ++i) {
            const Cell cell = i < row.cells.size() ? row.cells[i] : Cell{};
            std::string text = html_escape(cell.text);
            if (!text.empty() && cell.mark == Cell::Mark::best) text = "<b>" + text + "</b>";
            if (!text.empty() && cell.mark == Cell::Mark::near) text += "<sup>≈</sup>";
            if (!text.empty() && cell.italic) text = "<i>" + text + "</i>";
            if (cell.paper) text += fmt::format("<span class=\"paper\">{}</span>", short_number(*cell.paper, t.digits));
            out += "<td>" + text + "</td>";
        }
        out += "</tr>\n";
    }
    return out + "</tbody></table></div>\n";
}

std::string to_csv(const Table& t) {
    std::string out = csv_field(t.head);
    std::size_t c = 0;
    std::vector<std::string> heads = t.columns;
    for (const auto& g : t.groups)
        for (std::size_t i = 0; i < g.columns && c < heads.size(); ++i, ++c)
            if (!g.title.empty()) heads[c] = g.title + ": " + heads[c];
    for (const auto& h : heads) out += fmt::format(",{}", csv_field(h));
    out += "\n";
    std::string band;
    for (const auto& row : t.rows) {
        if (row.band) {
            band = row.name + ": ";
            continue;
        }
        out += csv_field(band + row.name);
        for (std::size_t i = 0; i < t.columns.size(); ++i)
            out += fmt::format(",{}", csv_field(i < row.cells.size() ? row.cells[i].text : ""));
        out += "\n";
    }
    return out;
}

}  // namespace marginmerge::lab
