#include "kernels/maxsim.h"

#include <cmath>
#include <limits>

#include "kernels/convert.h"
#include "kernels/reference.h"
#include "levels.h"

namespace marginmerge {
namespace {

using testing::odd_dimensions;
using testing::random_matrix;

constexpr float lowest = -std::numeric_limits<float>::infinity();

class MaxSim : public testing::EveryLevel {};
MARGINMERGE_EVERY_LEVEL(MaxSim);

/// Vectors in one storage type, with their values as floats.
struct Stored {
    std::vector<std::uint16_t> halves;
    Matrix floats;
    VectorsView view;
};

Stored store(const Matrix& source, ScalarType type) {
    Stored stored;
    stored.floats = source;
    if (type == ScalarType::f32) {
        stored.view = VectorsView(stored.floats.view());
        return stored;
    }
    stored.halves.resize(source.size());
    from_float(source.flat(), type, stored.halves.data());
    stored.view = VectorsView(stored.halves.data(), type, source.rows(), source.cols());
    stored.floats = to_float(stored.view);
    return stored;
}

/// Ragged: empty documents at both ends and in the middle, single vectors, and long ones.
std::vector<std::int64_t> ragged_offsets(std::size_t rows) {
    const std::size_t sizes[] = {0, 1, 5, 0, 0, 2, 13, 1, 1, 40, 7, 0, 3};
    std::vector<std::int64_t> offsets{0};
    for (std::size_t i = 0; static_cast<std::size_t>(offsets.back()) < rows; ++i)
        offsets.push_back(std::min<std::int64_t>(offsets.back() + static_cast<std::int64_t>(sizes[i % 13]),
                                                 static_cast<std::int64_t>(rows)));
    offsets.push_back(offsets.back());
    return offsets;
}

void expect_scan_equals_reference(std::size_t tokens, std::size_t rows, std::size_t d, ScalarType type) {
    const Matrix query = random_matrix(tokens, d, mix_seed(tokens, d));
    const Stored documents = store(random_matrix(rows, d, mix_seed(rows, d)), type);
    const std::vector<std::int64_t> offsets = ragged_offsets(rows);
    const PreparedQuery prepared(VectorsView(query.view()));
    std::vector<float> scores(offsets.size() - 1, 99.0f);
    maxsim_many(prepared, documents.view, offsets, scores);
    const bool fused = reference::fused_level();
    for (std::size_t i = 0; i < scores.size(); ++i) {
        const auto first = static_cast<std::size_t>(offsets[i]);
        const auto count = static_cast<std::size_t>(offsets[i + 1]) - first;
        const ConstMatrix document = documents.floats.view().middle_rows(first, count);
        ASSERT_EQ(scores[i], reference::maxsim(query.view(), document, fused))
            << to_string(type) << " tokens " << tokens << " d " << d << " document " << i << " of " << count;
        ASSERT_EQ(scores[i], maxsim(prepared, documents.view.middle_rows(first, count))) << "alone";
    }
}

TEST_P(MaxSim, EqualsReferenceAtOddDimensionsInEveryStorage) {
    for (const std::size_t d : odd_dimensions)
        for (const ScalarType type : {ScalarType::f32, ScalarType::f16, ScalarType::bf16})
            expect_scan_equals_reference(20, 150, d, type);
}

TEST_P(MaxSim, EqualsReferenceForEveryTokenCount) {
    for (std::size_t tokens = 0; tokens <= 70; ++tokens) expect_scan_equals_reference(tokens, 77, 19, ScalarType::f32);
    for (std::size_t tokens = 1; tokens <= 70; tokens += 3)
        expect_scan_equals_reference(tokens, 90, 33, ScalarType::f16);
}

TEST_P(MaxSim, EqualsReferenceForEveryRowCount) {
    for (std::size_t rows = 1; rows <= 60; ++rows) expect_scan_equals_reference(9, rows, 24, ScalarType::f16);
    for (const std::size_t rows : {239, 240, 241, 500}) expect_scan_equals_reference(33, rows, 8, ScalarType::f32);
}

TEST_P(MaxSim, LongDocumentsSpanBlocks) {
    const Matrix query = random_matrix(11, 65, 1);
    const Matrix v = random_matrix(1000, 65, 2);
    const PreparedQuery prepared(VectorsView(query.view()));
    EXPECT_EQ(maxsim(prepared, VectorsView(v.view())),
              reference::maxsim(query.view(), v.view(), reference::fused_level()));
}

TEST_P(MaxSim, EmptyQueryAndEmptyDocument) {
    const Matrix v = random_matrix(3, 16, 1);
    const PreparedQuery nothing(VectorsView(nullptr, ScalarType::f32, 0, 16));
    EXPECT_EQ(maxsim(nothing, VectorsView(v.view())), 0.0f);
    const PreparedQuery query(VectorsView(v.view()));
    EXPECT_EQ(maxsim(query, VectorsView(nullptr, ScalarType::f16, 0, 16)), lowest);
}

TEST_P(MaxSim, NegativeResponsesAreNotRaisedByPadding) {
    Matrix query(5, 16);
    Matrix v(7, 16);
    for (float& x : query.flat()) x = 1.0f;
    for (float& x : v.flat()) x = -0.25f;
    const PreparedQuery prepared(VectorsView(query.view()));
    EXPECT_EQ(maxsim(prepared, VectorsView(v.view())), -20.0f);
}

TEST_P(MaxSim, BatchEqualsItsQueriesAlone) {
    const std::size_t d = 48;
    const Matrix v = random_matrix(333, d, 5);
    const std::vector<std::int64_t> offsets = ragged_offsets(v.rows());
    std::vector<Matrix> queries;
    for (const std::size_t tokens : {20, 1, 0, 7, 32, 15, 16, 17, 3})
        queries.push_back(random_matrix(tokens, d, tokens));
    std::vector<VectorsView> views;
    for (const Matrix& query : queries) views.emplace_back(query.view());
    const PreparedBatch batch{std::span<const VectorsView>(views)};
    ASSERT_EQ(batch.queries(), queries.size());
    const std::size_t count = offsets.size() - 1;
    std::vector<float> scores(queries.size() * count);
    maxsim_many(batch, VectorsView(v.view()), offsets, scores);
    std::vector<float> alone(count);
    for (std::size_t q = 0; q < queries.size(); ++q) {
        maxsim_many(PreparedQuery(views[q]), VectorsView(v.view()), offsets, alone);
        for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(scores[q * count + i], alone[i]) << q << " " << i;
    }
}

TEST_P(MaxSim, WinnersEqualReferenceAndTakeTheLowestOnATie) {
    for (const ScalarType type : {ScalarType::f32, ScalarType::f16, ScalarType::bf16}) {
        for (const std::size_t rows : {1, 2, 5, 12, 47, 130}) {
            const Matrix query = random_matrix(21, 17, 3);
            Matrix source = random_matrix(rows, 17, rows);
            for (std::size_t j = rows / 2; j < rows; ++j)  // the second half repeats the first
                std::copy_n(source.row(j - rows / 2), 17, source.row(j));
            const Stored document = store(source, type);
            std::vector<float> best(21), expected_best(21);
            std::vector<std::int32_t> winner(21), expected(21);
            maxsim_winners(PreparedQuery(VectorsView(query.view())), document.view, best, winner);
            reference::winners(query.view(), document.floats.view(), reference::fused_level(), expected_best, expected);
            EXPECT_EQ(best, expected_best);
            EXPECT_EQ(winner, expected) << rows;
        }
    }
}

TEST_P(MaxSim, CloseToDoublePrecision) {
    const std::size_t d = 128;
    const Matrix query = random_matrix(20, d, 8);
    const Matrix v = random_matrix(52, d, 9);
    double expected = 0.0;
    for (std::size_t i = 0; i < 20; ++i) {
        double best = -1e300;
        for (std::size_t j = 0; j < 52; ++j) {
            double s = 0.0;
            for (std::size_t t = 0; t < d; ++t) s += static_cast<double>(query(i, t)) * v(j, t);
            best = std::max(best, s);
        }
        expected += best;
    }
    EXPECT_NEAR(maxsim(PreparedQuery(VectorsView(query.view())), VectorsView(v.view())), expected, 1e-6 * expected);
}

}  // namespace
}  // namespace marginmerge
