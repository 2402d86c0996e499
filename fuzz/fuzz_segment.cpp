// Segment files of every code: opened, decoded, searched and explained.
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string>

#include "marginmerge/core/error.h"
#include "marginmerge/index/index.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace marginmerge;
    static const std::string path = "/tmp/marginmerge-fuzz-segment-" + std::to_string(::getpid()) + ".safetensors";
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
    try {
        const auto index = Index::open(path);
        if (index->dim() == 0 || index->dim() > 4096) return 0;
        Matrix query(2, index->dim());
        for (std::size_t i = 0; i < query.size(); ++i) query.data()[i] = static_cast<float>(i % 7) - 3;
        index->search(query, {.k = 3, .threads = 1});
        index->search(query, {.k = 3, .threads = 1, .first_pass = FirstPass::bits});
        index->search(query, {.k = 3, .threads = 1, .filter = Filter::parse("a>=1 or b.c exists")});
        for (std::size_t i = 0; i < std::min<std::size_t>(index->size(), 4); ++i) {
            index->explain(query, i);
            index->metadata(i);
        }
        index->stats();
    } catch (const Error&) {
    }
    return 0;
}
