#include "lab/run_store.h"

#include <fstream>

#include "core/fail.h"
#include "io/atomic_file.h"
#include "jobs/fingerprint.h"
#include "kernels/maxsim.h"
#include "lab/resources.h"
#include "marginmerge/core/version.h"

namespace marginmerge::lab {

namespace fs = std::filesystem;

std::string build_hash() {
    static const std::string hash = [] {
        std::ifstream in("/proc/self/exe", std::ios::binary);
        const std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
        return bytes.empty() ? std::string("unknown") : hash_hex(bytes);
    }();
    return hash;
}

RunStore::RunStore(fs::path folder, bool any_build) : folder_(std::move(folder)) {
    std::error_code error;
    fs::create_directories(folder_ / "runs", error);
    if (!error) fs::create_directories(folder_ / "models", error);
    if (error) fail(ErrorCode::io, "{}: cannot create: {}", folder_.string(), error.message());
    // Kernels of different levels round differently.
    program_ = {{"version", version()}, {"kernel", kernel_name()}, {"format", 1}};
    if (!any_build) program_["build"] = build_hash();
}

nlohmann::json RunStore::complete(nlohmann::json key) const {
    key["program"] = program_;
    return key;
}

std::string RunStore::name(const nlohmann::json& complete_key) { return hash_hex(complete_key.dump()); }

std::optional<nlohmann::json> RunStore::load(const nlohmann::json& complete_key) const {
    const fs::path file = folder_ / "runs" / (name(complete_key) + ".json");
    if (!fs::exists(file)) return std::nullopt;
    std::ifstream in(file);
    const auto stored = nlohmann::json::parse(in, nullptr, false);
    if (!stored.is_object() || !stored.contains("value") || stored.value("key", nlohmann::json()) != complete_key)
        return std::nullopt;
    return stored["value"];
}

void RunStore::save(const nlohmann::json& complete_key, const nlohmann::json& value) const {
    write_text_file(folder_ / "runs" / (name(complete_key) + ".json"),
                    nlohmann::json{{"key", complete_key}, {"value", value}}.dump() + "\n");
}

fs::path RunStore::model_file(const nlohmann::json& complete_key) const {
    return folder_ / "models" / (name(complete_key) + ".safetensors");
}

}  // namespace marginmerge::lab
