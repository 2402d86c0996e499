#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/fail.h"
#include "io/safetensors.h"

namespace marginmerge {

namespace {
constexpr std::uint64_t alignment = 64;
}

SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& path, std::map<std::string, std::string> metadata)
    : file_(path), metadata_(std::move(metadata)) {}

void SafetensorsWriter::declare(std::string name, DType type, std::vector<std::uint64_t> shape) {
    TensorInfo info;
    info.name = std::move(name);
    info.type = type;
    info.shape = std::move(shape);
    tensors_.push_back(std::move(info));
}

void SafetensorsWriter::write_header() {
    // The format allows no gaps between tensors, so alignment comes from order: a tensor whose
    // size is a multiple of 64 leaves the next one aligned. The others follow by element width,
    // widest first, which keeps each aligned to its own element.
    const auto loose = [](const TensorInfo& t) {
        return t.elements() * dtype_size(t.type) % alignment == 0 ? 0 : 16 - static_cast<int>(dtype_size(t.type));
    };
    std::stable_sort(tensors_.begin(), tensors_.end(),
                     [&](const TensorInfo& a, const TensorInfo& b) { return loose(a) < loose(b); });
    nlohmann::ordered_json header;
    if (!metadata_.empty()) header["__metadata__"] = metadata_;
    std::uint64_t end = 0;
    for (auto& t : tensors_) {
        t.begin = end;
        t.end = end += t.elements() * dtype_size(t.type);
        header[t.name] = {{"dtype", dtype_name(t.type)}, {"shape", t.shape}, {"data_offsets", {t.begin, t.end}}};
    }
    std::string text = header.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    text.resize((text.size() + 8 + alignment - 1) / alignment * alignment - 8, ' ');
    const std::uint64_t length = text.size();
    file_.append(std::as_bytes(std::span(&length, 1)));
    file_.append(text);
    data_begin_ = 8 + length;
}

void SafetensorsWriter::write(std::string_view name, std::uint64_t offset, std::span<const std::byte> bytes) {
    if (data_begin_ == 0) write_header();
    for (const auto& t : tensors_) {
        if (t.name != name) continue;
        if (offset > t.end - t.begin || bytes.size() > t.end - t.begin - offset)
            fail(ErrorCode::internal, "tensor '{}': write past its end", name);
        file_.write_at(data_begin_ + t.begin + offset, bytes);
        return;
    }
    fail(ErrorCode::internal, "tensor '{}': written but never declared", name);
}

void SafetensorsWriter::commit() {
    if (data_begin_ == 0) write_header();
    file_.commit();
}

}  // namespace marginmerge
