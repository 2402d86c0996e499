#include "lab/aggregate.h"

#include <numeric>

namespace marginmerge::lab {

namespace {

void append(std::vector<double>& to, const std::vector<double>& from) { to.insert(to.end(), from.begin(), from.end()); }

}  // namespace

double rate(const std::vector<double>& part, const std::vector<double>& whole) {
    const double all = std::accumulate(whole.begin(), whole.end(), 0.0);
    return all > 0 ? std::accumulate(part.begin(), part.end(), 0.0) / all : 0;
}

double Figures::flip_rate() const { return rate(flips, pairs); }
double Figures::reversal_rate() const { return rate(reversals, pairs); }

Figures gather(Workbench& bench, const Dataset& data, const Method& method, const RunSettings& settings,
               std::span<const std::uint64_t> seeds) {
    Figures out;
    const double share = 1.0 / static_cast<double>(seeds.size());
    for (const auto seed : seeds) {
        RunSettings s = settings;
        s.seed = seed;
        const auto run = bench.run(data, method, s);
        if (!run->skipped.empty()) {
            out.skipped = run->skipped;
            return out;
        }
        append(out.ndcg, run->ndcg);
        append(out.full, run->full);
        append(out.pairs, run->pairs);
        append(out.flips, run->flips);
        append(out.reversals, run->reversals);
        append(out.loss, run->loss);
        out.seed_ndcg.push_back(mean(run->ndcg));
        out.seed_flips.push_back(rate(run->flips, run->pairs));
        out.vectors += share * run->vectors;
        out.bytes += share * run->bytes;
        for (const auto& [name, value] : run->extra) out.extra[name] += share * value;
    }
    return out;
}

Interval ndcg_difference(std::span<const Figures> a, std::span<const Figures> b) {
    std::vector<Paired> pairs;
    for (std::size_t d = 0; d < a.size(); ++d)
        if (a[d].there() && b[d].there() && a[d].ndcg.size() == b[d].ndcg.size())
            pairs.push_back({a[d].ndcg, b[d].ndcg});
    return stratified_difference(pairs);
}

Interval flip_difference(std::span<const Figures> a, std::span<const Figures> b) {
    std::vector<PairedRates> pairs;
    for (std::size_t d = 0; d < a.size(); ++d)
        if (a[d].there() && b[d].there() && a[d].flips.size() == b[d].flips.size())
            pairs.push_back({a[d].flips, a[d].pairs, b[d].flips, b[d].pairs});
    BootstrapOptions options;
    options.least = 0;
    return stratified_rate_difference(pairs, options);
}

}  // namespace marginmerge::lab
