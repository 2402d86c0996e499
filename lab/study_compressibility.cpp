// Which corpora can be compressed, and what tells so: redundancy by dataset, controls, proxies, and corpora that differ
// in redundancy alone.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "lab/aggregate.h"
#include "lab/chart.h"
#include "lab/paper.h"
#include "lab/proxies.h"
#include "lab/study.h"

namespace marginmerge::lab {

namespace {

class Compressibility {
public:
    Compressibility(Workbench& bench, const StudySpec& spec)
        : bench_(bench), spec_(spec), random_(parse_method("random")), centroid_(parse_method("uniform_kcenter")) {}

    StudyOutput run() {
        by_dataset();
        fixed_budget();
        proxies();
        if (spec_.fields.contains("controlled")) controlled();
        return std::move(output_);
    }

private:
    Figures gathered(const Dataset& data, const Method& method, double keep) {
        RunSettings s;
        s.keep = keep;
        return gather(bench_, data, method, s, spec_.seeds);
    }

    void by_dataset() {
        Table t;
        t.id = spec_.id + "_redundancy";
        t.title = "Redundancy multiplicity.";
        t.caption =
            "Vectors a page over effective rank, and what random retention of 10% leaves of the full index's nDCG@5.";
        t.head = "Dataset";
        t.columns = {"type", "#vectors", "µ", "Ret.@10%", "Ret.@10%, k-center centroids"};
        t.digits = 2;
        Chart curve, scatter;
        curve.title = "Random retention";
        curve.x_title = "document vectors kept";
        curve.y_title = "nDCG@5 / full index";
        curve.log_x = curve.percent_x = curve.reverse_x = true;
        curve.x_ticks = spec_.keeps;
        curve.reference = 1;
        scatter.title = "Redundancy and retention at 10%";
        scatter.x_title = "vectors / effective rank";
        scatter.y_title = "nDCG@5 / full index";
        scatter.log_x = true;
        scatter.legend = false;
        std::vector<double> redundancy, retention;
        for (const auto& data : bench_.datasets()) {
            Line line;
            line.name = data->name();
            line.style = curve.lines.size();
            for (const double keep : spec_.keeps) {
                line.x.push_back(keep);
                line.y.push_back(gathered(*data, random_, keep).retention());
            }
            curve.lines.push_back(line);
            const Figures at10 = gathered(*data, random_, 0.1);
            redundancy.push_back(data->redundancy);
            retention.push_back(at10.retention());
            scatter.lines.push_back({data->name(),
                                     {data->redundancy},
                                     {at10.retention()},
                                     {},
                                     {},
                                     line.style,
                                     false,
                                     true,
                                     {data->name()}});
            const auto paper = [&](const char* cell) {
                return paper_cell("redundancy", cell, 0.1, data->name(), data->source.encoder);
            };
            t.rows.push_back({data->name(),
                              {{data->source.content.empty() ? "?" : data->source.content, {}},
                               {fmt::format("{:.0f}", data->mean_vectors()), paper("vectors")},
                               {fmt::format("{:.1f}", data->redundancy), paper("multiplicity")},
                               {short_number(at10.retention()), paper("retention")},
                               {short_number(gathered(*data, centroid_, 0.1).retention()), {}}},
                              false,
                              false});
        }
        output_.tables.push_back(std::move(t));
        output_.figures.push_back(
            {spec_.id + "_content",
             "Compressibility by content: random retention as fewer vectors are kept, and redundancy against retention "
             "at 10%.",
             svg_document({line_panel(curve), line_panel(scatter)}, "Compressibility by content", 2)});
        Finding f;
        f.id = "redundancy-corpus-level";
        f.statement = "Redundancy predicts retention at corpus level";
        f.quantity = "rank correlation of redundancy with retention under random 10%, over datasets";
        const double rho = rank_correlation(redundancy, retention);
        f.interval = {rho, rho, rho, false};
        f.note = fmt::format("{} datasets", redundancy.size());
        if (redundancy.size() >= 4)
            f.verdict = rho > 0.5 ? Finding::Verdict::holds
                        : rho < 0 ? Finding::Verdict::fails
                                  : Finding::Verdict::open;
        else
            f.note += "; needs four";
        output_.findings.push_back(std::move(f));
    }

    void fixed_budget() {
        const auto k = spec_.fields.value("fixed_vectors", std::size_t{32});
        double smallest = 1e300;
        for (const auto& data : bench_.datasets()) smallest = std::min(smallest, data->mean_vectors());
        const auto size = static_cast<std::size_t>(std::lround(smallest));
        Table t;
        t.id = spec_.id + "_fixed";
        t.title = fmt::format("Fixed budget of {} vectors a page.", k);
        t.caption =
            fmt::format("nDCG@5; then with pages first cut to {} random vectors, so that input size is alike.", size);
        t.head = "Dataset";
        t.columns = {"full index", "random", "k-center centroids", fmt::format("random, input {}", size),
                     fmt::format("k-center centroids, input {}", size)};
        for (const auto& data : bench_.datasets()) {
            RunSettings s;
            s.vectors = k;
            const auto cell = [&](const Method& m, std::size_t subsample, const char* paper) {
                s.subsample = subsample;
                return Cell{short_number(gather(bench_, *data, m, s, spec_.seeds).mean_ndcg()),
                            paper == nullptr ? std::nullopt
                                             : paper_cell("fixed_budget", paper, static_cast<double>(k), data->name(),
                                                          data->source.encoder)};
            };
            t.rows.push_back({data->name(),
                              {{short_number(mean(data->full_ndcg)), {}},
                               cell(random_, 0, "random"),
                               cell(centroid_, 0, nullptr),
                               cell(random_, size, "subsampled"),
                               cell(centroid_, size, nullptr)},
                              false,
                              false});
        }
        output_.tables.push_back(std::move(t));
    }

    void proxies() {
        Table t;
        t.id = spec_.id + "_proxies";
        t.title = "Per-instance density proxies and pruning sensitivity.";
        t.caption =
            "Rank correlation with the share of the relevant page's MaxSim that random retention of 10% loses, with "
            "95% intervals over queries.";
        t.head = "Dataset";
        t.columns.assign(Proxies::labels.begin(), Proxies::labels.end());
        t.digits = 2;
        double largest = 0;
        Interval widest;
        for (const auto& data : bench_.datasets()) {
            const Proxies p = page_proxies(*data, bench_.threads());
            const Figures f = gathered(*data, random_, 0.1);
            std::vector<double> loss(data->test.size(), 0);
            for (std::size_t i = 0; i < f.loss.size(); ++i) loss[i % loss.size()] += f.loss[i];
            Table::Row row{data->name(), {}, false, false};
            for (std::size_t j = 0; j < Proxies::names.size(); ++j) {
                const Interval rho = rank_correlation_interval(p.values[j], loss);
                row.cells.push_back(
                    {fmt::format("{} [{}, {}]", signed_number(rho.mean, 2), signed_number(rho.low, 2),
                                 signed_number(rho.high, 2)),
                     paper_cell("proxies", Proxies::names[j], 0.1, data->name(), data->source.encoder)});
                if (std::fabs(rho.mean) > largest) largest = std::fabs(rho.mean), widest = rho;
            }
            t.rows.push_back(std::move(row));
        }
        output_.tables.push_back(std::move(t));
        Finding f;
        f.id = "redundancy-not-per-document";
        f.statement =
            "Statistics of a single page predict its pruning sensitivity only weakly (no |rank correlation| of 0.3 or "
            "more)";
        f.quantity = "the strongest rank correlation of any proxy on any dataset";
        f.interval = widest;
        f.verdict = largest < 0.3 ? Finding::Verdict::holds
                    : std::min(std::fabs(widest.low), std::fabs(widest.high)) >= 0.3 && widest.low * widest.high > 0
                        ? Finding::Verdict::fails
                        : Finding::Verdict::open;
        output_.findings.push_back(std::move(f));
    }

    // Corpora that differ in redundancy alone: same size of pages, same queries' difficulty, same seeds.
    void controlled() {
        const auto& c = spec_.fields["controlled"];
        const auto levels = c.at("redundancy").get<std::vector<double>>();
        const auto seeds = c.at("seeds").get<std::vector<std::uint64_t>>();
        const std::vector<Method> methods = parse_methods(c.at("methods"));
        const double keep = c.value("keep", 0.1);
        Table t;
        t.id = spec_.id + "_controlled";
        t.title = fmt::format("Controlled redundancy: retention at {}.", percent(keep));
        t.caption =
            fmt::format("Synthetic pages of {} vectors; only the redundancy differs. Mean over {} corpora a level.",
                        c.at("vectors").get<int>(), seeds.size());
        t.head = "Asked redundancy";
        t.columns = {"measured µ", "nDCG@5, full"};
        for (const auto& m : methods) t.columns.push_back(m.label);
        Chart chart;
        chart.title = fmt::format("Controlled redundancy, {} kept", percent(keep));
        chart.x_title = "vectors / effective rank";
        chart.y_title = "nDCG@5 / full index";
        chart.log_x = true;
        chart.reference = 1;
        for (const auto& m : methods)
            chart.lines.push_back({m.label, {}, {}, {}, {}, chart.lines.size(), false, false, {}});
        std::vector<std::vector<double>> points(methods.size());
        std::vector<double> asked;
        for (const double level : levels) {
            std::vector<double> measured, full;
            std::vector<std::vector<double>> retention(methods.size());
            for (const auto seed : seeds) {
                nlohmann::json synthetic = {
                    {"kind", c.value("kind", "dense")}, {"vectors", c.at("vectors")}, {"documents", c.at("documents")},
                    {"queries", c.at("queries")},       {"redundancy", level},        {"seed", seed}};
                const std::string name = fmt::format("controlled-{:g}-{}", level, seed);
                corpora_.push_back(load_dataset(dataset_source({{"name", name}, {"synthetic", synthetic}}, {}), {},
                                                bench_.store().folder() / "data", bench_.threads(), bench_.progress()));
                const Dataset& data = *corpora_.back();
                measured.push_back(data.redundancy);
                full.push_back(mean(data.full_ndcg));
                asked.push_back(level);
                RunSettings s;
                s.keep = keep;
                for (std::size_t m = 0; m < methods.size(); ++m) {
                    retention[m].push_back(gather(bench_, data, methods[m], s, spec_.seeds).retention());
                    points[m].push_back(retention[m].back());
                }
            }
            Table::Row row{fmt::format("{:g}", level),
                           {{fmt::format("{:.1f}", mean(measured)), {}}, {short_number(mean(full)), {}}},
                           false,
                           false};
            for (std::size_t m = 0; m < methods.size(); ++m) {
                row.cells.push_back({short_number(mean(retention[m])), {}});
                chart.lines[m].x.push_back(mean(measured));
                chart.lines[m].y.push_back(mean(retention[m]));
                chart.lines[m].low.push_back(*std::min_element(retention[m].begin(), retention[m].end()));
                chart.lines[m].high.push_back(*std::max_element(retention[m].begin(), retention[m].end()));
            }
            t.rows.push_back(std::move(row));
        }
        output_.tables.push_back(std::move(t));
        output_.figures.push_back({spec_.id + "_controlled",
                                   "Redundancy varied alone. Bands span the corpora of a level.",
                                   svg_document({line_panel(chart)}, "Controlled redundancy")});
        Finding f;
        f.id = "redundancy-controlled";
        f.statement = "With everything else equal, more redundancy means higher retention under random pruning";
        f.quantity = "rank correlation of redundancy and retention, over synthetic corpora";
        f.interval = rank_correlation_interval(asked, points.front());
        f.verdict = judge(f.interval, Test::greater);
        f.note = fmt::format("{} corpora", asked.size());
        output_.findings.push_back(std::move(f));
    }

    Workbench& bench_;
    const StudySpec& spec_;
    Method random_, centroid_;
    std::vector<std::unique_ptr<Dataset>> corpora_;
    StudyOutput output_;
};

}  // namespace

StudyOutput study_compressibility(Workbench& bench, const StudySpec& spec) {
    return Compressibility(bench, spec).run();
}

}  // namespace marginmerge::lab
