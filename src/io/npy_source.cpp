#include "core/fail.h"
#include "io/array_documents.h"
#include "io/npy_reader.h"

namespace marginmerge {

std::unique_ptr<VectorSource> open_npy_source(ByteSource bytes, const std::string& stem,
                                              const std::vector<std::int64_t>& boundaries) {
    const NpyHeader header = parse_npy_header(bytes.bytes, bytes.name);
    if (header.text_width != 0) fail(ErrorCode::unsupported, "{}: descr: expected numbers, found text", bytes.name);
    const std::uint64_t available = bytes.bytes.size() - header.data_begin;
    const auto needed = checked_bytes(header.array.type, header.array.shape, available, bytes.name, "array");
    if (needed != available)
        fail(ErrorCode::corrupt, "{}: array: expected {} bytes of data for {}, found {}", bytes.name, needed,
             describe(header.array.type, header.array.shape), available);
    ArrayLabels labels;
    labels.bounds = boundaries;
    labels.stem = stem;
    const std::string name = bytes.name;
    return array_documents(memory_reader(std::move(bytes), header.data_begin, header.data_begin + needed), header.array,
                           std::move(labels), name, "npy");
}

}  // namespace marginmerge
