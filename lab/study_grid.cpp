// Methods x budgets x datasets: the matched comparison, selection against synthesis, budget transfer.
#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "core/fail.h"
#include "lab/chart.h"
#include "lab/grid.h"
#include "lab/paper.h"

namespace marginmerge::lab {

Grid::Grid(Workbench& bench, std::vector<Method> methods, std::vector<double> keeps, const StudySpec& spec)
    : methods_(std::move(methods)), keeps_(std::move(keeps)) {
    RunSettings settings;
    settings.train_keep = spec.fields.value("train_keep", settings.train_keep);
    for (const auto& method : methods_)
        for (const double keep : keeps_) {
            settings.keep = keep;
            auto& row = figures_[{method.id, keep}];
            for (const auto& data : bench.datasets()) row.push_back(gather(bench, *data, method, settings, spec.seeds));
        }
}

const Method& Grid::method(const std::string& id) const {
    for (const auto& m : methods_)
        if (m.id == id) return m;
    fail(ErrorCode::invalid_argument, "study: method '{}' is not among its methods", id);
}

const std::vector<Figures>& Grid::at(const std::string& method, double keep) const {
    const auto found = figures_.find({method, keep});
    if (found == figures_.end())
        fail(ErrorCode::invalid_argument, "study: nothing was run for '{}' at {}", method, keep);
    return found->second;
}

std::optional<double> Grid::average(const std::string& method, double keep, double (Figures::*figure)() const) const {
    double sum = 0;
    const auto& row = at(method, keep);
    for (const auto& f : row) {
        if (!f.there()) return std::nullopt;  // an average over other datasets would mislead
        sum += (f.*figure)();
    }
    return row.empty() ? std::nullopt : std::optional(sum / static_cast<double>(row.size()));
}

std::vector<std::string> dataset_columns(const Workbench& bench) {
    std::vector<std::string> columns;
    for (const auto& d : bench.datasets()) columns.push_back(d->name());
    if (columns.size() > 1) columns.push_back("Avg.");
    return columns;
}

Table method_table(const Workbench& bench, const Grid& grid, const std::string& paper_table,
                   double (Figures::*figure)() const, int digits, bool mark) {
    Table table;
    table.digits = digits;
    const auto columns = dataset_columns(bench);
    std::vector<std::vector<std::optional<double>>> ranked;
    for (const double keep : grid.keeps()) {
        table.groups.push_back({percent(keep) + " vectors retained", columns.size()});
        table.columns.insert(table.columns.end(), columns.begin(), columns.end());
    }
    for (const auto& method : grid.methods()) {
        Table::Row row{method.label, {}, false, method.ours};
        std::vector<std::optional<double>> values;
        for (const double keep : grid.keeps()) {
            const auto& figures = grid.at(method.id, keep);
            const auto add = [&](std::optional<double> value, const std::string& dataset, const std::string& encoder) {
                Cell cell;
                cell.text = value ? short_number(*value, digits) : "–";
                cell.italic = method.kind == "query_conditioned";
                if (!paper_table.empty()) cell.paper = paper_cell(paper_table, method.id, keep, dataset, encoder);
                row.cells.push_back(cell);
                values.push_back(method.reference ? std::nullopt : value);
            };
            for (std::size_t d = 0; d < figures.size(); ++d)
                add(figures[d].there() ? std::optional((figures[d].*figure)()) : std::nullopt,
                    bench.datasets()[d]->name(), bench.datasets()[d]->source.encoder);
            if (figures.size() > 1)
                add(grid.average(method.id, keep, figure), "Avg", bench.datasets().front()->source.encoder);
        }
        table.rows.push_back(std::move(row));
        ranked.push_back(std::move(values));
    }
    if (mark) mark_best(table, ranked);
    return table;
}

Figure curves(const Workbench& bench, const Grid& grid, const std::string& id, const std::string& caption) {
    std::vector<std::string> panels;
    const std::size_t datasets = bench.datasets().size();
    for (std::size_t d = 0; d <= datasets; ++d) {
        if (d == datasets && datasets < 2) break;
        Chart chart;
        chart.title = d < datasets ? bench.datasets()[d]->name() : "Average";
        chart.x_title = "document vectors kept";
        chart.y_title = "nDCG@5";
        chart.log_x = chart.percent_x = chart.reverse_x = true;
        chart.x_ticks = grid.keeps();
        if (d < datasets) chart.reference = mean(bench.datasets()[d]->full_ndcg);
        std::size_t style = 0;
        for (const auto& method : grid.methods()) {
            if (method.kind == "full") continue;
            Line line;
            line.name = method.label;
            line.style = style++;
            line.dashed = method.reference;
            for (const double keep : grid.keeps()) {
                const auto& figures = grid.at(method.id, keep);
                std::optional<double> value;
                if (d < datasets)
                    value = figures[d].there() ? std::optional(figures[d].mean_ndcg()) : std::nullopt;
                else
                    value = grid.average(method.id, keep, &Figures::mean_ndcg);
                if (!value) continue;
                line.x.push_back(keep);
                line.y.push_back(*value);
            }
            if (!line.x.empty()) chart.lines.push_back(std::move(line));
        }
        panels.push_back(line_panel(chart));
    }
    return {id, caption, svg_document(panels, caption)};
}

void declared_findings(const Grid& grid, const nlohmann::json& list, StudyOutput& output) {
    for (const auto& entry : list) {
        Finding finding;
        finding.id = entry.at("id");
        finding.statement = entry.at("statement");
        const bool flips = entry.value("measure", "ndcg") == "flips";
        const double keep = entry.value("keep", grid.keeps().front());
        const std::string a = entry.at("a");
        // "method@0.05" compares with another budget.
        std::string b = entry.at("b");
        double keep_b = keep;
        if (const auto at = b.find('@'); at != std::string::npos) {
            keep_b = std::stod(b.substr(at + 1));
            b.resize(at);
        }
        const auto &fa = grid.at(a, keep), &fb = grid.at(b, keep_b);
        const bool there = std::any_of(fa.begin(), fa.end(), [](const auto& f) { return f.there(); }) &&
                           std::any_of(fb.begin(), fb.end(), [](const auto& f) { return f.there(); });
        finding.quantity =
            fmt::format("{}: {} - {}{} at {}", flips ? "flip rate" : "nDCG@5", grid.method(a).label,
                        grid.method(b).label, keep_b == keep ? "" : " at " + percent(keep_b), percent(keep));
        if (there) {
            finding.interval = flips ? flip_difference(fa, fb) : ndcg_difference(fa, fb);
            finding.verdict = judge(finding.interval, parse_test(entry.at("test")));
        }
        output.findings.push_back(std::move(finding));
    }
}

void note_skipped(const Workbench& bench, const Grid& grid, StudyOutput& output) {
    std::set<std::string> said;
    for (const auto& method : grid.methods()) {
        if (!method.remark.empty()) output.notes.push_back(method.label + ": " + method.remark);
        for (const double keep : grid.keeps()) {
            const auto& figures = grid.at(method.id, keep);
            for (std::size_t d = 0; d < figures.size(); ++d) {
                const std::string name = bench.datasets()[d]->name();
                if (!figures[d].skipped.empty() && said.insert(method.id + name).second)
                    output.notes.push_back(
                        fmt::format("{} on {}: skipped, {}", method.label, name, figures[d].skipped));
                const auto subset = figures[d].extra.find("subset");
                if (subset != figures[d].extra.end() && subset->second < 1 &&
                    said.insert(method.id + name + "subset").second)
                    output.notes.push_back(
                        fmt::format("{} on {}: covers {:.1f}% of the documents and is judged on those", method.label,
                                    name, 100 * subset->second));
            }
        }
    }
}

namespace {

// Rows are budgets, columns datasets: one method under several budgets (the paper's budget transfer).
Table budget_table(const Workbench& bench, const Grid& grid, const std::string& paper_table) {
    Table table;
    table.head = "Retention";
    table.columns = dataset_columns(bench);
    const auto add_row = [&](const std::string& name, const std::string& method, double keep, double paper_keep) {
        Table::Row row{name, {}, false, false};
        const auto& figures = grid.at(method, keep);
        for (std::size_t d = 0; d < figures.size(); ++d) {
            Cell cell;
            cell.text = figures[d].there() ? short_number(figures[d].mean_ndcg()) : "–";
            cell.paper = paper_cell(paper_table, method, paper_keep, bench.datasets()[d]->name(),
                                    bench.datasets()[d]->source.encoder);
            row.cells.push_back(cell);
        }
        if (figures.size() > 1) {
            const auto average = grid.average(method, keep, &Figures::mean_ndcg);
            row.cells.push_back(
                {average ? short_number(*average) : "–", paper_cell(paper_table, method, paper_keep, "Avg")});
        }
        table.rows.push_back(std::move(row));
    };
    auto keeps = grid.keeps();
    std::sort(keeps.rbegin(), keeps.rend());
    for (const auto& method : grid.methods()) {
        if (method.kind == "full") {
            add_row(method.label, method.id, keeps.front(), 1);
            continue;
        }
        if (grid.methods().size() > 2) table.rows.push_back({method.label, {}, true, false});
        for (const double keep : keeps) add_row(percent(keep), method.id, keep, keep);
    }
    return table;
}

}  // namespace

StudyOutput study_grid(Workbench& bench, const StudySpec& spec) {
    StudyOutput output;
    const std::string paper = spec.fields.value("paper_table", spec.id);
    const Grid grid(bench, parse_methods(spec.fields.at("methods")), spec.keeps, spec);
    const std::string caption = spec.fields.value("caption", "");
    if (spec.fields.value("layout", "methods") == "budgets") {
        Table table = budget_table(bench, grid, paper);
        table.id = spec.id;
        table.title = spec.title + ".";
        table.caption = caption;
        output.tables.push_back(std::move(table));
    } else {
        Table table = method_table(bench, grid, paper, &Figures::mean_ndcg, 3, true);
        table.id = spec.id;
        table.title = spec.title + ".";
        table.caption = caption;
        Table retention = method_table(bench, grid, "", &Figures::retention, 3, true);
        retention.id = spec.id + "_retention";
        retention.title = "Retention.";
        retention.caption = "nDCG@5 over that of the full index.";
        Table flips = method_table(bench, grid, "", &Figures::flip_rate, 4, false);
        flips.id = spec.id + "_flips";
        flips.title = "Ranking flips.";
        flips.caption = "Share of (relevant, other) pairs in another order than in the full index; lower is better.";
        output.tables = {std::move(table), std::move(retention), std::move(flips)};
    }
    if (spec.fields.contains("curves")) {
        const auto& c = spec.fields["curves"];
        const Grid wide(bench, parse_methods(c.value("methods", spec.fields.at("methods"))),
                        c.at("keeps").get<std::vector<double>>(), spec);
        output.figures.push_back(curves(bench, wide, spec.id + "_curves", c.value("caption", "")));
    }
    if (spec.fields.contains("findings")) declared_findings(grid, spec.fields["findings"], output);
    note_skipped(bench, grid, output);
    return output;
}

}  // namespace marginmerge::lab
