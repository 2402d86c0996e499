#include "learn/trainer.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/fail.h"
#include "core/parallel.h"
#include "core/random.h"

namespace marginmerge {

namespace {

bool improves(CheckpointRule rule, const ValidationFigures& now, const ValidationFigures& best) {
    if (rule == CheckpointRule::fidelity) return now.error < best.error;
    return now.better_by_ndcg(best);
}

void check_diverged(const TrainerState& state) {
    for (std::size_t i = 0; i < Parameters::count; ++i) {
        if (!std::isfinite(state.parameters.get(i)))
            fail(ErrorCode::invalid_argument, "training: expected finite weights, found {} in epoch {}; lower --lr",
                 state.parameters.get(i), state.epoch + 1);
    }
}

std::vector<std::size_t> shuffled(std::size_t count, std::uint64_t seed) {
    std::vector<std::size_t> order(count);
    std::iota(order.begin(), order.end(), std::size_t{0});
    Random random(seed);
    random.shuffle(std::span(order));
    return order;
}

}  // namespace

Network initial_network(std::uint64_t seed, double output_scale) {
    Network network;
    Random random(mix_seed(seed, 0x6E6574));
    const auto fill = [&](std::size_t first, std::size_t last, std::size_t fan_in, double scale) {
        const double bound = scale / std::sqrt(static_cast<double>(fan_in));
        for (std::size_t i = first; i < last; ++i) {
            network.parameters[i] = static_cast<float>((2 * random.uniform() - 1) * bound);
        }
    };
    fill(Network::w1, Network::w2, feature_count, 1);
    fill(Network::w2, Network::w3, hidden_1, 1);
    fill(Network::w3, Network::parameter_count, hidden_2, output_scale);
    return network;
}

ValidationFigures judge_parameters(std::span<const ValidationSide> sides, const Parameters& parameters, double clip,
                                   std::size_t threads) {
    constexpr std::size_t together = 8;  // pages have too few representatives to fill the kernel's tiles alone
    struct Worker {
        PagePass pass;
        Matrix representatives;             // of pages that are scored together
        std::vector<std::int64_t> offsets;  // their rows
        std::vector<float> scores;          // [queries, pages]
    };
    std::vector<Worker> workers(resolve_threads(threads));
    std::vector<ValidationFigures> figures;
    for (const ValidationSide& side : sides) {
        Matrix scores(side.queries.size(), side.pages.size());
        const PreparedBatch batch = batch_of(side.queries);
        const auto judge = [&](std::size_t g, std::size_t worker) {
            Worker& w = workers[worker];
            const std::size_t first = g * together;
            const auto pages = std::span(side.pages).subspan(first, std::min(together, side.pages.size() - first));
            w.offsets.assign(1, 0);
            for (const TrainingPage* page : pages)
                w.offsets.push_back(w.offsets.back() + static_cast<std::int64_t>(page->clusters()));
            w.representatives.reshape(static_cast<std::size_t>(w.offsets.back()), pages.front()->vectors.dim);
            for (std::size_t i = 0; i < pages.size(); ++i) {
                w.pass.forward(*pages[i], parameters, clip, false);
                const ConstMatrix r = w.pass.representatives();
                std::copy_n(r.data, r.size(), w.representatives.row(static_cast<std::size_t>(w.offsets[i])));
            }
            w.scores.resize(side.queries.size() * pages.size());
            maxsim_many(batch, ConstMatrix(w.representatives), w.offsets, w.scores);
            for (std::size_t q = 0; q < side.queries.size(); ++q)
                std::copy_n(w.scores.data() + q * pages.size(), pages.size(), scores.row(q) + first);
        };
        parallel_for_workers((side.pages.size() + together - 1) / together, threads, judge);
        figures.push_back(validation_figures(side.full_scores, scores, side.relevant));
    }
    return average_figures(figures);
}

void train(const TrainerOptions& o, std::span<const TrainingExample> examples,
           std::span<const ValidationSide> validation, TrainerState& state,
           const std::function<void(const TrainerState&)>& save) {
    const auto record = [&](const LossTerms& loss) {
        const ValidationFigures figures = judge_parameters(validation, state.parameters, o.clip, o.threads);
        state.curve.push_back({state.epoch, loss, figures});
        if (!state.started || improves(o.rule, figures, state.best_figures)) {
            state.best = state.parameters;
            state.best_figures = figures;
            state.best_epoch = state.epoch;
            state.idle = 0;
        } else {
            ++state.idle;
        }
        state.started = true;
        if (o.progress) {
            o.progress(
                {"train", "epochs", state.epoch, o.epochs,
                 fmt::format("loss {:.4f} (margin {:.4f} rank {:.4f} list {:.4f} score {:.4f})  validation nDCG@5 "
                             "{:.4f} flips {:.4f} error {:.4f}",
                             loss.total, loss.margin, loss.rank, loss.list, loss.score, figures.ndcg, figures.flips,
                             figures.error)});
        }
    };
    if (!state.started) record({});
    BatchPass batch;
    while (state.epoch < o.epochs && state.idle < o.patience && !examples.empty()) {
        const auto order = shuffled(examples.size(), mix_seed(o.seed, 1000 + state.epoch));
        LossTerms sum;
        // A log shorter than one update still trains, with one update an epoch.
        const std::size_t step = std::min(o.accumulate, examples.size());
        for (std::size_t first = 0; first < order.size(); first += step) {
            std::vector<TrainingExample> group;
            for (std::size_t i = first; i < std::min(order.size(), first + step); ++i)
                group.push_back(examples[order[i]]);
            Gradient gradient{};
            for (const LossTerms& loss : batch.run(o.objective, state.parameters, o.clip, group,
                                                   static_cast<double>(step), o.threads, gradient)) {
                sum += loss;
            }
            if (group.size() == step) adamw_step(o.optimiser, gradient, state.optimiser, state.parameters);
            check_diverged(state);
        }
        ++state.epoch;
        record(sum.scaled(1.0 / static_cast<double>(examples.size())));
        if (save) save(state);
    }
}

}  // namespace marginmerge
