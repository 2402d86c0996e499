#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "encode/image.h"
#include "encode/page_text.h"

namespace marginmerge {

/// What an encoder wants from a page.
struct PageRequest {
    std::uint32_t longest_side = 0;  ///< of the image; 0: no image
    bool text = false;
};

struct Page {
    Image image;       ///< empty when none was asked for
    PageText text;     ///< empty for images
    double width = 0;  ///< points, or pixels for images
    double height = 0;
    std::string title;
};

/// Caps on what is read; beyond them a file is refused with a message, never loaded.
struct SourceLimits {
    std::uint64_t most_bytes = std::uint64_t{1} << 30;
    std::size_t most_pages = 100'000;
    ImageLimits image;
};

/// A file that has pages: PDF, image or plain text, told by content and, for text, by name.
class Source {
public:
    virtual ~Source() = default;
    virtual std::size_t pages() const = 0;
    virtual Page load(std::size_t page, const PageRequest& request) const = 0;
};

/// Opens a file for reading by one thread. Throws Error for what is broken, empty, encrypted or too large.
std::unique_ptr<Source> open_source(const std::filesystem::path& path, const SourceLimits& limits);

/// A file to encode and the name its pages' ids start with.
struct SourceFile {
    std::filesystem::path path;
    std::string name;
};

/// Files stand for themselves; folders for every file below them with a known extension, in
/// order of their names. Throws Error(not_found) for an argument that does not exist.
std::vector<SourceFile> list_sources(const std::vector<std::filesystem::path>& arguments);

}  // namespace marginmerge
