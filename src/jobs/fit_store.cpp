#include "jobs/fit_store.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/fail.h"
#include "io/folders.h"
#include "io/safetensors.h"

namespace marginmerge {

namespace fs = std::filesystem;

namespace {

constexpr const char* mining_schema = "marginmerge.mining";
constexpr const char* checkpoint_schema = "marginmerge.checkpoint";

using Json = nlohmann::json;

// Opens a file of ours with this schema and key; nothing when there is none, it belongs to other work
// or it is damaged: the work is then simply done again.
template <class Read>
auto read_if_ours(const fs::path& path, const char* schema, const std::string& key, Read read)
    -> std::optional<decltype(read(std::declval<const SafetensorsFile&>()))> {
    std::error_code ignored;
    if (!fs::exists(path, ignored)) return std::nullopt;
    try {
        const SafetensorsFile file(path);
        const auto& m = file.metadata();
        const auto matches = [&](const char* name, const std::string& value) {
            const auto found = m.find(name);
            return found != m.end() && found->second == value;
        };
        if (!matches("schema", schema) || !matches("key", key)) return std::nullopt;
        return read(file);
    } catch (const Error&) {
        return std::nullopt;
    } catch (const Json::exception&) {
        return std::nullopt;
    }
}

[[noreturn]] void damaged(const SafetensorsFile& file) {
    fail(ErrorCode::corrupt, "{}: expected matching tensor sizes, found others", file.path());
}

Json to_json(const ValidationFigures& f) { return {f.ndcg, f.full_ndcg, f.flips, f.error, f.queries}; }

ValidationFigures figures_from(const Json& j) {
    return {j.at(0), j.at(1), j.at(2), j.at(3), j.at(4).get<std::size_t>()};
}

Json to_json(const LossTerms& l) { return {l.margin, l.rank, l.list, l.score, l.weight, l.entropy, l.anchor, l.total}; }

LossTerms losses_from(const Json& j) {
    return {j.at(0), j.at(1), j.at(2), j.at(3), j.at(4), j.at(5), j.at(6), j.at(7)};
}

std::vector<float> flat(const Parameters& p) {
    std::vector<float> values(Parameters::count);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = p.get(i);
    return values;
}

Parameters parameters_from(const SafetensorsFile& file, const char* name) {
    const auto values = file.require_span<float>(name, DType::f32, 1);
    if (values.size() != Parameters::count) damaged(file);
    Parameters p;
    for (std::size_t i = 0; i < values.size(); ++i) p.at(i) = values[i];
    return p;
}

}  // namespace

void FitStore::make_folder() const { marginmerge::make_folder(folder_); }

fs::path FitStore::mining_file(const std::string& key) const {
    return folder_ / ("mining-" + key.substr(0, 16) + ".safetensors");
}

std::optional<MiningState> FitStore::load_mining(const std::string& key) const {
    return read_if_ours(mining_file(key), mining_schema, key, [](const SafetensorsFile& file) {
        const auto counts = file.require_span<std::int64_t>("counts", DType::i64, 2);
        const auto documents = file.require_span<std::int64_t>("documents", DType::i64, 1);
        const auto scores = file.require_span<float>("scores", DType::f32, 1);
        const auto positives = file.require_span<float>("positive_scores", DType::f32, 1);
        MiningState state;
        state.next = std::stoull(file.metadata().at("next"));
        std::size_t top = 0, positive = 0;
        for (std::size_t q = 0; 2 * q < counts.size(); ++q) {
            MinedQuery mined;
            const auto kept = static_cast<std::size_t>(counts[2 * q]);
            const auto judged = static_cast<std::size_t>(counts[2 * q + 1]);
            if (kept > documents.size() - top || documents.size() != scores.size() ||
                judged > positives.size() - positive) {
                damaged(file);
            }
            for (std::size_t i = 0; i < kept; ++i, ++top) {
                mined.top.push_back({static_cast<std::size_t>(documents[top]), scores[top]});
            }
            for (std::size_t i = 0; i < judged; ++i) mined.positive_scores.push_back(positives[positive++]);
            state.queries.push_back(std::move(mined));
        }
        return state;
    });
}

void FitStore::save_mining(const std::string& key, const MiningState& state) const {
    make_folder();
    std::vector<std::int64_t> counts, documents;
    std::vector<float> scores, positives;
    for (const auto& mined : state.queries) {
        counts.push_back(static_cast<std::int64_t>(mined.top.size()));
        counts.push_back(static_cast<std::int64_t>(mined.positive_scores.size()));
        for (const auto& s : mined.top) {
            documents.push_back(static_cast<std::int64_t>(s.document));
            scores.push_back(s.score);
        }
        positives.insert(positives.end(), mined.positive_scores.begin(), mined.positive_scores.end());
    }
    SafetensorsWriter writer(mining_file(key),
                             {{"schema", mining_schema}, {"key", key}, {"next", std::to_string(state.next)}});
    writer.declare("counts", DType::i64, {state.queries.size(), 2});
    writer.declare("documents", DType::i64, {documents.size()});
    writer.declare("scores", DType::f32, {scores.size()});
    writer.declare("positive_scores", DType::f32, {positives.size()});
    writer.write("counts", 0, std::span<const std::int64_t>(counts));
    writer.write("documents", 0, std::span<const std::int64_t>(documents));
    writer.write("scores", 0, std::span<const float>(scores));
    writer.write("positive_scores", 0, std::span<const float>(positives));
    writer.commit();
}

std::optional<TrainerState> FitStore::load_training(const std::string& key) const {
    return read_if_ours(training_file(), checkpoint_schema, key, [](const SafetensorsFile& file) {
        TrainerState state;
        const Json j = Json::parse(file.metadata().at("state"));
        state.parameters = parameters_from(file, "parameters");
        state.best = parameters_from(file, "best");
        const auto first = file.require_span<double>("first_moment", DType::f64, 1);
        const auto second = file.require_span<double>("second_moment", DType::f64, 1);
        if (first.size() != Parameters::count || second.size() != Parameters::count) damaged(file);
        std::copy(first.begin(), first.end(), state.optimiser.first.begin());
        std::copy(second.begin(), second.end(), state.optimiser.second.begin());
        state.optimiser.steps = j.at("steps");
        state.best_figures = figures_from(j.at("best_figures"));
        state.best_epoch = j.at("best_epoch");
        state.epoch = j.at("epoch");
        state.idle = j.at("idle");
        state.started = true;
        for (const auto& e : j.at("curve")) {
            state.curve.push_back({e.at(0).get<std::size_t>(), losses_from(e.at(1)), figures_from(e.at(2))});
        }
        return state;
    });
}

void FitStore::save_training(const std::string& key, const TrainerState& state) const {
    make_folder();
    Json j{{"steps", state.optimiser.steps},
           {"best_figures", to_json(state.best_figures)},
           {"best_epoch", state.best_epoch},
           {"epoch", state.epoch},
           {"idle", state.idle},
           {"curve", Json::array()}};
    for (const auto& e : state.curve) j["curve"].push_back({e.epoch, to_json(e.loss), to_json(e.validation)});
    SafetensorsWriter writer(training_file(), {{"schema", checkpoint_schema}, {"key", key}, {"state", j.dump()}});
    writer.declare("first_moment", DType::f64, {Parameters::count});
    writer.declare("second_moment", DType::f64, {Parameters::count});
    writer.declare("parameters", DType::f32, {Parameters::count});
    writer.declare("best", DType::f32, {Parameters::count});
    writer.write("first_moment", 0, std::span<const double>(state.optimiser.first));
    writer.write("second_moment", 0, std::span<const double>(state.optimiser.second));
    const auto now = flat(state.parameters), best = flat(state.best);
    writer.write("parameters", 0, std::span<const float>(now));
    writer.write("best", 0, std::span<const float>(best));
    writer.commit();
}

void FitStore::finish() const {
    std::error_code ignored;
    fs::remove(training_file(), ignored);
    if (!temporary_ || !fs::is_directory(folder_, ignored)) return;
    // Only what we wrote: the folder may hold something of the user's.
    for (const auto& entry : fs::directory_iterator(folder_, ignored)) {
        if (entry.path().filename().string().rfind("mining-", 0) == 0) fs::remove(entry.path(), ignored);
    }
    fs::remove(folder_, ignored);
}

}  // namespace marginmerge
