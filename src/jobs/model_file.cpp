#include "marginmerge/jobs/model_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include <fmt/ranges.h>

#include "core/fail.h"
#include "io/multi_vector_file.h"
#include "io/safetensors.h"
#include "jobs/recipe_json.h"
#include "marginmerge/core/version.h"
#include "marginmerge/jobs/presets.h"
#include "merge/fitted.h"

namespace marginmerge {

namespace {

constexpr std::uint64_t largest_dimension = 65536;

struct NetworkPart {
    const char* name;
    std::size_t begin;
    std::vector<std::uint64_t> shape;
};

// The network's tensors and where each starts in Network::parameters.
const std::vector<NetworkPart>& network_parts() {
    static const std::vector<NetworkPart> parts = {{"w1", Network::w1, {hidden_1, feature_count}},
                                                   {"b1", Network::b1, {hidden_1}},
                                                   {"w2", Network::w2, {hidden_2, hidden_1}},
                                                   {"b2", Network::b2, {hidden_2}},
                                                   {"w3", Network::w3, {1, hidden_2}},
                                                   {"b3", Network::b3, {1}}};
    return parts;
}

std::string shape_text(const std::vector<std::uint64_t>& shape) { return fmt::format("[{}]", fmt::join(shape, ",")); }

// The finite values of an F32 tensor of exactly this shape.
std::span<const float> values(const SafetensorsFile& file, const std::string& name,
                              const std::vector<std::uint64_t>& shape) {
    const TensorInfo& info = file.require(name, DType::f32, shape.size());
    if (info.shape != shape)
        fail(ErrorCode::corrupt, "{}: tensor '{}': expected shape {}, found {}", file.path(), name, shape_text(shape),
             shape_text(info.shape));
    const auto span = file.require_span<float>(name, DType::f32, shape.size());
    for (std::size_t i = 0; i < span.size(); ++i)
        if (!std::isfinite(span[i]))
            fail(ErrorCode::corrupt, "{}: tensor '{}': expected finite values, found {} at element {}", file.path(),
                 name, span[i], i);
    return span;
}

// A [rows, d] matrix whose number of rows is free.
Matrix matrix(const SafetensorsFile& file, const std::string& name) {
    const TensorInfo& info = file.require(name, DType::f32, 2);
    if (info.shape[0] == 0 || info.shape[1] == 0 || info.shape[1] > largest_dimension)
        fail(ErrorCode::corrupt, "{}: tensor '{}': expected at least one row of 1 to {} columns, found shape {}",
             file.path(), name, largest_dimension, shape_text(info.shape));
    const auto span = values(file, name, info.shape);
    return Matrix(ConstMatrix{span.data(), info.shape[0], info.shape[1]});
}

// Non-negative weights, not all zero, as they stand.
std::vector<float> weights(const SafetensorsFile& file, const std::string& name, std::uint64_t count) {
    const auto span = values(file, name, {count});
    double sum = 0;
    for (const float w : span) {
        if (w < 0)
            fail(ErrorCode::corrupt, "{}: tensor '{}': expected no negative value, found {}", file.path(), name, w);
        sum += w;
    }
    if (!(sum > 0))
        fail(ErrorCode::corrupt, "{}: tensor '{}': expected a positive sum, found {}", file.path(), name, sum);
    return {span.begin(), span.end()};
}

std::vector<std::string> lines(const SafetensorsFile& file, const char* name) {
    std::vector<std::string> out;
    if (file.find(name) == nullptr) return out;
    const auto bytes = file.require_span<std::uint8_t>(name, DType::u8, 1);
    std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    while (!text.empty()) {
        const auto end = std::min(text.find('\n'), text.size());
        out.emplace_back(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return out;
}

void check_schema(const SafetensorsFile& file) {
    const auto& metadata = file.metadata();
    if (const auto schema = metadata.find("schema"); schema != metadata.end() && schema->second != model_schema)
        fail(ErrorCode::unsupported, "{}: schema: expected {}, found {}", file.path(), model_schema, schema->second);
    if (const auto found = metadata.find("version"); found != metadata.end() && found->second != schema_version)
        fail(ErrorCode::unsupported, "{}: version: expected {}, found {}", file.path(), schema_version, found->second);
}

std::string json_text(const SafetensorsFile& file, const std::string& key) {
    const auto found = file.metadata().find(key);
    if (found == file.metadata().end() || found->second.empty()) return {};
    if (!nlohmann::json::accept(found->second))
        fail(ErrorCode::corrupt, "{}: metadata '{}': expected JSON, found {}", file.path(), key,
             found->second.substr(0, 60));
    return found->second;
}

void load_bank(const SafetensorsFile& file, PrototypeBank& bank) {
    if (file.find("prototypes") == nullptr) {
        if (file.find("frequencies") != nullptr)
            fail(ErrorCode::corrupt, "{}: expected a tensor 'prototypes' beside 'frequencies', found none",
                 file.path());
        return;
    }
    bank.prototypes = matrix(file, "prototypes");
    bank.frequencies = weights(file, "frequencies", bank.prototypes.rows());
    bank.query_ids = lines(file, "bank_query_ids");
    bank.excluded_ids = lines(file, "bank_excluded_ids");
}

void load_network(const SafetensorsFile& file, Model& model) {
    if (file.find("feature_mean") != nullptr || file.find("feature_std") != nullptr) {
        const auto mean = values(file, "feature_mean", {feature_count});
        const auto deviation = values(file, "feature_std", {feature_count});
        FeatureScaling scaling;
        std::copy(mean.begin(), mean.end(), scaling.mean.begin());
        for (std::size_t i = 0; i < feature_count; ++i) {
            if (!(deviation[i] > 0))
                fail(ErrorCode::corrupt, "{}: tensor 'feature_std': expected positive values, found {} at element {}",
                     file.path(), deviation[i], i);
            scaling.deviation[i] = deviation[i];
        }
        model.scaling = scaling;
    }
    const auto& parts = network_parts();
    if (std::none_of(parts.begin(), parts.end(), [&](const NetworkPart& p) { return file.find(p.name) != nullptr; }))
        return;
    if (!model.scaling)
        fail(ErrorCode::corrupt, "{}: expected tensors 'feature_mean' and 'feature_std' beside the network, found none",
             file.path());
    Network network;
    for (const NetworkPart& part : parts) {
        const auto span = values(file, part.name, part.shape);
        std::copy(span.begin(), span.end(), network.parameters.begin() + static_cast<std::ptrdiff_t>(part.begin));
    }
    model.network = network;
}

void load_probes(const SafetensorsFile& file, ProbeSet& probes) {
    if (file.find("probes") == nullptr) {
        if (file.find("probe_weights") != nullptr)
            fail(ErrorCode::corrupt, "{}: expected a tensor 'probes' beside 'probe_weights', found none", file.path());
        return;
    }
    probes.tokens = matrix(file, "probes");
    const std::size_t count = probes.tokens.rows();
    probes.weights = file.find("probe_weights") != nullptr
                         ? weights(file, "probe_weights", count)
                         : std::vector<float>(count, 1.0f / static_cast<float>(count));
}

// Names and shapes of what `fitted` stores; 0 stands for "any".
struct FittedTensor {
    const char* name;
    Matrix FittedParts::*part;
    std::uint64_t rows;
    std::uint64_t columns;
};

std::vector<FittedTensor> fitted_tensors(std::uint64_t probes, std::uint64_t d) {
    return {{"fitted_metric", &FittedParts::metric, d, d},
            {"fitted_prior", &FittedParts::prior, d, d},
            {"fitted_prior_inverse", &FittedParts::prior_inverse, d, d},
            {"fitted_images", &FittedParts::images, probes, d},
            {"fitted_start_map", &FittedParts::start_map, 2 * d + 3, d}};
}

struct ProbeTensor {
    const char* name;
    std::vector<float> FittedParts::*part;
};
constexpr std::array probe_tensors = {ProbeTensor{"probe_offsets", &FittedParts::offsets},
                                      ProbeTensor{"probe_usual", &FittedParts::usual},
                                      ProbeTensor{"probe_spread", &FittedParts::spread}};

void load_fitted(const SafetensorsFile& file, Model& model) {
    const std::uint64_t probes = model.probes.tokens.rows(), d = model.probes.tokens.cols();
    for (const FittedTensor& tensor : fitted_tensors(probes, d)) {
        if (file.find(tensor.name) == nullptr) continue;
        const auto span = values(file, tensor.name, {tensor.rows, tensor.columns});
        model.fitted.*tensor.part = Matrix(ConstMatrix{span.data(), tensor.rows, tensor.columns});
    }
    for (const ProbeTensor& tensor : probe_tensors) {
        if (file.find(tensor.name) == nullptr) continue;
        const auto span = values(file, tensor.name, {probes});
        (model.fitted.*tensor.part).assign(span.begin(), span.end());
    }
    for (const float s : model.fitted.spread) {
        if (!(s > 0)) fail(ErrorCode::corrupt, "{}: probe_spread: expected positive values, found {}", file.path(), s);
    }
    if (model.fitted.usual.size() != model.fitted.spread.size())
        fail(ErrorCode::corrupt, "{}: expected 'probe_usual' and 'probe_spread' together, found one of them",
             file.path());
    const bool prior = !model.fitted.prior.empty();
    if (prior == model.fitted.prior_inverse.empty() || prior == model.fitted.images.empty())
        fail(
            ErrorCode::corrupt,
            "{}: expected 'fitted_prior', 'fitted_prior_inverse' and 'fitted_images' together, found only some of them",
            file.path());
    pack_images(model.fitted);
}

void load_alignment(const SafetensorsFile& file, Alignment& alignment) {
    constexpr float steepest = 4;
    if (file.find("alignment_change") != nullptr) {
        alignment.change = matrix(file, "alignment_change");
        if (alignment.change.rows() != alignment.change.cols())
            fail(ErrorCode::corrupt, "{}: tensor 'alignment_change': expected as many rows as columns, found [{},{}]",
                 file.path(), alignment.change.rows(), alignment.change.cols());
    }
    if (file.find("alignment_length") == nullptr) return;
    const auto length = values(file, "alignment_length", {2});
    if (!(std::abs(length[0]) <= steepest) || !(length[1] > 0))
        fail(ErrorCode::corrupt,
             "{}: tensor 'alignment_length': expected a power of at most {} and a positive length, found {} and {}",
             file.path(), steepest, length[0], length[1]);
    alignment.length_power = length[0];
    alignment.usual_length = length[1];
}

// Offsets that begin with 0, rise and end with the entries; no page has more of them than there are tokens.
void check_memory_offsets(const SafetensorsFile& file, const Memory& memory) {
    bool sound =
        memory.offsets.front() == 0 && memory.offsets.back() == static_cast<std::int64_t>(memory.entries.size());
    const auto most = static_cast<std::int64_t>(memory.tokens.rows());
    for (std::size_t i = 1; i < memory.offsets.size(); ++i)
        sound =
            sound && memory.offsets[i] >= memory.offsets[i - 1] && memory.offsets[i] - memory.offsets[i - 1] <= most;
    if (!sound)
        fail(ErrorCode::corrupt,
             "{}: tensor 'memory_offsets': expected numbers that rise from 0 to {} by at most {}, found others",
             file.path(), memory.entries.size(), most);
}

void load_memory(const SafetensorsFile& file, std::size_t dim, Memory& memory) {
    constexpr float longest = 4;
    if (file.find("memory_tokens") == nullptr) return;
    memory.tokens = matrix(file, "memory_tokens");
    if (memory.tokens.cols() != dim)
        fail(ErrorCode::corrupt, "{}: tensor 'memory_tokens': expected {} columns like 'probes', found {}", file.path(),
             dim, memory.tokens.cols());
    const auto pages = file.require_span<std::int64_t>("memory_pages", DType::i64, 1);
    const auto offsets = file.require_span<std::int64_t>("memory_offsets", DType::i64, 1);
    const auto entries = file.require_span<std::int32_t>("memory_entries", DType::i32, 1);
    memory.strength = values(file, "memory_strength", {1})[0];
    if (pages.empty() || offsets.size() != pages.size() + 1)
        fail(ErrorCode::corrupt, "{}: tensor 'memory_offsets': expected {} numbers, one more than pages, found {}",
             file.path(), pages.size() + 1, offsets.size());
    memory.pages.assign(pages.begin(), pages.end());
    memory.offsets.assign(offsets.begin(), offsets.end());
    memory.entries.assign(entries.begin(), entries.end());
    if (std::adjacent_find(pages.begin(), pages.end(), std::greater_equal<>()) != pages.end())
        fail(ErrorCode::corrupt, "{}: tensor 'memory_pages': expected numbers that rise, found others", file.path());
    check_memory_offsets(file, memory);
    for (const auto e : entries)
        if (e < 0 || static_cast<std::size_t>(e) >= memory.tokens.rows())
            fail(ErrorCode::corrupt, "{}: tensor 'memory_entries': expected rows below {}, found {}", file.path(),
                 memory.tokens.rows(), e);
    if (!(memory.strength > 0 && memory.strength <= longest))
        fail(ErrorCode::corrupt, "{}: tensor 'memory_strength': expected a length above 0 and at most {}, found {}",
             file.path(), longest, memory.strength);
}

// A file without a recipe means the paper's; without a network that is its fixed start, h = 0.
Recipe recipe_of(const SafetensorsFile& file, const Model& model) {
    Recipe base = preset_recipe("paper");
    if (!model.network) base.representative = "response";
    const std::string text = json_text(file, "recipe");
    return text.empty() ? base : recipe_from_json(text, base, file.path());
}

std::string join(const std::vector<std::string>& ids) {
    std::string text;
    for (const auto& id : ids) text += id + '\n';
    return text;
}

}  // namespace

Model load_model(const std::filesystem::path& path) {
    const SafetensorsFile file(path);
    check_schema(file);
    Model model;
    load_bank(file, model.bank);
    load_network(file, model);
    load_probes(file, model.probes);
    load_fitted(file, model);
    load_alignment(file, model.alignment);
    load_memory(file, model.probes.tokens.cols(), model.memory);
    if (!model.bank.empty() && !model.probes.empty() && model.bank.prototypes.cols() != model.probes.tokens.cols())
        fail(ErrorCode::corrupt, "{}: tensor 'probes': expected {} columns like 'prototypes', found {}", file.path(),
             model.bank.prototypes.cols(), model.probes.tokens.cols());
    if (const auto schema = file.metadata().find("schema"); schema == file.metadata().end() && file.tensors().empty())
        fail(ErrorCode::corrupt, "{}: expected a model file, found no tensors and no schema", file.path());
    if (file.metadata().find("schema") == file.metadata().end() && model.bank.empty() && !model.network &&
        model.probes.empty())
        fail(ErrorCode::unsupported, "{}: expected a model file, found none of its tensors", file.path());
    model.recipe = recipe_of(file, model);
    model.settings = json_text(file, "settings");
    model.provenance = json_text(file, "provenance");
    if (const auto grid = file.metadata().find("uses_grid"); grid != file.metadata().end())
        model.uses_grid = grid->second == "true";
    return model;
}

void save_model(const std::filesystem::path& path, const Model& model) {
    std::map<std::string, std::string> metadata = {{"schema", model_schema},
                                                   {"version", schema_version},
                                                   {"writer", std::string("marginmerge ") + version()},
                                                   {"recipe", recipe_to_json(model.recipe).dump()},
                                                   {"uses_grid", model.uses_grid ? "true" : "false"}};
    if (!model.settings.empty()) metadata["settings"] = model.settings;
    if (!model.provenance.empty()) metadata["provenance"] = model.provenance;
    SafetensorsWriter writer(path, metadata);
    const std::string ids = join(model.bank.query_ids);
    const std::string excluded = join(model.bank.excluded_ids);
    if (!model.bank.empty()) {
        writer.declare("prototypes", DType::f32, {model.bank.size(), model.bank.prototypes.cols()});
        writer.declare("frequencies", DType::f32, {model.bank.size()});
    }
    if (!ids.empty()) writer.declare("bank_query_ids", DType::u8, {ids.size()});
    if (!excluded.empty()) writer.declare("bank_excluded_ids", DType::u8, {excluded.size()});
    if (model.scaling) {
        writer.declare("feature_mean", DType::f32, {feature_count});
        writer.declare("feature_std", DType::f32, {feature_count});
    }
    if (model.network)
        for (const NetworkPart& part : network_parts()) writer.declare(part.name, DType::f32, part.shape);
    if (!model.probes.empty()) {
        writer.declare("probes", DType::f32, {model.probes.tokens.rows(), model.probes.tokens.cols()});
        writer.declare("probe_weights", DType::f32, {model.probes.weights.size()});
        for (const FittedTensor& tensor : fitted_tensors(0, 0)) {
            const Matrix& m = model.fitted.*tensor.part;
            if (!m.empty()) writer.declare(tensor.name, DType::f32, {m.rows(), m.cols()});
        }
        for (const ProbeTensor& tensor : probe_tensors) {
            const auto& values = model.fitted.*tensor.part;
            if (!values.empty()) writer.declare(tensor.name, DType::f32, {values.size()});
        }
    }
    const Alignment& alignment = model.alignment;
    const std::array length{alignment.length_power, alignment.usual_length};
    if (!alignment.change.empty())
        writer.declare("alignment_change", DType::f32, {alignment.change.rows(), alignment.change.cols()});
    if (!alignment.empty()) writer.declare("alignment_length", DType::f32, {length.size()});
    const Memory& memory = model.memory;
    if (!memory.empty()) {
        writer.declare("memory_tokens", DType::f32, {memory.tokens.rows(), memory.tokens.cols()});
        writer.declare("memory_pages", DType::i64, {memory.pages.size()});
        writer.declare("memory_offsets", DType::i64, {memory.offsets.size()});
        writer.declare("memory_entries", DType::i32, {memory.entries.size()});
        writer.declare("memory_strength", DType::f32, {1});
    }

    if (!model.bank.empty()) {
        writer.write("prototypes", 0, model.bank.prototypes.flat());
        writer.write("frequencies", 0, std::span<const float>(model.bank.frequencies));
    }
    if (!ids.empty()) writer.write("bank_query_ids", 0, std::as_bytes(std::span(ids)));
    if (!excluded.empty()) writer.write("bank_excluded_ids", 0, std::as_bytes(std::span(excluded)));
    if (model.scaling) {
        writer.write("feature_mean", 0, std::span<const float>(model.scaling->mean));
        writer.write("feature_std", 0, std::span<const float>(model.scaling->deviation));
    }
    if (model.network)
        for (const NetworkPart& part : network_parts()) {
            std::size_t size = 1;
            for (const auto s : part.shape) size *= s;
            writer.write(part.name, 0, std::span<const float>(model.network->parameters).subspan(part.begin, size));
        }
    if (!model.probes.empty()) {
        writer.write("probes", 0, model.probes.tokens.flat());
        writer.write("probe_weights", 0, std::span<const float>(model.probes.weights));
        for (const FittedTensor& tensor : fitted_tensors(0, 0)) {
            const Matrix& m = model.fitted.*tensor.part;
            if (!m.empty()) writer.write(tensor.name, 0, m.flat());
        }
        for (const ProbeTensor& tensor : probe_tensors) {
            const auto& values = model.fitted.*tensor.part;
            if (!values.empty()) writer.write(tensor.name, 0, std::span<const float>(values));
        }
    }
    if (!alignment.change.empty()) writer.write("alignment_change", 0, alignment.change.flat());
    if (!alignment.empty()) writer.write("alignment_length", 0, std::span<const float>(length));
    if (!memory.empty()) {
        writer.write("memory_tokens", 0, memory.tokens.flat());
        writer.write("memory_pages", 0, std::span<const std::int64_t>(memory.pages));
        writer.write("memory_offsets", 0, std::span<const std::int64_t>(memory.offsets));
        writer.write("memory_entries", 0, std::span<const std::int32_t>(memory.entries));
        writer.write("memory_strength", 0, std::span<const float>(&memory.strength, 1));
    }
    writer.commit();
}

}  // namespace marginmerge
