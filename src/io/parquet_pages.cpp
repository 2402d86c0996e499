#include "io/parquet_pages.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/fail.h"
#include "io/decompress.h"
#include "io/thrift.h"

namespace marginmerge {

using namespace parquet;

namespace {

using Field = ThriftReader::Field;

// A page holds a megabyte or so; this many entries are either a mistake or an attack.
constexpr std::size_t max_page_entries = 1U << 27;

struct Header {
    PageType type = PageType::index;
    std::int32_t unpacked = -1, packed = -1, entries = -1;
    Encoding encoding = Encoding::plain;
    std::int32_t repetition_bytes = 0, definition_bytes = 0;
    int repetition_encoding = static_cast<int>(Encoding::rle), definition_encoding = static_cast<int>(Encoding::rle);
    bool compressed = true;
};

Header read_header(ThriftReader& in) {
    Header h;
    in.structure([&](const Field& f) {
        const bool data = f.id == 5 || f.id == 7, second = f.id == 8;
        if ((data || second) && f.type == ThriftType::structure) {
            in.structure([&](const Field& d) {
                if (d.id == 1) return h.entries = in.small(d), true;
                if (d.id == (second ? 4 : 2)) return h.encoding = static_cast<Encoding>(in.small(d)), true;
                if (f.id == 5 && d.id == 3) return h.definition_encoding = in.small(d), true;
                if (f.id == 5 && d.id == 4) return h.repetition_encoding = in.small(d), true;
                if (second && d.id == 5) return h.definition_bytes = in.small(d), true;
                if (second && d.id == 6) return h.repetition_bytes = in.small(d), true;
                if (second && d.id == 7) return h.compressed = in.boolean(d), true;
                return false;
            });
            return true;
        }
        if (f.id == 1) return h.type = static_cast<PageType>(in.small(f)), true;
        if (f.id == 2) return h.unpacked = in.small(f), true;
        if (f.id == 3) return h.packed = in.small(f), true;
        return false;
    });
    return h;
}

Compression compression(Codec codec, const std::string& source) {
    switch (codec) {
        case Codec::none: return Compression::none;
        case Codec::snappy: return Compression::snappy;
        case Codec::gzip: return Compression::gzip;
        case Codec::zstd: return Compression::zstd;
        case Codec::lz4: return Compression::lz4_block;
        default:
            fail(ErrorCode::unsupported,
                 "{}: compression: expected none, snappy, gzip, zstd or lz4_raw, found codec {}", source,
                 static_cast<int>(codec));
    }
}

}  // namespace

void decode_hybrid(std::span<const std::byte> data, int width, std::size_t count, std::vector<std::uint32_t>& out,
                   const std::string& source) {
    const auto bad = [&] {
        fail(ErrorCode::corrupt, "{}: page: expected {} packed numbers, found fewer", source, count);
    };
    out.resize(count);
    std::size_t at = 0, filled = 0;
    const std::size_t value_bytes = (static_cast<std::size_t>(width) + 7) / 8;
    while (filled < count) {
        std::uint64_t head = 0;
        for (unsigned shift = 0;; shift += 7) {
            if (at == data.size() || shift > 35) bad();
            const auto b = static_cast<std::uint8_t>(data[at++]);
            head |= static_cast<std::uint64_t>(b & 0x7F) << shift;
            if (b < 0x80) break;
        }
        if ((head & 1) == 0) {
            if (data.size() - at < value_bytes) bad();
            std::uint32_t value = 0;
            std::memcpy(&value, data.data() + at, value_bytes);
            at += value_bytes;
            const std::size_t run = std::min<std::uint64_t>(head >> 1, count - filled);
            if (run == 0) bad();
            std::fill_n(out.begin() + static_cast<std::ptrdiff_t>(filled), run, value);
            filled += run;
        } else {
            // Groups of eight numbers, lowest bits first. The last group may be cut short by the end of the data.
            const std::uint64_t groups = head >> 1;
            const std::size_t run = std::min<std::uint64_t>(groups > count ? count : groups * 8, count - filled);
            if (run == 0) bad();
            const std::size_t bits = run * static_cast<std::size_t>(width);
            if (data.size() - at < (bits + 7) / 8) bad();
            for (std::size_t i = 0; i < run; ++i) {
                const std::size_t bit = i * static_cast<std::size_t>(width);
                std::uint64_t window = 0;
                std::memcpy(&window, data.data() + at + bit / 8, std::min<std::size_t>(8, data.size() - at - bit / 8));
                out[filled + i] = static_cast<std::uint32_t>(window >> (bit % 8) & ((std::uint64_t{1} << width) - 1));
            }
            const std::uint64_t whole = groups * static_cast<std::uint64_t>(width);
            at += std::min<std::uint64_t>(whole, data.size() - at);
            filled += run;
        }
    }
}

void decode_delta(std::span<const std::byte>& data, std::size_t count, std::vector<std::int64_t>& out,
                  const std::string& source) {
    const auto bad = [&] {
        fail(ErrorCode::corrupt, "{}: page: expected {} delta-packed numbers, found otherwise", source, count);
    };
    const auto varint = [&] {
        std::uint64_t value = 0;
        for (unsigned shift = 0; shift < 64; shift += 7) {
            if (data.empty()) bad();
            const auto b = static_cast<std::uint8_t>(data[0]);
            data = data.subspan(1);
            value |= static_cast<std::uint64_t>(b & 0x7F) << shift;
            if (b < 0x80) return value;
        }
        bad();
        return value;
    };
    const auto zigzag = [&] {
        const std::uint64_t v = varint();
        return v >> 1 ^ (~(v & 1) + 1);
    };
    // Header: values a block, miniblocks a block, values in all, first value. A block: smallest delta, a width for each
    // miniblock, then the miniblocks' deltas less the smallest. Sums wrap around on purpose.
    const std::uint64_t block = varint(), minis = varint(), total = varint();
    std::uint64_t value = zigzag();
    if (total != count || minis == 0 || minis > 512 || block == 0 || block > 65536 || block % minis != 0 ||
        block / minis % 8 != 0)
        bad();
    const std::size_t mini = block / minis;
    out.clear();
    if (count > 0) out.push_back(static_cast<std::int64_t>(value));
    while (out.size() < count) {
        const std::uint64_t least = zigzag();
        if (data.size() < minis) bad();
        const auto widths = data.first(minis);
        data = data.subspan(minis);
        for (std::size_t m = 0; m < minis && out.size() < count; ++m) {
            const auto width = static_cast<std::size_t>(widths[m]);
            const std::size_t bytes = mini * width / 8;
            if (width > 64 || bytes > data.size()) bad();
            for (std::size_t i = 0; i < mini && out.size() < count; ++i) {
                std::uint64_t delta = 0;
                for (std::size_t b = 0; b < width; ++b) {
                    const std::size_t bit = i * width + b;
                    delta |= static_cast<std::uint64_t>(static_cast<unsigned>(data[bit / 8]) >> (bit % 8) & 1) << b;
                }
                value += least + delta;
                out.push_back(static_cast<std::int64_t>(value));
            }
            data = data.subspan(bytes);
        }
    }
}

ParquetPages::ParquetPages(const ParquetFile& file, std::size_t leaf, std::size_t group)
    : file_(file), leaf_(file.leaves[leaf]), chunk_(file.groups[group].chunks[leaf]) {}

void ParquetPages::bad(const char* what, std::uint64_t expected, std::uint64_t found) const {
    fail(ErrorCode::corrupt, "{}: column {}: {}: expected {}, found {}", file_.bytes.name, leaf_.name(), what, expected,
         found);
}

std::span<const std::byte> ParquetPages::unpack(std::span<const std::byte> packed, std::uint64_t size) {
    const Compression kind = compression(chunk_.codec, file_.bytes.name);
    if (kind == Compression::none) {
        if (packed.size() != size) bad("bytes of a page", size, packed.size());
        return packed;
    }
    decompress(kind, packed, size, unpacked_, file_.bytes.name, "page");
    return unpacked_;
}

void ParquetPages::levels(std::span<const std::byte> data, int most, std::size_t entries,
                          std::vector<std::uint8_t>& out) const {
    std::vector<std::uint32_t> numbers;
    decode_hybrid(data, std::bit_width(static_cast<unsigned>(most)), entries, numbers, file_.bytes.name);
    out.resize(entries);
    for (std::size_t i = 0; i < entries; ++i) {
        if (numbers[i] > static_cast<std::uint32_t>(most)) bad("level", static_cast<std::uint64_t>(most), numbers[i]);
        out[i] = static_cast<std::uint8_t>(numbers[i]);
    }
}

void ParquetPages::count(ParquetPage& page) const {
    page.values = page.definition.empty()
                      ? page.entries
                      : static_cast<std::size_t>(std::count(page.definition.begin(), page.definition.end(),
                                                            static_cast<std::uint8_t>(leaf_.max_definition)));
}

void ParquetPages::read_v1(ParquetPage& page, std::span<const std::byte> body) {
    const auto part = [&] {
        std::uint32_t length = 0;
        if (body.size() < 4) bad("bytes of levels", 4, body.size());
        std::memcpy(&length, body.data(), sizeof length);
        if (length > body.size() - 4) bad("bytes of levels", body.size() - 4, length);
        const auto data = body.subspan(4, length);
        body = body.subspan(4 + length);
        return data;
    };
    if (leaf_.max_repetition > 0) levels(part(), leaf_.max_repetition, page.entries, page.repetition);
    if (leaf_.max_definition > 0) levels(part(), leaf_.max_definition, page.entries, page.definition);
    page.data = body;
}

bool ParquetPages::next(ParquetPage& page) {
    while (seen_ < chunk_.values) {
        const auto rest = file_.bytes.bytes.subspan(chunk_.begin + position_, chunk_.bytes - position_);
        ThriftReader in(rest, file_.bytes.name);
        const Header h = read_header(in);
        const std::size_t begin = in.position();
        if (h.packed < 0 || static_cast<std::uint64_t>(h.packed) > rest.size() - begin)
            bad("bytes of a page", rest.size() - begin, static_cast<std::uint64_t>(h.packed < 0 ? 0 : h.packed));
        if (h.unpacked < 0) bad("bytes of an unpacked page", 0, 0);
        const auto packed = rest.subspan(begin, static_cast<std::size_t>(h.packed));
        position_ += begin + packed.size();
        if (h.type == PageType::index) continue;
        if (h.entries < 0 || static_cast<std::size_t>(h.entries) > max_page_entries)
            bad("values of a page", max_page_entries, static_cast<std::uint64_t>(std::max(h.entries, 0)));
        const auto unpacked = static_cast<std::uint64_t>(h.unpacked);
        if (h.type == PageType::dictionary) {
            const auto data = unpack(packed, unpacked);
            dictionary_.assign(data.begin(), data.end());
            dictionary_size_ = static_cast<std::size_t>(h.entries);
            continue;
        }
        page = {};
        page.entries = static_cast<std::size_t>(h.entries);
        page.encoding = h.encoding;
        if (page.entries > chunk_.values - seen_) bad("values", chunk_.values - seen_, page.entries);
        if (page.entries == 0) continue;
        seen_ += page.entries;
        if (h.type == PageType::data) {
            if ((leaf_.max_repetition > 0 && h.repetition_encoding != static_cast<int>(Encoding::rle)) ||
                (leaf_.max_definition > 0 && h.definition_encoding != static_cast<int>(Encoding::rle)))
                fail(ErrorCode::unsupported, "{}: column {}: levels: expected the RLE encoding, found an older one",
                     file_.bytes.name, leaf_.name());
            read_v1(page, unpack(packed, unpacked));
        } else if (h.type == PageType::data_v2) {
            const auto r = static_cast<std::uint64_t>(std::max(h.repetition_bytes, 0));
            const auto d = static_cast<std::uint64_t>(std::max(h.definition_bytes, 0));
            if (r + d > packed.size() || r + d > unpacked) bad("bytes of levels", packed.size(), r + d);
            if (leaf_.max_repetition > 0)
                levels(packed.subspan(0, r), leaf_.max_repetition, page.entries, page.repetition);
            if (leaf_.max_definition > 0)
                levels(packed.subspan(r, d), leaf_.max_definition, page.entries, page.definition);
            page.data = packed.subspan(r + d);
            if (h.compressed) page.data = unpack(page.data, unpacked - r - d);
        } else {
            fail(ErrorCode::unsupported, "{}: column {}: page: expected a data page, found type {}", file_.bytes.name,
                 leaf_.name(), static_cast<int>(h.type));
        }
        count(page);
        return true;
    }
    return false;
}

}  // namespace marginmerge
