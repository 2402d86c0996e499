#include "encode/onnx_session.h"

#include "core/fail.h"

#ifdef MARGINMERGE_HAS_ONNXRUNTIME

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <mutex>

#define ORT_API_MANUAL_INIT
#include <onnxruntime_cxx_api.h>
#undef ORT_API_MANUAL_INIT

#include "kernels/convert.h"

namespace marginmerge {

namespace {

// The library is opened at run time rather than linked: the same binary then works, without its
// encoder, on machines that do not have it.
struct Runtime {
    const OrtApi* api = nullptr;
    std::string version;
    std::string file;
    std::string fault;
};

Runtime open_runtime() {
    Runtime runtime;
    std::vector<std::string> places;
    if (const char* chosen = std::getenv("MARGINMERGE_ONNXRUNTIME"); chosen != nullptr && *chosen != '\0')
        places = {chosen};
    else
        places = {MARGINMERGE_ONNXRUNTIME_LIBRARY, "libonnxruntime.so.1", "libonnxruntime.so"};
    for (const auto& place : places) {
        if (place.empty()) continue;
        void* library = ::dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (library == nullptr) {
            runtime.fault = ::dlerror();
            continue;
        }
        using GetBase = const OrtApiBase* (*)();
        const auto get = reinterpret_cast<GetBase>(::dlsym(library, "OrtGetApiBase"));
        if (get == nullptr) {
            runtime.fault = place + ": not an ONNX Runtime library";
            continue;
        }
        runtime.version = get()->GetVersionString();
        // The headers may be newer than the library: every call we make exists since 1.14.
        for (std::uint32_t version = ORT_API_VERSION; version >= 14 && runtime.api == nullptr; --version)
            runtime.api = get()->GetApi(version);
        if (runtime.api != nullptr) {
            runtime.file = place;
            return runtime;
        }
        runtime.fault = place + ": ONNX Runtime " + runtime.version + " is too old, 1.14 or later is needed";
    }
    return runtime;
}

const Runtime& runtime() {
    static const Runtime opened = [] {
        Runtime r = open_runtime();
        if (r.api != nullptr) Ort::InitApi(r.api);
        return r;
    }();
    return opened;
}

Ort::Env& environment() {
    static Ort::Env env(ORT_LOGGING_LEVEL_FATAL, "marginmerge");
    return env;
}

std::size_t element_count(const std::vector<std::int64_t>& shape) {
    std::size_t n = 1;
    for (const auto s : shape) n *= static_cast<std::size_t>(s);
    return n;
}

/// Owns the converted bytes of an input while a run lasts.
struct Buffer {
    std::vector<std::byte> bytes;
    ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
};

template <class T, class Source>
void fill(Buffer& buffer, const std::vector<Source>& values) {
    buffer.bytes.resize(values.size() * sizeof(T));
    for (std::size_t i = 0; i < values.size(); ++i) {
        const T value = static_cast<T>(values[i]);
        std::memcpy(buffer.bytes.data() + i * sizeof(T), &value, sizeof(T));
    }
}

template <class Source>
void convert(Buffer& buffer, const std::vector<Source>& values, const std::string& where) {
    switch (buffer.type) {
        case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT: fill<float>(buffer, values); return;
        case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64: fill<std::int64_t>(buffer, values); return;
        case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32: fill<std::int32_t>(buffer, values); return;
        case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8:
        case ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL: fill<std::uint8_t>(buffer, values); return;
        case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16: {
            const std::vector<float> floats(values.begin(), values.end());
            buffer.bytes.resize(values.size() * 2);
            from_float(floats, ScalarType::f16, buffer.bytes.data());
            return;
        }
        default:
            fail(ErrorCode::unsupported, "{}: expected float, half, int or bool, found type {}", where,
                 static_cast<int>(buffer.type));
    }
}

}  // namespace

bool has_onnxruntime() { return true; }

std::string onnxruntime_description() {
    const Runtime& r = runtime();
    return r.api == nullptr ? "no ONNX Runtime: " + r.fault : "ONNX Runtime " + r.version;
}

struct OnnxSession::State {
    std::string file;
    Ort::Session session{nullptr};
    std::vector<std::string> inputs, outputs;
    std::vector<ONNXTensorElementDataType> input_types;
};

OnnxSession::OnnxSession(const std::filesystem::path& model, std::size_t threads) : state_(std::make_unique<State>()) {
    if (runtime().api == nullptr)
        fail(ErrorCode::unsupported,
             "cannot open ONNX Runtime ({}); run scripts/fetch-encoder or set MARGINMERGE_ONNXRUNTIME",
             runtime().fault);
    State& s = *state_;
    s.file = model.string();
    try {
        Ort::SessionOptions options;
        options.SetIntraOpNumThreads(static_cast<int>(std::max<std::size_t>(threads, 1)));
        options.SetInterOpNumThreads(1);
        options.SetGraphOptimizationLevel(GraphOptimizationLevel::ORT_ENABLE_ALL);
        if (threads <= 1) options.AddConfigEntry("session.intra_op.allow_spinning", "0");
        s.session = Ort::Session(environment(), s.file.c_str(), options);
        Ort::AllocatorWithDefaultOptions allocator;
        for (std::size_t i = 0; i < s.session.GetInputCount(); ++i) {
            s.inputs.emplace_back(s.session.GetInputNameAllocated(i, allocator).get());
            const auto info = s.session.GetInputTypeInfo(i);
            s.input_types.push_back(info.GetONNXType() == ONNX_TYPE_TENSOR
                                        ? info.GetTensorTypeAndShapeInfo().GetElementType()
                                        : ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED);
        }
        for (std::size_t i = 0; i < s.session.GetOutputCount(); ++i)
            s.outputs.emplace_back(s.session.GetOutputNameAllocated(i, allocator).get());
    } catch (const Ort::Exception& error) {
        fail(ErrorCode::corrupt, "{}: expected an ONNX graph: {}", s.file, error.what());
    }
}

OnnxSession::~OnnxSession() = default;
OnnxSession::OnnxSession(OnnxSession&&) noexcept = default;
OnnxSession& OnnxSession::operator=(OnnxSession&&) noexcept = default;

void OnnxSession::check(const std::vector<std::string>& inputs, const std::string& output) const {
    const State& s = *state_;
    const auto list = [](const std::vector<std::string>& names) {
        std::string out;
        for (const auto& n : names) out += (out.empty() ? "" : ", ") + n;
        return out;
    };
    auto given = inputs, wanted = s.inputs;
    std::sort(given.begin(), given.end());
    std::sort(wanted.begin(), wanted.end());
    if (given != wanted)
        fail(ErrorCode::corrupt, "{}: inputs: the card feeds {}, the graph wants {}", s.file, list(given),
             list(wanted));
    if (std::find(s.outputs.begin(), s.outputs.end(), output) == s.outputs.end())
        fail(ErrorCode::corrupt, "{}: output: the card expects {}, the graph gives {}", s.file, output,
             list(s.outputs));
}

Matrix OnnxSession::run(const std::vector<TensorInput>& inputs, const std::string& output) const {
    const State& s = *state_;
    std::vector<Buffer> buffers(inputs.size());
    std::vector<Ort::Value> values;
    std::vector<const char*> names;
    try {
        const auto memory = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
        for (std::size_t i = 0; i < inputs.size(); ++i) {
            const auto found = std::find(s.inputs.begin(), s.inputs.end(), inputs[i].name);
            if (found == s.inputs.end()) fail(ErrorCode::internal, "{}: no input '{}'", s.file, inputs[i].name);
            buffers[i].type = s.input_types[static_cast<std::size_t>(found - s.inputs.begin())];
            std::visit([&](const auto& v) { convert(buffers[i], v, s.file + ": input " + inputs[i].name); },
                       inputs[i].values);
            names.push_back(inputs[i].name.c_str());
            values.push_back(Ort::Value::CreateTensor(memory, buffers[i].bytes.data(), buffers[i].bytes.size(),
                                                      inputs[i].shape.data(), inputs[i].shape.size(), buffers[i].type));
        }
        const char* wanted = output.c_str();
        const Ort::RunOptions options;
        // Session::Run is const in effect, and documented as safe to call from several threads.
        auto results =
            const_cast<Ort::Session&>(s.session).Run(options, names.data(), values.data(), values.size(), &wanted, 1);
        if (!results[0].IsTensor()) fail(ErrorCode::corrupt, "{}: output {}: expected a tensor", s.file, output);
        const auto info = results[0].GetTensorTypeAndShapeInfo();
        auto shape = info.GetShape();
        if (shape.size() == 3 && shape[0] == 1) shape.erase(shape.begin());
        if (shape.size() != 2 || shape[0] < 0 || shape[1] <= 0)
            fail(ErrorCode::corrupt, "{}: output {}: expected [L,d] or [1,L,d], found {} dimensions", s.file, output,
                 shape.size());
        Matrix out(static_cast<std::size_t>(shape[0]), static_cast<std::size_t>(shape[1]));
        if (info.GetElementType() == ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT)
            std::memcpy(out.data(), results[0].GetTensorData<float>(), element_count(shape) * sizeof(float));
        else if (info.GetElementType() == ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16)
            to_float(VectorsView(results[0].GetTensorRawData(), ScalarType::f16, out.rows(), out.cols()), out.data());
        else
            fail(ErrorCode::unsupported, "{}: output {}: expected float or half", s.file, output);
        return out;
    } catch (const Ort::Exception& error) {
        fail(ErrorCode::corrupt, "{}: cannot run: {}", s.file, error.what());
    }
}

}  // namespace marginmerge

#else

namespace marginmerge {

struct OnnxSession::State {};

bool has_onnxruntime() { return false; }
std::string onnxruntime_description() { return "this build has no encoder; run scripts/fetch-encoder and rebuild"; }
OnnxSession::OnnxSession(const std::filesystem::path&, std::size_t) {
    fail(ErrorCode::unsupported, "this build has no encoder; run scripts/fetch-encoder and rebuild");
}
OnnxSession::~OnnxSession() = default;
OnnxSession::OnnxSession(OnnxSession&&) noexcept = default;
OnnxSession& OnnxSession::operator=(OnnxSession&&) noexcept = default;
void OnnxSession::check(const std::vector<std::string>&, const std::string&) const {}
Matrix OnnxSession::run(const std::vector<TensorInput>&, const std::string&) const { return {}; }

}  // namespace marginmerge

#endif
