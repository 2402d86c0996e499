#include "marginmerge/jobs/model_file.h"

#include <gtest/gtest.h>

#include <fstream>

#include "io/safetensors.h"
#include "marginmerge/core/error.h"
#include "marginmerge/jobs/presets.h"
#include "support/compress_case.h"
#include "support/temporary_directory.h"

namespace marginmerge {
namespace {

using test::TemporaryDirectory;

struct Tensor {
    std::string name;
    std::vector<std::uint64_t> shape;
    std::vector<float> values;
};

// A file with these tensors, F32, as a Python script would write it.
std::filesystem::path write(const TemporaryDirectory& folder, const std::vector<Tensor>& tensors,
                            const std::map<std::string, std::string>& metadata = {}) {
    const auto path = folder / "model.safetensors";
    SafetensorsWriter writer(path, metadata);
    for (const auto& t : tensors) writer.declare(t.name, DType::f32, t.shape);
    for (const auto& t : tensors) writer.write(t.name, 0, std::span<const float>(t.values));
    writer.commit();
    return path;
}

std::string refusal(const std::filesystem::path& path) {
    try {
        load_model(path);
    } catch (const Error& error) {
        EXPECT_NE(error.code(), ErrorCode::internal);
        EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
        return error.what();
    }
    return "accepted";
}

const Tensor prototypes{"prototypes", {2, 16}, std::vector<float>(32, 0.25f)};
const Tensor frequencies{"frequencies", {2}, {0.5f, 0.5f}};

TEST(ModelFile, RoundTrip) {
    const TemporaryDirectory folder;
    Model model = test::random_model(12, 24, 9);
    model.probes.tokens = test::random_page(7, 24, 3, 0.5, 1);
    model.probes.weights.assign(7, 1.0f / 7);
    model.bank.query_ids = {"q1", "q 2", "q-\xC3\xA9"};
    model.bank.excluded_ids = {"evaluation"};
    model.recipe.anchors = "kcenter";
    model.recipe.budget.keep = 0.125;
    model.recipe.constants.tau_c = 0.07;
    model.recipe.seed = 18446744073709551615ull;
    model.recipe.unit_norm = true;
    model.settings = R"({"ridge":0.02})";
    model.provenance = R"({"seed":7})";
    model.uses_grid = true;
    model.alignment.change = Matrix(24, 24);
    model.alignment.change(3, 5) = 0.125f;
    model.alignment.length_power = -0.03f;
    model.alignment.usual_length = 170.5f;
    model.recipe.align = true;
    model.memory.tokens = test::random_page(3, 24, 5, 0.5, 1);
    model.memory.pages = {5, 9007199254740993};
    model.memory.offsets = {0, 1, 3};
    model.memory.entries = {2, 0, 1};
    model.memory.strength = 0.75f;
    save_model(folder / "m.safetensors", model);
    const Model read = load_model(folder / "m.safetensors");
    EXPECT_EQ(test::largest_gap(read.bank.prototypes, model.bank.prototypes), 0);
    EXPECT_EQ(read.bank.frequencies, model.bank.frequencies);
    EXPECT_EQ(read.bank.query_ids, model.bank.query_ids);
    EXPECT_EQ(read.bank.excluded_ids, model.bank.excluded_ids);
    EXPECT_EQ(read.scaling->deviation, model.scaling->deviation);
    EXPECT_EQ(read.network->parameters, model.network->parameters);
    EXPECT_EQ(test::largest_gap(read.probes.tokens, model.probes.tokens), 0);
    EXPECT_EQ(read.probes.weights, model.probes.weights);
    EXPECT_EQ(read.recipe.anchors, "kcenter");
    EXPECT_EQ(read.recipe.budget.keep, 0.125);
    EXPECT_EQ(read.recipe.constants.tau_c, 0.07);
    EXPECT_EQ(read.recipe.seed, model.recipe.seed);
    EXPECT_TRUE(read.recipe.unit_norm);
    EXPECT_TRUE(read.recipe.align);
    EXPECT_EQ(test::largest_gap(read.alignment.change, model.alignment.change), 0);
    EXPECT_EQ(read.alignment.length_power, -0.03f);
    EXPECT_EQ(read.alignment.usual_length, 170.5f);
    EXPECT_EQ(test::largest_gap(read.memory.tokens, model.memory.tokens), 0);
    EXPECT_EQ(read.memory.pages, model.memory.pages);
    EXPECT_EQ(read.memory.offsets, model.memory.offsets);
    EXPECT_EQ(read.memory.entries, model.memory.entries);
    EXPECT_EQ(read.memory.strength, 0.75f);
    EXPECT_EQ(read.settings, model.settings);
    EXPECT_EQ(read.provenance, model.provenance);
    EXPECT_TRUE(read.uses_grid);
}

TEST(ModelFile, AbsentSettingsMeanThePapers) {
    const TemporaryDirectory folder;
    const Model model = load_model(write(folder, {prototypes, frequencies}));
    EXPECT_FALSE(model.network.has_value());
    EXPECT_EQ(model.recipe.anchors, "coverage");
    EXPECT_EQ(model.recipe.fill, "index");
    EXPECT_EQ(model.recipe.representative, "response");  // the paper's start without its network
    EXPECT_EQ(model.recipe.constants.tau_c, 0.05);
    const Model half =
        load_model(write(folder, {prototypes, frequencies}, {{"recipe", R"({"constants":{"tau_a":0.2}})"}}));
    EXPECT_EQ(half.recipe.constants.tau_a, 0.2);
    EXPECT_EQ(half.recipe.constants.tau_c, 0.05);
}

TEST(ModelFile, RefusesBadFiles) {
    const TemporaryDirectory folder;
    const auto expect = [&](const std::string& what, const std::vector<Tensor>& tensors,
                            const std::map<std::string, std::string>& metadata = {}) {
        const std::string message = refusal(write(folder, tensors, metadata));
        EXPECT_NE(message.find(what), std::string::npos) << message;
    };
    expect("'frequencies'", {prototypes});
    expect("'prototypes'", {frequencies});
    expect("expected shape [2], found [3]", {prototypes, {"frequencies", {3}, {1, 1, 1}}});
    expect("negative", {prototypes, {"frequencies", {2}, {1, -1}}});
    expect("positive sum", {prototypes, {"frequencies", {2}, {0, 0}}});
    expect("finite", {{"prototypes", {1, 2}, {1.0f, NAN}}, {"frequencies", {1}, {1}}});
    expect("columns", {{"prototypes", {0, 16}, {}}, {"frequencies", {0}, {}}});
    expect("'feature_mean'", {prototypes, frequencies, {"b3", {1}, {0}}});
    expect("'w1'", {prototypes,
                    frequencies,
                    {"b3", {1}, {0}},
                    {"feature_mean", {15}, std::vector<float>(15)},
                    {"feature_std", {15}, std::vector<float>(15, 1.0f)}});
    expect("'feature_std'",
           {{"feature_mean", {15}, std::vector<float>(15)}, {"feature_std", {15}, std::vector<float>(15)}});
    expect("'probes': expected 16 columns", {prototypes, frequencies, {"probes", {1, 4}, {1, 2, 3, 4}}});
    expect("schema", {prototypes, frequencies}, {{"schema", "marginmerge.multivector"}});
    expect("version", {prototypes, frequencies}, {{"schema", "marginmerge.model"}, {"version", "99"}});
    expect("recipe", {prototypes, frequencies}, {{"recipe", "not json"}});
    expect("'tau_c'", {prototypes, frequencies}, {{"recipe", R"({"constants":{"tau_c":0}})"}});
    expect("'keep'", {prototypes, frequencies}, {{"recipe", R"({"keep":"much"})"}});
    expect("'settings'", {prototypes, frequencies}, {{"settings", "{"}});
    expect("none of its tensors", {{"vectors", {1, 1}, {1}}});
    std::ofstream(folder / "short") << "abc";
    EXPECT_NE(refusal(folder / "short"), "accepted");
    EXPECT_NE(refusal(folder / "absent"), "accepted");
}

TEST(Presets, AreSoundAndFlagsOverrideThem) {
    for (const Preset& preset : presets()) EXPECT_NO_THROW(preset_recipe(preset.name));
    EXPECT_NO_THROW(resolve_recipe({}, nullptr, {}));  // the default needs no model
    const Model model = test::random_model(4, 16, 1);
    RecipeChoice choice;
    EXPECT_EQ(resolve_recipe(choice, &model, {}).representative, "learned");
    choice.representative = "tome";
    EXPECT_EQ(resolve_recipe(choice, &model, {}).budget.rounding, Budget::Rounding::nearest_even);
    choice.keep = 1.5;
    EXPECT_THROW(resolve_recipe(choice, &model, {}), Error);
    choice.keep = 0.5;
    choice.vectors = 3;
    EXPECT_THROW(resolve_recipe(choice, &model, {}), Error);
    RecipeChoice paper;
    paper.preset = "paper";
    EXPECT_THROW(resolve_recipe(paper, nullptr, {}), Error);
    EXPECT_EQ(resolve_recipe(paper, &model, {}).fill, "index");
}

TEST(ModelFile, AnAlignmentMustBeSquareAndModerate) {
    const TemporaryDirectory folder;
    const Tensor change{"alignment_change", {2, 2}, {0, 0.1f, 0, 0}}, length{"alignment_length", {2}, {-0.05f, 100}};
    EXPECT_EQ(refusal(write(folder, {prototypes, frequencies, change, length})), "accepted");
    EXPECT_NE(refusal(write(folder, {prototypes, frequencies, {"alignment_change", {1, 2}, {0, 0}}}))
                  .find("as many rows as columns"),
              std::string::npos);
    for (const std::vector<float>& wrong : {std::vector<float>{9, 100}, {-0.1f, 0}, {-0.1f, -3}}) {
        EXPECT_NE(refusal(write(folder, {prototypes, frequencies, change, {"alignment_length", {2}, wrong}}))
                      .find("alignment_length"),
                  std::string::npos);
    }
}

TEST(ModelFile, AMemoryMustBeInOrder) {
    const TemporaryDirectory folder;
    struct Parts {
        std::vector<std::int64_t> pages{3, 8}, offsets{0, 1, 3};
        std::vector<std::int32_t> entries{1, 0, 1};
        float strength = 0.8f;
    };
    const auto answer = [&](const Parts& parts, std::size_t width = 16) {
        const auto path = folder / "memory.safetensors";
        SafetensorsWriter writer(path, {});
        const std::vector<float> tokens(2 * width, 0.25f);
        writer.declare("probes", DType::f32, {2, 16});
        writer.declare("memory_tokens", DType::f32, {2, width});
        writer.declare("memory_pages", DType::i64, {parts.pages.size()});
        writer.declare("memory_offsets", DType::i64, {parts.offsets.size()});
        writer.declare("memory_entries", DType::i32, {parts.entries.size()});
        writer.declare("memory_strength", DType::f32, {1});
        writer.write("probes", 0, std::span<const float>(prototypes.values));
        writer.write("memory_tokens", 0, std::span<const float>(tokens));
        writer.write("memory_pages", 0, std::span<const std::int64_t>(parts.pages));
        writer.write("memory_offsets", 0, std::span<const std::int64_t>(parts.offsets));
        writer.write("memory_entries", 0, std::span<const std::int32_t>(parts.entries));
        writer.write("memory_strength", 0, std::span<const float>(&parts.strength, 1));
        writer.commit();
        return refusal(path);
    };
    EXPECT_EQ(answer({}), "accepted");
    const auto expect = [&](const std::string& what, const Parts& parts) {
        const std::string message = answer(parts);
        EXPECT_NE(message.find(what), std::string::npos) << message;
    };
    expect("memory_pages", {.pages = {8, 3}});
    expect("memory_pages", {.pages = {3, 3}});
    expect("memory_offsets", {.pages = {3}});
    expect("memory_offsets", {.pages = {}, .offsets = {0}});
    expect("memory_offsets", {.offsets = {1, 1, 3}});
    expect("memory_offsets", {.offsets = {0, 4, 3}});
    expect("at most 2", {.offsets = {0, 0, 3}});  // more than there are tokens
    expect("memory_offsets", {.offsets = {0, -1, 3}});
    expect("memory_offsets", {.offsets = {0, 1, 9000000000000000000}});
    expect("memory_entries", {.entries = {1, 0, 2}});
    expect("memory_entries", {.entries = {1, 0, -1}});
    expect("memory_strength", {.strength = 0});
    expect("memory_strength", {.strength = 5});
    expect("memory_strength", {.strength = NAN});
    EXPECT_NE(answer({}, 8).find("memory_tokens"), std::string::npos);
}

}  // namespace
}  // namespace marginmerge
