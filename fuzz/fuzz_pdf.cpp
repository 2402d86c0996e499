// PDF files: text and boxes of the first pages, and a small rendering.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "encode/pdf.h"
#include "marginmerge/core/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace marginmerge;
    try {
        const PdfFile file = PdfFile::from_bytes({reinterpret_cast<const char*>(data), size}, "fuzz");
        for (std::size_t p = 0; p < std::min<std::size_t>(file.pages(), 2); ++p) {
            const PageText text = file.text(p);
            for (const auto& span : text.spans) {
                if (span.end > text.text.size() || span.box[0] < 0 || span.box[2] > 1) std::abort();
            }
            file.render(p, 64);
        }
    } catch (const Error&) {
    }
    return 0;
}
