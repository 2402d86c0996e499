#include "marginmerge/jobs/inspect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "io/multi_vector_file.h"
#include "marginmerge/jobs/model_file.h"
#include "support/expect_error.h"
#include "support/made_files.h"
#include "support/temporary_directory.h"

namespace marginmerge {
namespace {

using ::testing::HasSubstr;

struct Made {
    std::vector<float> vectors;
    std::vector<std::int64_t> offsets, source_offsets;
    std::vector<std::int32_t> owner;
};

// Three documents of 2, 1 and 0 vectors; compressed from 4, 2 and 0 when asked.
MultiVectorSet made_set(bool compressed, float odd_value = 0.25f) {
    auto m = std::make_shared<Made>();
    m->vectors.assign(3 * 16, 0.25f);
    for (std::size_t j = 0; j < 8; ++j) m->vectors[16 + j] = -0.25f;  // orthogonal to the first
    m->vectors[2 * 16 + 3] = odd_value;
    m->offsets = {0, 2, 3, 3};
    MultiVectorParts p;
    p.vectors = {m->vectors.data(), ScalarType::f32, 3, 16};
    p.offsets = m->offsets;
    p.ids = {"a", "b", "c"};
    if (compressed) {
        m->source_offsets = {0, 4, 6, 6};
        m->owner = {0, 0, 0, -1, 0, 0};
        p.source_offsets = m->source_offsets;
        p.owner = m->owner;
    }
    p.storage = m;
    return MultiVectorSet(std::move(p), "made");
}

InspectReport inspect_set(const MultiVectorSet& set) {
    const test::TemporaryDirectory directory;
    write_multi_vectors(directory / "f", set, ScalarType::f32);
    InspectOptions options;
    options.path = directory / "f";
    return inspect(options);
}

TEST(Inspect, DescribesVectors) {
    const InspectReport r = inspect_set(made_set(false));
    EXPECT_EQ(r.kind, "multi-vector");
    EXPECT_TRUE(r.sound());
    ASSERT_TRUE(r.vectors.has_value());
    EXPECT_EQ(r.vectors->documents, 3U);
    EXPECT_EQ(r.vectors->fewest, 0U);
    EXPECT_EQ(r.vectors->most, 2U);
    EXPECT_EQ(r.vectors->empty_documents, 1U);
    EXPECT_NEAR(r.vectors->norm_least, 1, 1e-6);
    EXPECT_NEAR(r.vectors->norm_most, 1, 1e-6);
    EXPECT_NEAR(r.vectors->redundancy, 1, 1e-6);  // two orthogonal vectors, and one alone
    EXPECT_EQ(r.vectors->redundancy_documents, 2U);
    EXPECT_FALSE(r.compressed.has_value());
    EXPECT_EQ(r.metadata.at("schema"), multi_vector_schema);
}

TEST(Inspect, DescribesCompression) {
    const InspectReport r = inspect_set(made_set(true));
    EXPECT_EQ(r.kind, "compressed");
    ASSERT_TRUE(r.compressed.has_value());
    EXPECT_EQ(r.compressed->source_vectors, 6U);
    EXPECT_DOUBLE_EQ(r.compressed->kept, 0.5);
    EXPECT_EQ(r.compressed->unowned, 1U);
    EXPECT_EQ(r.compressed->idle, 1U);  // the second vector of the first document
    EXPECT_DOUBLE_EQ(r.compressed->bytes_per_document, 64);
    EXPECT_DOUBLE_EQ(r.compressed->source_bytes_per_document, 128);
}

TEST(Inspect, FindsNotANumber) {
    const InspectReport r = inspect_set(made_set(false, std::numeric_limits<float>::quiet_NaN()));
    ASSERT_EQ(r.problems.size(), 1U);
    EXPECT_THAT(r.problems[0], HasSubstr("document 'b': row 0"));
    EXPECT_FALSE(r.sound());
}

TEST(Inspect, FindsGridsWithoutVectorsAndIdsWithoutText) {
    Matrix v(5, 16);
    for (std::size_t i = 0; i < 5; ++i) v(i, i) = 1;
    MultiVectorBuilder builder(16);
    builder.add("fits", v, {2, 2});  // vectors beyond the grid are text
    builder.add("too large", v, {3, 2});
    builder.add("\xFF", v);
    const InspectReport r = inspect_set(builder.finish());
    ASSERT_EQ(r.problems.size(), 2U);
    EXPECT_THAT(r.problems[0], HasSubstr("'too large': grid 3x2: expected at least 6 vectors, found 5"));
    EXPECT_THAT(r.problems[1], HasSubstr("id of document 2: expected UTF-8"));
}

TEST(Inspect, DescribesModels) {
    const test::TemporaryDirectory directory;
    Model model;
    model.bank.prototypes = Matrix(4, 16);
    for (std::size_t i = 0; i < 4; ++i) model.bank.prototypes(i, i) = 1;
    model.bank.frequencies.assign(4, 0.25f);
    model.provenance = R"({"seed":1})";
    save_model(directory / "m", model);
    InspectOptions options;
    options.path = directory / "m";
    const InspectReport r = inspect(options);
    EXPECT_EQ(r.kind, "model");
    ASSERT_TRUE(r.model.has_value());
    EXPECT_EQ(r.model->prototypes, 4U);
    EXPECT_EQ(r.model->dim, 16U);
    EXPECT_FALSE(r.model->network);
    EXPECT_EQ(r.model->provenance, R"({"seed":1})");
}

TEST(Inspect, RefusesOtherFiles) {
    const test::TemporaryDirectory directory;
    test::write_file(directory / "x",
                     test::safetensors_bytes(R"({"x":{"dtype":"F32","shape":[1,16],"data_offsets":[0,64]}})",
                                             test::raw(test::ramp(16))));
    InspectOptions options;
    options.path = directory / "x";
    test::expect_error(ErrorCode::unsupported, {"/x", "import"}, [&] { inspect(options); });
    options.path = directory / "none";
    test::expect_error(ErrorCode::not_found, {"none"}, [&] { inspect(options); });
}

TEST(Inspect, CommandLineTellsSoundFromUnsound) {
    const test::TemporaryDirectory directory;
    write_multi_vectors(directory / "good", made_set(true), ScalarType::f32);
    const auto good = test::run_cli("inspect --json " + (directory / "good").string());
    EXPECT_EQ(good.status, 0) << good.err;
    const auto json = nlohmann::json::parse(good.out);
    EXPECT_EQ(json.at("kind"), "compressed");
    EXPECT_EQ(json.at("sound"), true);
    EXPECT_EQ(json.at("kept"), 0.5);
    EXPECT_THAT(test::run_cli("inspect " + (directory / "good").string()).out, HasSubstr("50.00% kept"));
    write_multi_vectors(directory / "bad", made_set(false, std::numeric_limits<float>::infinity()), ScalarType::f32);
    const auto bad = test::run_cli("inspect " + (directory / "bad").string());
    EXPECT_EQ(bad.status, 1);
    EXPECT_THAT(bad.out, HasSubstr("UNSOUND"));
    EXPECT_THAT(bad.err, HasSubstr("document 'b': row 0"));
}

}  // namespace
}  // namespace marginmerge
