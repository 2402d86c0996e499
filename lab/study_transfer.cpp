// Leave one dataset out: the target is absent from bank, mining, scaling, training and checkpoints.
#include <fmt/core.h>

#include <algorithm>

#include "lab/aggregate.h"
#include "lab/paper.h"
#include "lab/study.h"

namespace marginmerge::lab {

StudyOutput study_transfer(Workbench& bench, const StudySpec& spec) {
    StudyOutput output;
    RunSettings settings, left_out;
    settings.keep = left_out.keep = spec.keeps.front();
    left_out.leave_out = true;
    const Method merging = parse_method("merging"), response = parse_method("response"),
                 learned = parse_method("marginmerge");
    Table table;
    table.id = spec.id;
    table.title = fmt::format("Leave one dataset out transfer at {} vector retention.", percent(settings.keep));
    table.caption = spec.fields.value("caption", "");
    table.head = "Target";
    table.columns = {"Merging", "Centroid", "MarginMerge", "Gain", "Gain, 95%", "trained on it"};
    table.digits = 4;
    std::vector<Figures> fixed, ours;
    std::size_t better = 0;
    for (const auto& data : bench.datasets()) {
        const auto group = bench.group(*data);
        const bool others = std::any_of(group.begin(), group.end(), [&](const Dataset* d) {
            return d != data.get() && d->source.role == DataRole::train;
        });
        if (!others) {
            output.notes.push_back(data->name() + ": no other training dataset of the same encoder, left out");
            continue;
        }
        const Figures m = gather(bench, *data, merging, settings, spec.seeds);
        const Figures c = gather(bench, *data, response, left_out, spec.seeds);
        const Figures l = gather(bench, *data, learned, left_out, spec.seeds);
        const Figures seen = gather(bench, *data, learned, settings, spec.seeds);
        const Interval gain = ndcg_difference({&l, 1}, {&c, 1});
        better += gain.mean > 0;
        const auto paper = [&](const char* cell) {
            return paper_cell("transfer", cell, settings.keep, data->name(), data->source.encoder);
        };
        table.rows.push_back({data->name(),
                              {{short_number(m.mean_ndcg(), 4), paper("merging")},
                               {short_number(c.mean_ndcg(), 4), paper("response")},
                               {short_number(l.mean_ndcg(), 4), paper("marginmerge")},
                               {signed_number(gain.mean, 4), paper("gain")},
                               {fmt::format("[{}, {}]", signed_number(gain.low, 4), signed_number(gain.high, 4)), {}},
                               {short_number(seen.mean_ndcg(), 4), {}}},
                              false,
                              false});
        fixed.push_back(c);
        ours.push_back(l);
    }
    Finding finding;
    finding.id = "transfer";
    finding.statement = "Learned weights improve over the fixed response centroid on every dataset they have not seen";
    finding.quantity = "nDCG@5, MarginMerge - fixed centroid, target left out";
    if (!ours.empty()) {
        finding.interval = ndcg_difference(ours, fixed);
        finding.verdict =
            better == ours.size() ? judge(finding.interval, Test::greater) : judge(finding.interval, Test::at_least);
        if (better < ours.size() && finding.verdict == Finding::Verdict::holds)
            finding.verdict = Finding::Verdict::open;
        finding.note = fmt::format("better on {} of {} targets", better, ours.size());
    } else {
        finding.note = "needs two datasets of one encoder";
    }
    output.findings.push_back(std::move(finding));
    if (!table.rows.empty()) output.tables.push_back(std::move(table));
    return output;
}

}  // namespace marginmerge::lab
