#include <marginmerge/core/version.h>
#include <marginmerge/data/multi_vector_set.h>

#include <cstdio>

int main() {
    marginmerge::MultiVectorBuilder builder(16);
    builder.add("page", marginmerge::Matrix(3, 16));
    const marginmerge::MultiVectorSet set = builder.finish();
    std::printf("marginmerge %s: %zu document of %zu vectors\n", marginmerge::version(), set.size(), set.vectors_of(0));
    return set.vectors_of(0) == 3 ? 0 : 1;
}
