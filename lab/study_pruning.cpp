// Why query-agnostic pruning fails: salience, learned selectors, candidate pools, winner coverage.
#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "core/random.h"
#include "lab/chart.h"
#include "lab/feasible.h"
#include "lab/grid.h"
#include "lab/paper.h"

namespace marginmerge::lab {

namespace {

class Pruning {
public:
    Pruning(Workbench& bench, const StudySpec& spec) : bench_(bench), spec_(spec) {}

    StudyOutput run() {
        salience();
        learned();
        pools();
        winners();
        output_.figures.push_back({spec_.id + "_panels",
                                   "Why query-agnostic pruning fails: learned pruning against random retention, the "
                                   "gap as the candidate pool grows, winner coverage against retention. "
                                   "Means over datasets.",
                                   svg_document(panels_, "Why query-agnostic pruning fails")});
        return std::move(output_);
    }

private:
    Finding compare(const Grid& grid, const std::string& id, const std::string& statement, const std::string& a,
                    const std::string& b, double keep) {
        Finding f{id,
                  statement,
                  {},
                  ndcg_difference(grid.at(a, keep), grid.at(b, keep)),
                  fmt::format("nDCG@5: {} - {} at {}", grid.method(a).label, grid.method(b).label, percent(keep)),
                  ""};
        f.verdict = judge(f.interval, Test::greater);
        return f;
    }

    // Rows are datasets x methods, columns ratios (the paper's salience table).
    Table ratio_table(const Grid& grid, const std::string& paper_table) {
        Table t;
        t.head = "Dataset / method";
        for (const double keep : grid.keeps()) t.columns.push_back(percent(keep));
        for (std::size_t d = 0; d < bench_.datasets().size(); ++d) {
            const Dataset& data = *bench_.datasets()[d];
            t.rows.push_back({data.name(), {}, true, false});
            for (const auto& m : grid.methods()) {
                Table::Row row{m.label, {}, false, false};
                for (const double keep : grid.keeps()) {
                    const Figures& f = grid.at(m.id, keep)[d];
                    row.cells.push_back({f.there() ? short_number(f.mean_ndcg()) : "–",
                                         paper_cell(paper_table, m.id, keep, data.name(), data.source.encoder)});
                }
                t.rows.push_back(std::move(row));
            }
        }
        return t;
    }

    void salience() {
        const Grid grid(bench_, parse_methods({"random", "salience"}), spec_.keeps, spec_);
        Table t = ratio_table(grid, "salience");
        t.id = spec_.id + "_salience";
        t.title = "Distinctiveness salience and random retention.";
        t.caption = "nDCG@5.";
        output_.tables.push_back(std::move(t));
        for (const double keep : grid.keeps())
            output_.findings.push_back(
                compare(grid, fmt::format("random-beats-salience-{:g}", keep * 100),
                        fmt::format("Random retention beats distinctiveness salience at {}", percent(keep)), "random",
                        "salience", keep));
    }

    void learned() {
        const Grid grid(bench_, parse_methods({"single_query", "negative_aware", "random"}), spec_.keeps, spec_);
        Table t = ratio_table(grid, "learned_pruning");
        t.id = spec_.id + "_learned";
        t.title = "Learned and random pruning.";
        t.caption = "nDCG@5; selectors trained on the training side, frozen embeddings.";
        output_.tables.push_back(std::move(t));
        Chart chart;
        chart.title = "(a) Learned pruning";
        chart.x_title = "document vectors kept";
        chart.y_title = "nDCG@5";
        chart.log_x = chart.percent_x = chart.reverse_x = true;
        chart.x_ticks = spec_.keeps;
        for (const auto& m : grid.methods()) {
            Line line;
            line.name = m.label;
            line.style = chart.lines.size();
            for (const double keep : spec_.keeps)
                if (const auto value = grid.average(m.id, keep, &Figures::mean_ndcg)) {
                    line.x.push_back(keep);
                    line.y.push_back(*value);
                }
            chart.lines.push_back(std::move(line));
        }
        panels_.push_back(line_panel(chart));
        const double keep =
            std::find(spec_.keeps.begin(), spec_.keeps.end(), 0.1) != spec_.keeps.end() ? 0.1 : spec_.keeps.back();
        for (const char* name : {"single_query", "negative_aware"})
            output_.findings.push_back(compare(
                grid, std::string("random-beats-") + name,
                "Random retention beats the " + grid.method(name).label + " on unseen queries", "random", name, keep));
        for (const auto& m : grid.methods())
            if (!m.remark.empty()) output_.notes.push_back(m.label + ": " + m.remark);
    }

    // nDCG@5 of each test query when only `size` candidates are ranked: its best-judged page and random others, the
    // same for every method.
    std::vector<double> pool_ndcg(const Dataset& data, const Method& method, std::uint64_t seed, std::size_t size,
                                  double keep) {
        RunSettings s;
        s.keep = keep;
        s.seed = method.seeded ? seed : 42;
        const auto key = bench_.store().complete({{"pool", size},
                                                  {"data", data.fingerprint},
                                                  {"kind", method.kind},
                                                  {"method", method.settings},
                                                  {"keep", keep},
                                                  {"seed", s.seed},
                                                  {"pool_seed", seed}});
        if (const auto stored = bench_.store().load(key)) return stored->get<std::vector<double>>();
        const std::string scores_of = data.fingerprint + method.id + std::to_string(s.seed);
        if (scores_key_ != scores_of) {
            scores_ = method_scores(method, bench_.inputs(data, method, s));
            scores_key_ = scores_of;
        }
        std::vector<double> out;
        for (std::size_t q = 0; q < data.test.size(); ++q) {
            const Relevance& all = data.relevance[q];
            if (all.positions.empty()) continue;
            const auto best =
                static_cast<std::size_t>(std::max_element(all.grades.begin(), all.grades.end()) - all.grades.begin());
            std::vector<std::size_t> candidates;
            for (std::size_t p = 0; p < data.documents.size(); ++p)
                if (!std::binary_search(all.positions.begin(), all.positions.end(), p)) candidates.push_back(p);
            Random random(mix_seed(mix_seed(seed, 91), q));
            const std::size_t others = std::min(size - 1, candidates.size());
            for (std::size_t i = 0; i < others; ++i)
                std::swap(candidates[i], candidates[i + random.below(candidates.size() - i)]);
            candidates.resize(others);
            candidates.push_back(all.positions[best]);
            std::sort(candidates.begin(), candidates.end());
            std::vector<float> values;
            Relevance relevance;
            for (std::size_t i = 0; i < candidates.size(); ++i) {
                values.push_back(scores_(q, candidates[i]));
                if (candidates[i] == all.positions[best]) relevance = {{i}, {1}, {1}};
            }
            out.push_back(ndcg(rank_pages(values, 5), relevance, 5));
        }
        bench_.store().save(key, out);
        return out;
    }

    void pools() {
        const auto sizes = spec_.fields.at("pools").get<std::vector<std::size_t>>();
        const double keep = spec_.fields.value("pool_keep", 0.1);
        const auto methods = parse_methods({"random", "single_query", "negative_aware"});
        Table t;
        t.id = spec_.id + "_pools";
        t.title = fmt::format("Candidate pools at {}.", percent(keep));
        t.caption =
            "nDCG@5 when only so many candidates are ranked: one relevant page and random others. Mean over datasets.";
        t.head = "Method";
        Chart chart;
        chart.title = "(b) Candidate pool scaling";
        chart.x_title = "candidates";
        chart.y_title = "nDCG@5 lost against random";
        chart.log_x = true;
        chart.reference = 0;
        for (std::size_t m = 1; m < methods.size(); ++m)
            chart.lines.push_back({methods[m].label, {}, {}, {}, {}, m - 1, false, false, {}});
        std::vector<const Dataset*> taught;
        for (const auto& data : bench_.datasets())
            if (why_not(*data, methods.back()).empty()) taught.push_back(data.get());
        if (taught.empty()) return;
        // values[size][method][dataset]: observations over seeds and queries. Scores are made once for all sizes.
        std::vector<std::vector<std::vector<std::vector<double>>>> values(
            sizes.size(), {methods.size(), std::vector<std::vector<double>>(taught.size())});
        for (std::size_t m = 0; m < methods.size(); ++m)
            for (std::size_t d = 0; d < taught.size(); ++d)
                for (const auto seed : spec_.seeds)
                    for (std::size_t i = 0; i < sizes.size(); ++i) {
                        const auto one = pool_ndcg(*taught[d], methods[m], seed, sizes[i], keep);
                        values[i][m][d].insert(values[i][m][d].end(), one.begin(), one.end());
                    }
        for (const auto& m : methods) t.rows.push_back({m.label, {}, false, false});
        std::vector<std::vector<Interval>> gaps(methods.size());
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            t.columns.push_back(std::to_string(sizes[i]));
            for (std::size_t m = 0; m < methods.size(); ++m) {
                double sum = 0;
                std::vector<Paired> pairs;
                for (std::size_t d = 0; d < taught.size(); ++d) {
                    sum += mean(values[i][m][d]) / static_cast<double>(taught.size());
                    pairs.push_back({values[i][0][d], values[i][m][d]});
                }
                t.rows[m].cells.push_back({short_number(sum), {}});
                if (m == 0) continue;
                const Interval gap = stratified_difference(pairs);
                gaps[m].push_back(gap);
                Line& line = chart.lines[m - 1];
                line.x.push_back(static_cast<double>(sizes[i]));
                line.y.push_back(gap.mean);
                line.low.push_back(gap.low);
                line.high.push_back(gap.high);
            }
        }
        output_.tables.push_back(std::move(t));
        panels_.push_back(line_panel(chart));
        for (std::size_t m = 1; m < methods.size(); ++m) {
            std::vector<Paired> growth;
            for (std::size_t d = 0; d < taught.size(); ++d) {
                Paired p;
                for (std::size_t i = 0; i < values[0][0][d].size(); ++i) {
                    p.a.push_back(values.back()[0][d][i] - values.back()[m][d][i]);
                    p.b.push_back(values.front()[0][d][i] - values.front()[m][d][i]);
                }
                growth.push_back(std::move(p));
            }
            Finding f{"gap-grows-" + methods[m].id,
                      "The gap between random and the " + methods[m].label + " grows with the candidate pool",
                      {},
                      stratified_difference(growth),
                      fmt::format("gap at {} - gap at {} candidates, nDCG@5", sizes.back(), sizes.front()),
                      ""};
            f.verdict = judge(f.interval, Test::greater);
            output_.findings.push_back(std::move(f));
        }
    }

    void winners() {
        const std::vector<double> keeps = spec_.fields.at("winner_keeps").get<std::vector<double>>();
        const Grid grid(bench_, parse_methods({"random", "importance", "likelihood", "likely_kcenter"}), keeps, spec_);
        Table t;
        t.id = spec_.id + "_winners";
        t.title = "Empirical winner coverage and retrieval retention.";
        t.caption =
            "Coverage: share of the patches that answer a test query's tokens on its relevant page that are kept. "
            "Means over datasets.";
        Chart chart;
        chart.title = "(c) Winner coverage versus retention";
        chart.x_title = "winner coverage";
        chart.y_title = "nDCG@5 / full index";
        const auto average = [&](const std::string& id, double keep, bool coverage) {
            std::vector<double> values;
            for (const auto& f : grid.at(id, keep))
                if (f.there()) values.push_back(coverage ? f.extra.at("winner_coverage") : f.retention());
            return mean(values);
        };
        for (const auto& m : grid.methods()) {
            Table::Row row{m.label, {}, false, false};
            Line line{m.label, {}, {}, {}, {}, chart.lines.size(), true, false, {}};
            for (const double keep : keeps) {
                const double coverage = average(m.id, keep, true), retention = average(m.id, keep, false);
                row.cells.push_back({short_number(coverage), paper_cell("winners_coverage", m.id, keep, "Avg")});
                row.cells.push_back({short_number(retention), paper_cell("winners_retention", m.id, keep, "Avg")});
                line.x.push_back(coverage);
                line.y.push_back(retention);
                line.labels.push_back(percent(keep));
            }
            t.rows.push_back(std::move(row));
            chart.lines.push_back(std::move(line));
        }
        for (const double keep : keeps) {
            t.groups.push_back({percent(keep) + " vectors", 2});
            t.columns.insert(t.columns.end(), {"Coverage", "Retention"});
        }
        output_.tables.push_back(std::move(t));
        panels_.push_back(line_panel(chart));
        const double keep = keeps.front();
        Finding f = compare(grid, "diversity-beats-winners",
                            "k-center among likely patches keeps more nDCG@5 than the likeliest patches, although it "
                            "keeps fewer winners",
                            "likely_kcenter", "likelihood", keep);
        const double more = average("likelihood", keep, true) - average("likely_kcenter", keep, true);
        f.note = fmt::format("winner coverage, likeliest - k-center: {:+.3f}", more);
        if (more <= 0 && f.verdict == Finding::Verdict::holds) f.verdict = Finding::Verdict::open;
        output_.findings.push_back(std::move(f));
    }

    Workbench& bench_;
    const StudySpec& spec_;
    std::vector<std::string> panels_;
    std::string scores_key_;
    Matrix scores_;
    StudyOutput output_;
};

}  // namespace

StudyOutput study_pruning(Workbench& bench, const StudySpec& spec) { return Pruning(bench, spec).run(); }

}  // namespace marginmerge::lab
