#include "io/array_reader.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "core/fail.h"

namespace marginmerge {

namespace {

class MemoryReader : public ByteStream {
public:
    MemoryReader(ByteSource source, std::size_t begin, std::size_t end)
        : source_(std::move(source)), position_(begin), released_(begin), end_(end) {}

    std::span<const std::byte> take(std::size_t count) override {
        if (count > end_ - position_)
            fail(ErrorCode::corrupt, "{}: expected {} more bytes, found {} (truncated)", source_.name, count,
                 end_ - position_);
        // What was handed out before is no longer in use.
        constexpr std::size_t step = 8U << 20;
        if (position_ - released_ >= step) {
            source_.release(released_, position_ - released_);
            released_ = position_;
        }
        const auto bytes = source_.bytes.subspan(position_, count);
        position_ += count;
        return bytes;
    }
    void skip(std::uint64_t count) override {
        if (count > end_ - position_)
            fail(ErrorCode::corrupt, "{}: expected {} more bytes, found {} (truncated)", source_.name, count,
                 end_ - position_);
        position_ += count;
    }

private:
    ByteSource source_;
    std::size_t position_;
    std::size_t released_;
    std::size_t end_;
};

template <class T>
void widen(std::span<const std::byte> bytes, std::vector<std::int64_t>& out, const std::string& source,
           const std::string& field) {
    out.resize(bytes.size() / sizeof(T));
    for (std::size_t i = 0; i < out.size(); ++i) {
        T value;
        std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
        if constexpr (std::is_same_v<T, std::uint64_t>) {
            if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
                fail(ErrorCode::corrupt, "{}: {}: expected a 63-bit integer at {}, found {}", source, field, i, value);
        }
        out[i] = static_cast<std::int64_t>(value);  // NOLINT(bugprone-signed-char-misuse): int8 are numbers here
    }
}

}  // namespace

std::unique_ptr<ByteStream> memory_reader(ByteSource source, std::size_t begin, std::size_t end) {
    return std::make_unique<MemoryReader>(std::move(source), begin, end);
}

std::uint64_t checked_bytes(DType type, std::span<const std::uint64_t> shape, std::uint64_t available,
                            const std::string& source, const std::string& field) {
    std::uint64_t bytes = dtype_size(type);
    bool overflow = false;
    for (const auto extent : shape) overflow = overflow || __builtin_mul_overflow(bytes, extent, &bytes);
    if (overflow || bytes > available)
        fail(ErrorCode::corrupt, "{}: {}: expected {} for {}, found {} bytes of data (truncated?)", source, field,
             overflow ? "an absurd number of bytes" : std::to_string(bytes) + " bytes", describe(type, shape),
             available);
    return bytes;
}

bool is_float(DType type) {
    return type == DType::f16 || type == DType::bf16 || type == DType::f32 || type == DType::f64;
}

bool is_integer(DType type) { return !is_float(type) && type != DType::boolean; }

std::string describe(DType type, std::span<const std::uint64_t> shape) {
    std::string text = std::string(dtype_name(type)) + " [";
    for (std::size_t i = 0; i < shape.size(); ++i) {
        if (i > 0) text += ", ";
        text += std::to_string(shape[i]);
    }
    text += ']';
    return text;
}

std::vector<std::int64_t> to_integers(DType type, std::span<const std::byte> bytes, const std::string& source,
                                      const std::string& field) {
    std::vector<std::int64_t> out;
    switch (type) {
        case DType::u8: widen<std::uint8_t>(bytes, out, source, field); break;
        case DType::i8: widen<std::int8_t>(bytes, out, source, field); break;
        case DType::u16: widen<std::uint16_t>(bytes, out, source, field); break;
        case DType::i16: widen<std::int16_t>(bytes, out, source, field); break;
        case DType::u32: widen<std::uint32_t>(bytes, out, source, field); break;
        case DType::i32: widen<std::int32_t>(bytes, out, source, field); break;
        case DType::u64: widen<std::uint64_t>(bytes, out, source, field); break;
        case DType::i64: widen<std::int64_t>(bytes, out, source, field); break;
        default: fail(ErrorCode::corrupt, "{}: {}: expected whole numbers, found {}", source, field, dtype_name(type));
    }
    return out;
}

}  // namespace marginmerge
