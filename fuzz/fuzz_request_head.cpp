// Request lines and headers, and the decoding of paths and query strings.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "api_error.h"
#include "query_string.h"
#include "request_head.h"
#include "router.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace marginmerge::server;
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    static const Router router = [] {
        Router r;
        r.add({"GET", "/v1/pages/{id}", nullptr});
        r.add({"GET", "/v1/pages/{id}/image", nullptr});
        r.add({"POST", "/", nullptr});
        return r;
    }();
    try {
        const auto head = parse_request_head(text, {});
        if (!head) return 0;
        if (head->head_bytes > size || head->content_length > Limits().body_bytes) std::abort();
        if (parse_query(head->target).size() > head->target.size()) std::abort();
        PathValues values;
        router.find(head->method, head->path(), values);
    } catch (const ApiError&) {
    }
    return 0;
}
