// npy and safetensors bodies: the first byte chooses the reader, the second the options beside it.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "api_error.h"
#include "bodies.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace marginmerge::server;
    if (size < 2) return 0;
    const std::string_view body(reinterpret_cast<const char*>(data) + 2, size - 2);
    Parameters parameters;
    if ((data[1] & 1) != 0) parameters.emplace("k", std::to_string(data[1]));
    if ((data[1] & 2) != 0) parameters.emplace("filter", std::string(body.substr(0, 40)));
    if ((data[1] & 4) != 0) parameters.emplace("replace", "true");
    try {
        switch (data[0] % 4) {
            case 0: parse_search(BodyKind::npy, body, parameters, {}); break;
            case 1: parse_search(BodyKind::safetensors, body, parameters, {}); break;
            case 2: parse_add(BodyKind::safetensors, body, parameters, {}); break;
            default: parse_explain(body_kind("application/octet-stream", body), body, parameters, {}); break;
        }
    } catch (const ApiError&) {
    } catch (const marginmerge::Error&) {
    }
    return 0;
}
