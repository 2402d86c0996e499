#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "encode/image.h"
#include "encode/page_text.h"

namespace marginmerge {

/// A PDF opened with Poppler. One object belongs to one thread at a time.
class PdfFile {
public:
    /// Throws Error(corrupt) for what is no PDF, Error(unsupported) for an encrypted one.
    static PdfFile open(const std::filesystem::path& path);
    static PdfFile from_bytes(std::string_view bytes, const std::string& source);
    ~PdfFile();
    PdfFile(PdfFile&&) noexcept;
    PdfFile& operator=(PdfFile&&) noexcept;

    std::size_t pages() const;
    std::string title() const;
    /// Width and height in points, as the page is shown (rotation applied).
    struct Size {
        double width = 0;
        double height = 0;
    };
    Size size(std::size_t page) const;
    /// The page as an image whose longer side has about `longest` pixels.
    Image render(std::size_t page, std::uint32_t longest) const;
    PageText text(std::size_t page) const;

private:
    struct State;
    explicit PdfFile(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

}  // namespace marginmerge
