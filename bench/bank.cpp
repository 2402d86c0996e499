// Clusters tokens.npy with weights.npy (float32, C order, as NumPy writes them) of a folder into 128 means and
// writes means.npy, and prints the seconds it took; for bank_vs_sklearn.py.
#include <fmt/core.h>

#include <cstring>
#include <filesystem>
#include <string>

#include "bank/kmeans.h"
#include "core/clock.h"
#include "io/mapped_file.h"
#include "io/npy.h"

int main(int argc, char** argv) {
    using namespace marginmerge;
    if (argc < 2 || argc > 3) {
        fmt::print(stderr, "usage: bench_bank FOLDER [SEED]\n");
        return 2;
    }
    const std::filesystem::path folder = argv[1];
    const MappedFile tokens(folder / "tokens.npy"), weights(folder / "weights.npy");
    const auto data = [](const MappedFile& file) {
        std::uint16_t header = 0;
        std::memcpy(&header, file.bytes().data() + 8, 2);
        return reinterpret_cast<const float*>(file.bytes().data() + 10 + header);
    };
    const std::size_t n = static_cast<std::size_t>(weights.bytes().data() + weights.bytes().size() -
                                                   reinterpret_cast<const std::byte*>(data(weights))) /
                          sizeof(float);
    const std::size_t d = static_cast<std::size_t>(tokens.bytes().data() + tokens.bytes().size() -
                                                   reinterpret_cast<const std::byte*>(data(tokens))) /
                          sizeof(float) / n;
    const Matrix points(ConstMatrix{data(tokens), n, d});  // read before the clock starts
    KMeansOptions options;
    if (argc == 3) options.seed = std::stoull(argv[2]);
    const auto started = Clock::now();
    const KMeansResult result = weighted_kmeans(points, {data(weights), n}, options);
    fmt::print("{:.4f}\n", seconds_since(started));
    write_npy(folder / "means.npy", result.means.view());
}
