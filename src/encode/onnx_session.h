#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "marginmerge/core/matrix.h"

namespace marginmerge {

/// One input of a run. Numbers are converted to the type the graph declares.
struct TensorInput {
    std::string name;
    std::vector<std::int64_t> shape;
    std::variant<std::vector<std::int64_t>, std::vector<float>> values;
};

/// True when this build knows ONNX Runtime (its header was there). The library itself is opened
/// at run time: $MARGINMERGE_ONNXRUNTIME, then the file found at build time, then the system's.
bool has_onnxruntime();
/// Version and file of the ONNX Runtime in use, or the reason why there is none. Never throws.
std::string onnxruntime_description();

/// A loaded ONNX graph. run() may be called from several threads at once.
class OnnxSession {
public:
    /// `threads` work inside one run. Throws Error(unsupported) when there is no ONNX Runtime,
    /// Error(corrupt) when the graph cannot be loaded.
    OnnxSession(const std::filesystem::path& model, std::size_t threads);
    ~OnnxSession();
    OnnxSession(OnnxSession&&) noexcept;
    OnnxSession& operator=(OnnxSession&&) noexcept;

    /// Fails unless the graph has these inputs, no others, and this output.
    void check(const std::vector<std::string>& inputs, const std::string& output) const;
    /// Runs the graph and returns the named output [L,d] (or [1,L,d]) as floats.
    Matrix run(const std::vector<TensorInput>& inputs, const std::string& output) const;

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace marginmerge
