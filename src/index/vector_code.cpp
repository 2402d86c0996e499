#include "core/fail.h"
#include "marginmerge/index/index.h"

namespace marginmerge {

namespace {
constexpr const char* code_names[] = {"f32", "f16", "bf16", "int8", "bits"};
constexpr const char* pass_names[] = {"none", "prefix", "bits"};
}  // namespace

const char* to_string(VectorCode code) { return code_names[static_cast<std::size_t>(code)]; }

VectorCode parse_vector_code(std::string_view name) {
    for (std::size_t i = 0; i < std::size(code_names); ++i)
        if (name == code_names[i]) return static_cast<VectorCode>(i);
    fail(ErrorCode::invalid_argument, "code: expected f32, f16, bf16, int8 or bits, found '{}'", name);
}

const char* to_string(FirstPass pass) { return pass_names[static_cast<std::size_t>(pass)]; }

FirstPass parse_first_pass(std::string_view name) {
    for (std::size_t i = 0; i < std::size(pass_names); ++i)
        if (name == pass_names[i]) return static_cast<FirstPass>(i);
    fail(ErrorCode::invalid_argument, "first pass: expected none, prefix or bits, found '{}'", name);
}

}  // namespace marginmerge
