#include "io/byte_source.h"

#include "io/mapped_file.h"

namespace marginmerge {

void ByteSource::release(std::size_t offset, std::size_t length) const {
    if (mapped && offset <= bytes.size() && length <= bytes.size() - offset)
        release_pages(bytes.data() + offset, length);
}

ByteSource map_bytes(const std::filesystem::path& path) {
    const MappedFile file(path);
    return {file.bytes(), path.string(), file.keep_alive(), true};
}

ByteSource borrow_bytes(std::span<const std::byte> bytes, std::string name) {
    return {bytes, std::move(name), nullptr, false};
}

}  // namespace marginmerge
