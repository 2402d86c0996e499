#include "io/finite_vectors.h"

#include <limits>

#include "io/multi_vector_file.h"
#include "support/expect_error.h"
#include "support/temporary_directory.h"

namespace marginmerge {
namespace {

TEST(FiniteVectors, NamesDocumentAndRowInEveryStorage) {
    const test::TemporaryDirectory directory;
    for (const ScalarType type : {ScalarType::f32, ScalarType::f16, ScalarType::bf16}) {
        for (const float wrong : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                                  -std::numeric_limits<float>::infinity()}) {
            Matrix good(3, 17), bad(5, 17);
            for (float& x : good.flat()) x = -0.5F;
            for (float& x : bad.flat()) x = 60000.0F;  // near the largest half
            MultiVectorBuilder builder(17);
            builder.add("good", good);
            write_multi_vectors(directory / "good", builder.finish(), type);
            EXPECT_EQ(read_finite_vectors(directory / "good").size(), 1U);
            bad(3, 16) = wrong;
            MultiVectorBuilder both(17);
            both.add("good", good);
            both.add("bad", bad);
            write_multi_vectors(directory / "bad", both.finish(), type);
            test::expect_error(ErrorCode::corrupt, {"bad: 'bad' row 3", "finite"},
                               [&] { read_finite_vectors(directory / "bad", 2); });
        }
    }
}

}  // namespace
}  // namespace marginmerge
