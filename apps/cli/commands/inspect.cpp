#include <fmt/core.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
#include "io/multi_vector_file.h"

namespace marginmerge::cli {

void register_inspect(CLI::App& app) {
    struct Options {
        Common common;
        std::string file;
    };
    auto options = std::make_shared<Options>();
    CLI::App* command = app.add_subcommand("inspect", "What is in a file, and whether it is sound");
    command->add_option("FILE", options->file, "A multi-vector file")->required();
    command->footer("Example:\n  marginmerge inspect docs.safetensors");
    add_common(*command, options->common);
    command->callback([options] {
        const MultiVectorSet set = read_multi_vectors(options->file);
        fmt::print("{}: {} documents, {} vectors, {} dimensions, {}\n", options->file, set.size(), set.total_vectors(),
                   set.dim(), to_string(set.type()));
    });
}

}  // namespace marginmerge::cli
