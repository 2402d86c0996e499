#include "marginmerge/jobs/index_jobs.h"

#include "io/multi_vector_file.h"
#include "support/compress_case.h"
#include "support/expect_error.h"
#include "support/temporary_directory.h"

namespace marginmerge {
namespace {

TEST(IndexJobs, ExampleQueriesMustSuitThePages) {
    const test::TemporaryDirectory folder;
    for (const std::size_t dim : {24U, 32U}) {
        MultiVectorBuilder builder(dim);
        builder.add("one", test::random_page(10, dim, 4, 0.6, 1));
        write_multi_vectors(folder / std::to_string(dim), builder.finish(), ScalarType::f16);
    }
    IndexAddJobOptions o;
    o.index = folder / "index";
    o.pages = folder / "24";
    o.example_queries = folder / "32";
    test::expect_error(ErrorCode::invalid_argument, {"dimension", "24", "32"}, [&] { index_add_job(o); });
    EXPECT_FALSE(std::filesystem::exists(folder / "index"));
    o.example_queries = folder / "24";
    EXPECT_EQ(index_add_job(o).added, 1U);
}

}  // namespace
}  // namespace marginmerge
