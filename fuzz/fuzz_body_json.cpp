// JSON bodies of every route that reads one.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "api_error.h"
#include "bodies.h"

namespace {

template <class F>
void quietly(F&& parse) {
    try {
        parse();
    } catch (const marginmerge::server::ApiError&) {
    } catch (const marginmerge::Error&) {
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace marginmerge::server;
    const std::string_view body(reinterpret_cast<const char*>(data), size);
    quietly([&] { parse_search(BodyKind::json, body, {}, {}); });
    quietly([&] { parse_explain(BodyKind::json, body, {}, {}); });
    quietly([&] { parse_add(BodyKind::json, body, {}, {}); });
    quietly([&] { parse_ids(body, {}); });
    return 0;
}
