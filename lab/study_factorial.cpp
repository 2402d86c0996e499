// Anchor rule x representative x objective: cells, pairwise differences, main effects, interaction, anchor overlap.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "core/parallel.h"
#include "core/random.h"
#include "kernels/convert.h"
#include "lab/chart.h"
#include "lab/grid.h"
#include "lab/paper.h"
#include "merge/construct.h"

namespace marginmerge::lab {

namespace {

std::string anchor_label(const std::string& anchors) {
    if (anchors == "kcenter") return "k-center anchors";
    if (anchors == "coverage") return "Coverage-aware anchors";
    return "Random anchors";
}

struct Representative {
    std::string id, label;
};

// Fixed representatives, then one learned for each objective.
std::vector<Representative> representatives(const std::vector<std::string>& objectives) {
    std::vector<Representative> out = {
        {"anchor", "Retained anchor"}, {"uniform", "Uniform centroid"}, {"response", "Response centroid"}};
    for (const auto& o : objectives)
        out.push_back({"learned_" + o, o == "score" ? "Learned, score recon." : "Learned, " + o});
    return out;
}

Method cell_method(const std::string& anchors, const Representative& r) {
    nlohmann::json m = {{"id", anchors + "_" + r.id}, {"label", r.label}, {"kind", "compress"}, {"anchors", anchors}};
    if (r.id.starts_with("learned_")) {
        const std::string objective = r.id.substr(8);
        m["preset"] = objective == "full" ? "paper" : objective;
    } else {
        m["preset"] = "paper";
        m["representative"] = r.id;
    }
    m["seeded"] = anchors != "coverage" || r.id.starts_with("learned_");
    m["ours"] = anchors == "coverage" && r.id == "learned_full";
    return parse_method(m);
}

class Factorial {
public:
    Factorial(Workbench& bench, const StudySpec& spec)
        : bench_(bench),
          spec_(spec),
          anchors_(spec.fields.at("anchors").get<std::vector<std::string>>()),
          objectives_(spec.fields.at("objectives").get<std::vector<std::string>>()),
          representatives_(representatives(objectives_)),
          grid_(bench, methods(), spec.keeps, spec) {}

    StudyOutput run() {
        cells();
        differences();
        effects();
        overlap();
        figure();
        return std::move(output_);
    }

private:
    std::vector<Method> methods() const {
        std::vector<Method> all;
        for (const auto& a : anchors_)
            for (const auto& r : representatives_) all.push_back(cell_method(a, r));
        return all;
    }
    const std::vector<Figures>& at(const std::string& anchors, const std::string& representative) const {
        return grid_.at(anchors + "_" + representative, spec_.keeps.front());
    }
    bool has(const std::string& anchors) const {
        return std::find(anchors_.begin(), anchors_.end(), anchors) != anchors_.end();
    }

    void cells() {
        for (const bool flips : {false, true}) {
            Table all = method_table(bench_, grid_, flips ? "" : "factorial",
                                     flips ? &Figures::flip_rate : &Figures::mean_ndcg, flips ? 4 : 3, !flips);
            Table banded = all;
            banded.rows.clear();
            for (std::size_t a = 0; a < anchors_.size(); ++a) {
                banded.rows.push_back({anchor_label(anchors_[a]), {}, true, false});
                for (std::size_t r = 0; r < representatives_.size(); ++r)
                    banded.rows.push_back(std::move(all.rows[a * representatives_.size() + r]));
            }
            banded.id = spec_.id + (flips ? "_flips" : "");
            banded.head = "Representative / loss";
            banded.title = flips ? "Ranking flips of the factorial." : spec_.title + ".";
            banded.caption = flips ? "Share of (relevant, other) pairs in another order than in the full index."
                                   : spec_.fields.value("caption", "");
            output_.tables.push_back(std::move(banded));
        }
    }

    void add_difference(Table& table, const std::string& name, const std::vector<Figures>& a,
                        const std::vector<Figures>& b, const std::string& id = {}, const std::string& statement = {},
                        Test test = Test::greater, bool flips = false) {
        const Interval n = ndcg_difference(a, b), f = flip_difference(a, b);
        const auto text = [](const Interval& i, int digits) {
            return fmt::format("{} [{}, {}]", signed_number(i.mean, digits), signed_number(i.low, digits),
                               signed_number(i.high, digits));
        };
        table.rows.push_back(
            {name, {{text(n, 3), {}}, {n.supported ? "yes" : "no", {}}, {text(f, 4), {}}}, false, false});
        if (id.empty()) return;
        Finding finding{id,
                        statement,
                        {},
                        flips ? f : n,
                        (flips ? "flip rate: " : "nDCG@5: ") + name + " at " + percent(spec_.keeps.front()),
                        ""};
        finding.verdict = judge(finding.interval, test);
        output_.findings.push_back(std::move(finding));
    }

    void differences() {
        Table t;
        t.id = spec_.id + "_differences";
        t.title = fmt::format("Pairwise differences at {}.", percent(spec_.keeps.front()));
        t.caption =
            "Paired bootstrap over (seed, query) observations, 2,000 draws, mean over datasets; supported: the "
            "interval excludes zero and the difference is at least 0.005.";
        t.head = "Comparison";
        t.columns = {"nDCG@5", "supported", "flip rate"};
        const std::string best = "learned_" + objectives_.front();
        for (const auto& a : anchors_) {
            const std::string with = ", " + anchor_label(a);
            for (const auto& o : objectives_)
                add_difference(
                    t, "learned (" + o + ") - response" + with, at(a, "learned_" + o), at(a, "response"),
                    "learned-vs-response-" + a + "-" + o,
                    fmt::format("Learned weights ({}) keep at least what the fixed response centroid keeps ({})", o,
                                anchor_label(a)),
                    Test::at_least);
            add_difference(t, "learned (" + objectives_.front() + ") - uniform" + with, at(a, best), at(a, "uniform"),
                           "learned-vs-uniform-" + a,
                           fmt::format("Learned weights keep at least what plain means keep ({})", anchor_label(a)),
                           Test::at_least);
            add_difference(t, "uniform - anchor" + with, at(a, "uniform"), at(a, "anchor"), "means-beat-picks-" + a,
                           fmt::format("Averages beat picks ({})", anchor_label(a)));
        }
        if (has("coverage") && has("kcenter")) {
            for (const auto& r : representatives_) {
                const bool anchor = r.id == "anchor";
                add_difference(t, "coverage - k-center, " + r.label, at("coverage", r.id), at("kcenter", r.id),
                               anchor ? "coverage-helps-fixed" : "",
                               "Coverage anchors keep more nDCG@5 when anchors are kept as they are");
            }
            add_difference(t, "coverage - k-center, learned (" + objectives_.back() + ")",
                           at("coverage", "learned_" + objectives_.back()),
                           at("kcenter", "learned_" + objectives_.back()), "coverage-lowers-flips",
                           "Coverage anchors lower flips with learned representatives", Test::less, true);
        }
        if (has("coverage") && objectives_.size() > 1)
            add_difference(t, fmt::format("{} - {}, learned, coverage", objectives_[0], objectives_[1]),
                           at("coverage", "learned_" + objectives_[0]), at("coverage", "learned_" + objectives_[1]),
                           "score-equals-margin", "Score reconstruction and margin matching perform alike",
                           Test::equal);
        output_.tables.push_back(std::move(t));
    }

    // Means over the cells of a level, averaged over datasets; the interaction is the difference of two differences.
    void effects() {
        Table t;
        t.id = spec_.id + "_effects";
        t.title = fmt::format("Main effects and interaction at {}.", percent(spec_.keeps.front()));
        t.caption = "Means over all cells of a level and over datasets.";
        t.head = "Level";
        t.columns = {"nDCG@5", "flip rate"};
        const auto level = [&](const std::string& name, const std::vector<std::string>& ids) {
            double ndcg = 0, flips = 0;
            for (const auto& id : ids) {
                ndcg += grid_.average(id, spec_.keeps.front(), &Figures::mean_ndcg).value_or(0) /
                        static_cast<double>(ids.size());
                flips += grid_.average(id, spec_.keeps.front(), &Figures::flip_rate).value_or(0) /
                         static_cast<double>(ids.size());
            }
            t.rows.push_back({name, {{short_number(ndcg), {}}, {short_number(flips, 4), {}}}, false, false});
        };
        t.rows.push_back({"Anchor rule", {}, true, false});
        for (const auto& a : anchors_) {
            std::vector<std::string> ids;
            for (const auto& r : representatives_) ids.push_back(a + "_" + r.id);
            level(anchor_label(a), ids);
        }
        t.rows.push_back({"Representative", {}, true, false});
        for (const auto& r : representatives_) {
            std::vector<std::string> ids;
            for (const auto& a : anchors_) ids.push_back(a + "_" + r.id);
            level(r.label, ids);
        }
        if (has("coverage") && has("kcenter")) {
            const std::string learned = "learned_" + objectives_.back();
            std::vector<Paired> pairs;
            for (std::size_t d = 0; d < bench_.datasets().size(); ++d) {
                const Figures &ca = at("coverage", "anchor")[d], &ka = at("kcenter", "anchor")[d],
                              &cl = at("coverage", learned)[d], &kl = at("kcenter", learned)[d];
                if (!ca.there() || !ka.there() || !cl.there() || !kl.there()) continue;
                Paired p;
                for (std::size_t i = 0; i < ca.ndcg.size(); ++i) {
                    p.a.push_back(ca.ndcg[i] - ka.ndcg[i]);
                    p.b.push_back(cl.ndcg[i] - kl.ndcg[i]);
                }
                pairs.push_back(std::move(p));
            }
            Finding finding;
            finding.id = "interaction";
            finding.statement =
                "Learning reduces sensitivity to the anchor rule: coverage gains more over k-center with kept anchors "
                "than with learned weights";
            finding.quantity = "interaction in nDCG@5 at " + percent(spec_.keeps.front());
            finding.interval = stratified_difference(pairs);
            finding.verdict = judge(finding.interval, Test::greater);
            t.rows.push_back({"Interaction", {}, true, false});
            t.rows.push_back({"(coverage - k-center | anchor) - (coverage - k-center | learned)",
                              {{fmt::format("{} [{}, {}]", signed_number(finding.interval.mean),
                                            signed_number(finding.interval.low), signed_number(finding.interval.high)),
                                {}},
                               {}},
                              false,
                              false});
            output_.findings.push_back(std::move(finding));
        }
        output_.tables.push_back(std::move(t));
    }

    std::vector<std::int32_t> anchors_of(const Dataset& data, const Model& model, const std::string& rule,
                                         std::uint64_t seed, std::size_t p, PageWorkspace& w) const {
        const Matrix v = to_float(data.documents.vectors(p));
        Recipe recipe;
        recipe.anchors = rule;
        recipe.fill = "index";
        const PageInput page{v, {}, mix_seed(seed, p)};
        page_responses(page, model, recipe, w);
        choose_anchors(page, recipe, Budget{spec_.keeps.front()}.count(v.rows()), w);
        auto anchors = w.clusters.anchors;
        std::sort(anchors.begin(), anchors.end());
        return anchors;
    }

    void overlap() {
        constexpr std::size_t pages = 100;
        Table t;
        t.id = spec_.id + "_overlap";
        t.title = "Anchor overlap.";
        t.caption = fmt::format(
            "Mean Jaccard index of two rules' anchor sets of a page at {}, on up to {} pages of each dataset.",
            percent(spec_.keeps.front()), pages);
        t.head = "Rules";
        struct Pair {
            std::string a, b;
            std::uint64_t seed_b;
        };
        std::vector<Pair> pairs;
        for (std::size_t i = 0; i < anchors_.size(); ++i)
            for (std::size_t j = i + 1; j < anchors_.size(); ++j) pairs.push_back({anchors_[i], anchors_[j], 42});
        for (const auto& a : anchors_)
            if (a != "coverage") pairs.push_back({a, a, 43});
        for (const auto& p : pairs)
            t.rows.push_back({p.a + " / " + p.b + (p.seed_b != 42 ? ", another seed" : ""), {}, false, false});
        const Method bank = parse_method({{"id", "bank"},
                                          {"kind", "compress"},
                                          {"preset", "paper"},
                                          {"anchors", "coverage"},
                                          {"representative", "response"}});
        for (const auto& data : bench_.datasets()) {
            const auto fitted = bench_.model(*data, bank, {});
            t.columns.push_back(data->name());
            const std::size_t count = std::min(pages, data->documents.size());
            for (std::size_t r = 0; r < pairs.size(); ++r) {
                if (!fitted) {
                    t.rows[r].cells.push_back({"–", {}});
                    continue;
                }
                std::vector<double> jaccard(count);
                std::vector<PageWorkspace> workspaces(resolve_threads(bench_.threads()));
                parallel_for_workers(count, bench_.threads(), [&](std::size_t i, std::size_t worker) {
                    const std::size_t p = i * data->documents.size() / count;
                    const auto a = anchors_of(*data, fitted->model, pairs[r].a, 42, p, workspaces[worker]);
                    const auto b = anchors_of(*data, fitted->model, pairs[r].b, pairs[r].seed_b, p, workspaces[worker]);
                    std::vector<std::int32_t> both;
                    std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
                    jaccard[i] =
                        static_cast<double>(both.size()) / static_cast<double>(a.size() + b.size() - both.size());
                });
                t.rows[r].cells.push_back({short_number(mean(jaccard)), {}});
            }
        }
        output_.tables.push_back(std::move(t));
    }

    void figure() {
        std::vector<std::string> panels;
        for (const bool flips : {false, true}) {
            Bars bars;
            bars.title = flips ? "Flips, mean over datasets" : "nDCG@5, mean over datasets";
            bars.y_title = flips ? "flip rate" : "nDCG@5";
            for (const auto& r : representatives_) {
                std::string name = r.id;
                if (name.starts_with("learned_")) name = "l-" + name.substr(8);
                bars.groups.push_back(name);
            }
            for (std::size_t a = 0; a < anchors_.size(); ++a) {
                Bars::Series series{anchor_label(anchors_[a]), {}, {}, {}, a};
                for (const auto& r : representatives_)
                    series.values.push_back(grid_
                                                .average(anchors_[a] + "_" + r.id, spec_.keeps.front(),
                                                         flips ? &Figures::flip_rate : &Figures::mean_ndcg)
                                                .value_or(std::nan("")));
                bars.series.push_back(std::move(series));
            }
            panels.push_back(bar_panel(bars));
        }
        output_.figures.push_back({spec_.id + "_cells",
                                   fmt::format("The factorial at {}: representatives along the axis (l- = learned with "
                                               "that objective), anchor rules in colour.",
                                               percent(spec_.keeps.front())),
                                   svg_document(panels, "Factorial")});
    }

    Workbench& bench_;
    const StudySpec& spec_;
    std::vector<std::string> anchors_, objectives_;
    std::vector<Representative> representatives_;
    Grid grid_;
    StudyOutput output_;
};

}  // namespace

StudyOutput study_factorial(Workbench& bench, const StudySpec& spec) { return Factorial(bench, spec).run(); }

}  // namespace marginmerge::lab
