#include "encode/pdf.h"

#include <poppler-document.h>
#include <poppler-global.h>
#include <poppler-image.h>
#include <poppler-page-renderer.h>
#include <poppler-page.h>

#include <algorithm>
#include <cmath>
#include <mutex>

#include "core/fail.h"
#include "encode/unicode.h"

namespace marginmerge {

namespace {

void ignore_message(const std::string&, void*) {}

std::string to_string(const poppler::ustring& text) {
    const auto bytes = text.to_utf8();
    return valid_utf8({bytes.data(), bytes.size()});
}

Box fraction(const poppler::rectf& r, const PdfFile::Size& size) {
    const auto part = [](double v, double whole) { return static_cast<float>(std::clamp(v / whole, 0.0, 1.0)); };
    return {part(r.left(), size.width), part(r.top(), size.height), part(r.right(), size.width),
            part(r.bottom(), size.height)};
}

}  // namespace

struct PdfFile::State {
    std::string source;
    std::string bytes;  // Poppler reads from here when there is no file
    std::unique_ptr<poppler::document> document;

    std::unique_ptr<poppler::page> page(std::size_t index) const {
        std::unique_ptr<poppler::page> p(document->create_page(static_cast<int>(index)));
        if (!p) fail(ErrorCode::corrupt, "{}: page {}: cannot be read", source, index + 1);
        return p;
    }
};

PdfFile::PdfFile(std::unique_ptr<State> state) : state_(std::move(state)) {
    static std::once_flag once;
    std::call_once(once, [] { poppler::set_debug_error_function(ignore_message, nullptr); });
}
PdfFile::~PdfFile() = default;
PdfFile::PdfFile(PdfFile&&) noexcept = default;
PdfFile& PdfFile::operator=(PdfFile&&) noexcept = default;

namespace {

std::unique_ptr<poppler::document> checked(poppler::document* opened, const std::string& source) {
    std::unique_ptr<poppler::document> document(opened);
    if (!document) fail(ErrorCode::corrupt, "{}: expected a PDF file, found none that can be read", source);
    if (document->is_locked()) fail(ErrorCode::unsupported, "{}: the PDF is encrypted and needs a password", source);
    if (document->pages() <= 0) fail(ErrorCode::corrupt, "{}: expected pages, found none", source);
    return document;
}

}  // namespace

PdfFile PdfFile::open(const std::filesystem::path& path) {
    PdfFile file(std::make_unique<State>());
    file.state_->source = path.string();
    file.state_->document = checked(poppler::document::load_from_file(path.string()), file.state_->source);
    return file;
}

PdfFile PdfFile::from_bytes(std::string_view bytes, const std::string& source) {
    PdfFile file(std::make_unique<State>());
    file.state_->source = source;
    file.state_->bytes = bytes;
    if (bytes.size() > static_cast<std::size_t>(INT32_MAX)) fail(ErrorCode::unsupported, "{}: too large", source);
    file.state_->document = checked(
        poppler::document::load_from_raw_data(file.state_->bytes.data(), static_cast<int>(bytes.size())), source);
    return file;
}

std::size_t PdfFile::pages() const { return static_cast<std::size_t>(state_->document->pages()); }

std::string PdfFile::title() const { return to_string(state_->document->get_title()); }

PdfFile::Size PdfFile::size(std::size_t index) const {
    const auto page = state_->page(index);
    const poppler::rectf r = page->page_rect();
    Size size{std::abs(r.width()), std::abs(r.height())};
    const auto turned = page->orientation();
    if (turned == poppler::page::landscape || turned == poppler::page::seascape) std::swap(size.width, size.height);
    // A page of no size or of kilometres is a broken or hostile file.
    if (!(size.width >= 1 && size.height >= 1 && size.width <= 1e5 && size.height <= 1e5))
        fail(ErrorCode::unsupported, "{}: page {}: size: expected 1 to 100,000 points, found {} x {}", state_->source,
             index + 1, size.width, size.height);
    return size;
}

Image PdfFile::render(std::size_t index, std::uint32_t longest) const {
    const Size points = size(index);
    const auto page = state_->page(index);
    poppler::page_renderer renderer;
    renderer.set_render_hint(poppler::page_renderer::antialiasing, true);
    renderer.set_render_hint(poppler::page_renderer::text_antialiasing, true);
    renderer.set_image_format(poppler::image::format_rgb24);
    const double resolution = 72.0 * longest / std::max(points.width, points.height);
    const poppler::image made = renderer.render_page(page.get(), resolution, resolution);
    if (!made.is_valid() || made.width() <= 0 || made.height() <= 0 || made.format() != poppler::image::format_rgb24)
        fail(ErrorCode::corrupt, "{}: page {}: cannot be rendered", state_->source, index + 1);
    Image image(static_cast<std::uint32_t>(made.width()), static_cast<std::uint32_t>(made.height()));
    for (std::uint32_t y = 0; y < image.height; ++y) {
        const char* row = made.const_data() + std::size_t{y} * static_cast<std::size_t>(made.bytes_per_row());
        std::copy(row, row + std::size_t{3} * image.width, reinterpret_cast<char*>(image.row(y)));
    }
    return image;
}

PageText PdfFile::text(std::size_t index) const {
    constexpr std::size_t most_bytes = 4 << 20;  // of one page's text
    const Size points = size(index);
    const auto page = state_->page(index);
    PageText out;
    bool first = true;
    Box previous{};
    for (const auto& word : page->text_list()) {
        const std::string text = to_string(word.text());
        const Box whole = fraction(word.bbox(), points);
        if (text.empty() || text.size() + out.text.size() > most_bytes) continue;
        if (!first) {
            const float middle = (whole[1] + whole[3]) / 2;
            const bool same_line = middle > previous[1] && middle < previous[3] && whole[0] >= previous[0];
            out.text += same_line ? ' ' : '\n';
        }
        const auto base = static_cast<std::uint32_t>(out.text.size());
        std::size_t glyph = 0;
        for (const auto& c : decode_utf8(text)) {
            const poppler::rectf r = word.char_bbox(glyph++);
            const bool placed = r.width() > 0 && r.height() > 0;
            out.spans.push_back({base + c.begin, base + c.end, placed ? fraction(r, points) : whole});
        }
        out.text += text;
        previous = whole;
        first = false;
    }
    return out;
}

}  // namespace marginmerge
