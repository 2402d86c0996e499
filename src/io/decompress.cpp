#include "io/decompress.h"

#include <lz4.h>
#include <lz4frame.h>
#include <snappy-c.h>
#include <zlib.h>
#include <zstd.h>

#include <limits>

#include "core/fail.h"

namespace marginmerge {

namespace {

bool unpack_gzip(std::span<const std::byte> packed, std::span<std::byte> out) {
    z_stream stream{};
    if (inflateInit2(&stream, 15 + 32) != Z_OK) return false;  // gzip or zlib, told apart by their headers
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed.data()));
    stream.avail_in = static_cast<uInt>(packed.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    const int status = inflate(&stream, Z_FINISH);
    const bool whole = status == Z_STREAM_END && stream.avail_out == 0;
    inflateEnd(&stream);
    return whole;
}

bool unpack_lz4_frame(std::span<const std::byte> packed, std::span<std::byte> out) {
    LZ4F_dctx* context = nullptr;
    if (LZ4F_isError(LZ4F_createDecompressionContext(&context, LZ4F_VERSION))) return false;
    std::size_t status = 1, in = 0, written = 0;
    while (status != 0 && in < packed.size()) {
        std::size_t source = packed.size() - in, target = out.size() - written;
        status = LZ4F_decompress(context, out.data() + written, &target, packed.data() + in, &source, nullptr);
        if (LZ4F_isError(status) || (source == 0 && target == 0)) break;
        in += source;
        written += target;
    }
    LZ4F_freeDecompressionContext(context);
    return status == 0 && written == out.size();
}

bool unpack(Compression kind, std::span<const std::byte> packed, std::span<std::byte> out) {
    const auto* from = reinterpret_cast<const char*>(packed.data());
    auto* to = reinterpret_cast<char*>(out.data());
    switch (kind) {
        case Compression::snappy: {
            std::size_t length = 0;
            if (snappy_uncompressed_length(from, packed.size(), &length) != SNAPPY_OK || length != out.size())
                return false;
            return snappy_uncompress(from, packed.size(), to, &length) == SNAPPY_OK && length == out.size();
        }
        case Compression::gzip: return unpack_gzip(packed, out);
        case Compression::zstd: return ZSTD_decompress(to, out.size(), from, packed.size()) == out.size();
        case Compression::lz4_block:
            return LZ4_decompress_safe(from, to, static_cast<int>(packed.size()), static_cast<int>(out.size())) ==
                   static_cast<int>(out.size());
        case Compression::lz4_frame: return unpack_lz4_frame(packed, out);
        case Compression::none: return false;
    }
    return false;
}

}  // namespace

void decompress(Compression kind, std::span<const std::byte> packed, std::uint64_t size, std::vector<std::byte>& out,
                const std::string& source, const char* what) {
    if (size > max_unpacked_bytes || packed.size() > max_unpacked_bytes)
        fail(ErrorCode::corrupt, "{}: {}: expected at most {} bytes, found {}", source, what, max_unpacked_bytes,
             std::max<std::uint64_t>(size, packed.size()));
    if (kind == Compression::none) {
        if (packed.size() != size)
            fail(ErrorCode::corrupt, "{}: {}: expected {} bytes, found {}", source, what, size, packed.size());
        out.assign(packed.begin(), packed.end());
        return;
    }
    out.resize(size);
    if (size == 0 && packed.empty()) return;
    if (!unpack(kind, packed, out))
        fail(ErrorCode::corrupt, "{}: {}: expected data that unpack to {} bytes, found damaged ones", source, what,
             size);
}

}  // namespace marginmerge
