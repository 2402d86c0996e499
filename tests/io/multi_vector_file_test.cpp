#include "io/multi_vector_file.h"

#include <gtest/gtest.h>

#include "kernels/convert.h"
#include "support/temporary_directory.h"

namespace marginmerge {
namespace {

MultiVectorSet small_set() {
    MultiVectorBuilder builder(16);
    for (std::size_t i = 0; i < 3; ++i) {
        Matrix m(i + 1, 16);
        for (std::size_t j = 0; j < m.size(); ++j) m.data()[j] = static_cast<float>(i + j) / 64.0f;
        builder.add("page-" + std::to_string(i), m, {2, static_cast<std::int32_t>(i)});
    }
    return builder.finish();
}

TEST(MultiVectorFile, RoundTripKeepsEverything) {
    const test::TemporaryDirectory directory;
    const MultiVectorSet set = small_set();
    for (const ScalarType type : {ScalarType::f32, ScalarType::f16, ScalarType::bf16}) {
        write_multi_vectors(directory / "a.safetensors", set, type);
        const MultiVectorSet back = read_multi_vectors(directory / "a.safetensors");
        ASSERT_EQ(back.size(), 3U);
        EXPECT_EQ(back.type(), type);
        EXPECT_EQ(back.id(2), "page-2");
        EXPECT_EQ(back.find("page-1"), 1U);
        EXPECT_EQ(back.grid(1).columns, 2);
        const Matrix expected = to_float(set.vectors(2));
        const Matrix found = to_float(back.vectors(2));
        for (std::size_t j = 0; j < expected.size(); ++j) EXPECT_EQ(expected.data()[j], found.data()[j]);
    }
}

}  // namespace
}  // namespace marginmerge
