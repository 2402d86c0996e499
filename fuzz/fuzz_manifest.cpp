// The manifest of an index folder. The checksum is mended first, so that the fuzzer reaches what lies behind it.
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

#include "index/manifest.h"
#include "marginmerge/core/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace marginmerge;
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    try {
        parse_manifest(text, "fuzz");
    } catch (const Error&) {
    }
    auto value = nlohmann::json::parse(text, nullptr, false);
    if (!value.is_object()) return 0;
    value.erase("xxh64");
    try {
        value["xxh64"] = checksum_text(checksum_bytes(value.dump()));
        const Manifest manifest = parse_manifest(value.dump(), "fuzz");
        // What was accepted survives a round trip.
        if (parse_manifest(manifest_text(manifest), "fuzz").files().size() != manifest.files().size()) __builtin_trap();
    } catch (const Error&) {
    } catch (const nlohmann::json::exception&) {  // dump of text that is not UTF-8
    }
    return 0;
}
