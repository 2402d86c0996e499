#include "io/output_path.h"

#include "core/fail.h"
#include "io/folders.h"

namespace marginmerge {

namespace fs = std::filesystem;

namespace {

bool same_file(const fs::path& a, const fs::path& b) {
    std::error_code ignored;
    if (fs::exists(a, ignored) && fs::exists(b, ignored)) return fs::equivalent(a, b, ignored);
    return fs::weakly_canonical(a, ignored) == fs::weakly_canonical(b, ignored);
}

}  // namespace

void check_output(const fs::path& output, const std::vector<fs::path>& inputs) {
    std::error_code ignored;
    for (const fs::path& input : inputs) {
        if (input.empty()) continue;
        if (same_file(output, input))
            fail(ErrorCode::invalid_argument, "{}: expected another file for the output, found an input",
                 output.string());
        if (fs::is_directory(input, ignored) && fs::is_regular_file(output, ignored) &&
            same_file(folder_of(output), input))
            fail(ErrorCode::invalid_argument,
                 "{}: expected a new file for the output, found one of the input folder {}", output.string(),
                 input.string());
    }
}

void check_output_folder(const fs::path& output) {
    std::error_code ignored;
    if (!fs::is_directory(folder_of(output), ignored))
        fail(ErrorCode::not_found, "{}: expected a folder {} to write into, found none", output.string(),
             folder_of(output).string());
}

}  // namespace marginmerge
