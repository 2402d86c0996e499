// How much a seed changes: the paper's per-seed table.
#include <fmt/core.h>

#include <algorithm>

#include "lab/aggregate.h"
#include "lab/paper.h"
#include "lab/study.h"

namespace marginmerge::lab {

StudyOutput study_seeds(Workbench& bench, const StudySpec& spec) {
    StudyOutput output;
    const Method method = parse_method(spec.fields.at("method")), baseline = parse_method(spec.fields.at("baseline"));
    Table table;
    table.id = spec.id;
    table.title = fmt::format("Per-seed results at {} vector retention.", percent(spec.keeps.front()));
    table.caption = spec.fields.value("caption", "");
    table.head = "Dataset";
    table.digits = 4;
    for (const auto seed : spec.seeds) table.columns.push_back(fmt::format("Seed {}", seed));
    for (const char* name : {"Mean ± std", "Merging", "Δ", "Flips"}) table.columns.emplace_back(name);
    double widest = 0;
    std::vector<Figures> ours, theirs;
    RunSettings settings;
    settings.keep = spec.keeps.front();
    for (const auto& data : bench.datasets()) {
        const Figures f = gather(bench, *data, method, settings, spec.seeds);
        const Figures b = gather(bench, *data, baseline, settings, spec.seeds);
        Table::Row row{data->name(), {}, false, false};
        if (!f.there() || !b.there()) {
            output.notes.push_back(data->name() + ": " + (f.there() ? b.skipped : f.skipped));
            continue;
        }
        const auto paper = [&](const std::string& cell) {
            return paper_cell("stability", cell, settings.keep, data->name(), data->source.encoder);
        };
        for (std::size_t i = 0; i < spec.seeds.size(); ++i)
            row.cells.push_back({short_number(f.seed_ndcg[i], 4), paper(fmt::format("seed_{}", spec.seeds[i]))});
        const double spread = deviation(f.seed_ndcg);
        widest = std::max(widest, spread);
        row.cells.push_back(
            {fmt::format("{} ± {}", short_number(f.mean_ndcg(), 4), short_number(spread, 4)), paper("mean")});
        row.cells.push_back({short_number(b.mean_ndcg()), paper("merging")});
        row.cells.push_back({signed_number(f.mean_ndcg() - b.mean_ndcg()), paper("gain")});
        row.cells.push_back({short_number(f.flip_rate(), 4) + "/" + short_number(b.flip_rate(), 4), paper("flips")});
        table.rows.push_back(std::move(row));
        ours.push_back(f);
        theirs.push_back(b);
    }
    output.tables.push_back(std::move(table));

    Finding spread;
    spread.id = "seed-spread";
    spread.statement = "The standard deviation over seeds stays below 0.006 on every dataset";
    spread.quantity = "largest standard deviation of nDCG@5 over seeds";
    spread.interval = {widest, widest, widest, false};
    if (!ours.empty() && spec.seeds.size() > 1)
        spread.verdict = widest < 0.006 ? Finding::Verdict::holds : Finding::Verdict::fails;
    output.findings.push_back(spread);

    Finding flips;
    flips.id = "flips-everywhere";
    flips.statement = "MarginMerge flips fewer rankings than geometric merging on every dataset";
    flips.quantity = "flip rate, MarginMerge - merging";
    std::size_t fewer = 0;
    for (std::size_t d = 0; d < ours.size(); ++d) fewer += ours[d].flip_rate() < theirs[d].flip_rate();
    if (!ours.empty()) {
        flips.interval = flip_difference(ours, theirs);
        flips.verdict = fewer == ours.size() ? judge(flips.interval, Test::less) : Finding::Verdict::fails;
        flips.note = fmt::format("fewer on {} of {} datasets", fewer, ours.size());
    }
    output.findings.push_back(flips);
    return output;
}

}  // namespace marginmerge::lab
