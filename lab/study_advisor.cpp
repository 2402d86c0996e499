// How far each dataset can shrink: the advisor on the test queries.
#include <fmt/core.h>

#include "jobs/judged.h"
#include "lab/advise.h"
#include "lab/aggregate.h"
#include "lab/chart.h"
#include "lab/study.h"

namespace marginmerge::lab {

StudyOutput study_advisor(Workbench& bench, const StudySpec& spec) {
    StudyOutput output;
    const Method method = parse_method(spec.fields.at("method"));
    const double target = spec.fields.value("target", 0.98);
    Table t;
    t.id = spec.id;
    t.title = fmt::format("The smallest index that keeps {} of nDCG@5.", percent(target));
    t.caption = fmt::format(
        "With 95% confidence on the test queries; {}. The second line judges without labels, against the full index's "
        "best ten.",
        method.label);
    t.head = "Dataset";
    t.columns = {"vectors kept", "code", "KB a page", "of F16", "retention", "bound", "flips"};
    std::vector<std::string> panels;
    for (const auto& data : bench.datasets()) {
        for (const bool labels : {true, false}) {
            if (labels && !data->labels) continue;
            RunSettings s;
            s.seed = spec.seeds.front();
            AdviceInputs in;
            in.full = Matrix(data->full_scores.view());
            in.relevance = data->relevance;
            if (!labels)
                for (std::size_t q = 0; q < data->test.size(); ++q)
                    in.relevance[q] = best_as_relevant(std::as_const(in.full).view().row_span(q), 10);
            in.tokens.assign(data->queries->tokens().begin(), data->queries->tokens().end());
            in.target = target;
            in.keeps = spec.keeps;
            for (const auto& name : spec.fields.at("codes"))
                in.codes.push_back(parse_vector_code(name.get<std::string>()));
            in.pages = data->documents.size();
            in.dim = data->documents.dim();
            in.mean_vectors = data->mean_vectors();
            in.scores = [&](double keep) {
                s.keep = keep;
                if (keep >= 1)
                    return score_made_pages(in.pages, whole_pages(data->documents), *data->queries, in.codes,
                                            bench.threads());
                const RunInputs run = bench.inputs(*data, method, s);
                static const Model none;
                return score_made_pages(in.pages,
                                        recipe_pages(data->documents, run.model != nullptr ? *run.model : none,
                                                     run.recipe, bench.threads()),
                                        *data->queries, in.codes, bench.threads());
            };
            Advice advice = find_smallest(in);
            advice.labels = labels;
            advice.method = method.label;
            const std::string name = data->name() + (labels ? "" : ", no labels");
            Table::Row row{name, {}, false, false};
            if (advice.best) {
                const AdvicePoint& p = advice.points[*advice.best];
                for (auto text :
                     {percent(p.keep), std::string(to_string(p.code)), fmt::format("{:.2f}", p.bytes_per_page / 1024),
                      fmt::format("{:.1f}%", 100 * p.bytes_per_page / advice.full_bytes),
                      short_number(p.retention.mean), short_number(p.retention.low), short_number(p.flips, 4)})
                    row.cells.push_back({std::move(text), {}});
            } else {
                row.cells.push_back({"none", {}});
            }
            t.rows.push_back(std::move(row));
            for (const auto& note : advice.notes) output.notes.push_back(name + ": " + note);
            output.files.emplace_back(fmt::format("{}{}.csv", data->name(), labels ? "" : "-no-labels"),
                                      advice_csv(advice));
            if (labels || !data->labels) panels.push_back(frontier_panel(advice, data->name()));
            if (bench.progress())
                bench.progress()({"lab advisor", "datasets", panels.size(), bench.datasets().size(), name});
        }
    }
    output.tables.push_back(std::move(t));
    output.figures.push_back(
        {spec.id + "_frontier",
         "Quality against bytes by storage code; the label marks the advised index, the dotted line the target.",
         svg_document(panels, "Frontiers")});
    return output;
}

}  // namespace marginmerge::lab
