// What an index costs: construction by stage, bytes, search; and quality by bytes, which the paper leaves open.
#include <fmt/core.h>

#include <algorithm>

#include "core/parallel.h"
#include "core/random.h"
#include "lab/aggregate.h"
#include "lab/chart.h"
#include "lab/paper.h"
#include "lab/stage_times.h"
#include "lab/study.h"

namespace marginmerge::lab {

namespace {

class Cost {
public:
    Cost(Workbench& bench, const StudySpec& spec)
        : bench_(bench), spec_(spec), pages_(spec.fields.value("pages", std::size_t{40})) {
        for (const auto& name : spec.fields.at("codes")) codes_.push_back(parse_vector_code(name.get<std::string>()));
    }

    StudyOutput run() {
        stages();
        construction();
        bytes();
        search();
        output_.notes.push_back(
            "Times are medians on one thread of this machine in this run; compare them only with each other.");
        return std::move(output_);
    }

private:
    RunSettings settings() const {
        RunSettings s;
        s.keep = spec_.keeps.front();
        s.seed = spec_.seeds.front();
        return s;
    }

    void stages() {
        const Method method = parse_method("marginmerge");
        Table t;
        t.id = "times_stages";
        t.title = fmt::format("Construction of a page by stage at {}.", percent(spec_.keeps.front()));
        t.caption = fmt::format(
            "Milliseconds, the paper's recipe, {} pages of each dataset. The paper reports about 1,700 ms for a page "
            "of 4,862 vectors.",
            pages_);
        t.head = "Stage";
        for (const auto& data : bench_.datasets()) {
            const auto fitted = bench_.model(*data, method, settings());
            t.columns.push_back(fmt::format("{} ({:.0f} vectors)", data->name(), data->mean_vectors()));
            if (!fitted) continue;
            Recipe recipe = fitted->model.recipe;
            recipe.budget.keep = spec_.keeps.front();
            const StageTimes times = paper_stages(*data, fitted->model, recipe, pages_);
            if (t.rows.empty()) {
                for (const auto& [name, unused] : times.stages) t.rows.push_back({name, {}, false, false});
                t.rows.push_back({"total", {}, false, true});
            }
            for (std::size_t s = 0; s < times.stages.size(); ++s)
                t.rows[s].cells.push_back({fmt::format("{:.3f}", times.stages[s].second), {}});
            t.rows.back().cells.push_back({fmt::format("{:.3f}", times.total), {}});
        }
        output_.tables.push_back(std::move(t));
    }

    void construction() {
        Table t;
        t.id = "times_construction";
        t.title = fmt::format("Construction of a page by method at {}.", percent(spec_.keeps.front()));
        t.caption = "Milliseconds on one thread, reading excluded.";
        for (const auto& data : bench_.datasets()) t.columns.push_back(data->name());
        for (const auto& method : parse_methods(spec_.fields.at("methods"))) {
            if (method.kind != "compress") continue;
            Table::Row row{method.label, {}, false, method.ours};
            for (const auto& data : bench_.datasets()) {
                if (model_needs(method).any && !bench_.model(*data, method, settings())) {
                    row.cells.push_back({"–", {}});
                    continue;
                }
                const RunInputs in = bench_.inputs(*data, method, settings());
                static const Model none;
                row.cells.push_back(
                    {fmt::format("{:.3f}", page_time(*data, in.model != nullptr ? *in.model : none, in.recipe, pages_)),
                     {}});
            }
            t.rows.push_back(std::move(row));
        }
        output_.tables.push_back(std::move(t));
    }

    // nDCG@5 and flips by method, share and code; the figure shows the frontier.
    void bytes() {
        Table t;
        t.id = spec_.id + "_bytes";
        t.title = "Quality by bytes.";
        t.caption = "nDCG@5 over the full index / flips / KB a page; scales of coded vectors included.";
        t.head = "Method, share, code";
        std::vector<Chart> charts;
        for (const auto& data : bench_.datasets()) {
            t.columns.push_back(data->name());
            Chart c;
            c.title = data->name();
            c.x_title = "KB a page";
            c.y_title = "nDCG@5 / full index";
            c.log_x = c.reverse_x = true;
            c.reference = 1;
            charts.push_back(std::move(c));
        }
        const auto add = [&](const Method& method, double keep, VectorCode code, std::size_t style) {
            Table::Row row{fmt::format("{}{}, {}", method.label, method.kind == "full" ? "" : ", " + percent(keep),
                                       to_string(code)),
                           {},
                           false,
                           false};
            for (std::size_t d = 0; d < bench_.datasets().size(); ++d) {
                RunSettings s = settings();
                s.keep = keep;
                s.code = code;
                const Figures f = gather(bench_, *bench_.datasets()[d], method, s, spec_.seeds);
                row.cells.push_back({f.there() ? fmt::format("{} / {} / {:.2f}", short_number(f.retention()),
                                                             short_number(f.flip_rate(), 4), f.bytes / 1024)
                                               : "–",
                                     {}});
                if (!f.there()) continue;
                const std::string name = method.label + ", " + to_string(code);
                auto& lines = charts[d].lines;
                auto line = std::find_if(lines.begin(), lines.end(), [&](const Line& l) { return l.name == name; });
                if (line == lines.end()) {
                    lines.push_back({name, {}, {}, {}, {}, style, method.kind == "full", method.kind == "full", {}});
                    line = lines.end() - 1;
                }
                line->x.push_back(f.bytes / 1024);
                line->y.push_back(f.retention());
            }
            t.rows.push_back(std::move(row));
        };
        std::size_t style = 0;
        for (const auto& method : parse_methods(spec_.fields.at("byte_methods"))) {
            for (const auto code : codes_) {
                if (method.kind == "full") {
                    add(method, 1, code, 6);
                    continue;
                }
                for (const double keep : spec_.fields.at("byte_keeps")) add(method, keep, code, style);
                ++style;
            }
        }
        output_.tables.push_back(std::move(t));
        std::vector<std::string> panels;
        for (auto& c : charts) {
            // The full index under each code as one row of points.
            Line full{"full index", {}, {}, {}, {}, 6, false, true, {}};
            std::erase_if(c.lines, [&](const Line& l) {
                if (!l.points_only) return false;
                full.x.insert(full.x.end(), l.x.begin(), l.x.end());
                full.y.insert(full.y.end(), l.y.begin(), l.y.end());
                return true;
            });
            if (!full.x.empty()) c.lines.push_back(std::move(full));
            panels.push_back(line_panel(c));
        }
        output_.figures.push_back({spec_.id + "_bytes",
                                   "Quality against bytes a page: fewer vectors and smaller codes multiply.",
                                   svg_document(panels, "Quality against bytes")});
    }

    void search() {
        Table t;
        t.id = "times_search";
        t.title = "Exact search of one query over the whole corpus.";
        t.caption = "Milliseconds on one thread, and how many times faster than the full index as F16 in the same run.";
        t.head = "Index";
        for (const auto& data : bench_.datasets()) t.columns.push_back(data->name());
        const std::size_t queries = 20;
        std::vector<double> base;
        const auto add = [&](const std::string& name, VectorCode code,
                             const std::function<MultiVectorSet(const Dataset&)>& index) {
            Table::Row row{name + ", " + to_string(code), {}, false, false};
            for (std::size_t d = 0; d < bench_.datasets().size(); ++d) {
                const double ms = search_time(index(*bench_.datasets()[d]), bench_.datasets()[d]->test, code, queries);
                if (base.size() == d) base.push_back(ms);
                row.cells.push_back({fmt::format("{:.3f} ({:.1f}x)", ms, ms > 0 ? base[d] / ms : 0), {}});
            }
            t.rows.push_back(std::move(row));
        };
        const Method method = parse_method(spec_.fields.at("search_method"));
        add("full index", VectorCode::f16, [](const Dataset& d) { return d.documents; });
        for (const auto code : codes_)
            if (code != VectorCode::f16) add("full index", code, [](const Dataset& d) { return d.documents; });
        for (const auto code : codes_)
            add(method.label + ", " + percent(spec_.keeps.front()), code, [&](const Dataset& d) {
                const RunInputs in = bench_.inputs(d, method, settings());
                static const Model none;
                const MakePage make = recipe_pages(d.documents, in.model != nullptr ? *in.model : none, in.recipe, 1);
                MultiVectorBuilder builder(d.documents.dim());
                Matrix page;
                for (std::size_t p = 0; p < d.documents.size(); ++p) {
                    make(p, 0, page);
                    builder.add(d.documents.id(p), page);
                }
                return builder.finish();
            });
        output_.tables.push_back(std::move(t));
    }

    Workbench& bench_;
    const StudySpec& spec_;
    std::size_t pages_;
    std::vector<VectorCode> codes_;
    StudyOutput output_;
};

}  // namespace

StudyOutput study_cost(Workbench& bench, const StudySpec& spec) { return Cost(bench, spec).run(); }

}  // namespace marginmerge::lab
