#include "encode/text_pages.h"

#include <fmt/format.h>

#include <algorithm>

#include "encode/pdf.h"
#include "encode/unicode.h"

namespace marginmerge {

namespace {

// Letter paper in points; Courier is 0.6 em wide.
constexpr double page_width = 612, page_height = 792;
constexpr double font_size = 9, advance = 0.6 * font_size, leading = 11;
constexpr double left = 36, top = 44;
constexpr std::size_t columns = 100, lines = 64, tab = 8;

Box cell(std::size_t line, std::size_t column) {
    const double x = left + advance * static_cast<double>(column);
    const double y = top + leading * static_cast<double>(line);
    return {static_cast<float>(x / page_width), static_cast<float>((y - 0.8 * font_size) / page_height),
            static_cast<float>((x + advance) / page_width), static_cast<float>((y + 0.25 * font_size) / page_height)};
}

class Setter {
public:
    void put(char32_t c) {
        if (c == '\f') return finish_page();
        if (c == '\n') return finish_line();
        if (c == '\t') {
            do blank();
            while (column_ % tab != 0 && column_ < columns);
            return;
        }
        if (is_space(c)) return blank();
        if (is_control(c)) return;
        if (column_ >= columns) finish_line();
        const auto begin = static_cast<std::uint32_t>(page_.text.size());
        append_utf8(page_.text, c);
        page_.spans.push_back({begin, static_cast<std::uint32_t>(page_.text.size()), cell(line_, column_)});
        ++column_;
    }
    std::vector<PageText> finish() {
        finish_page();
        return std::move(pages_);
    }

private:
    void blank() {
        if (column_ >= columns) return finish_line();
        page_.text += ' ';
        ++column_;
    }
    void finish_line() {
        page_.text += '\n';
        column_ = 0;
        if (++line_ >= lines) finish_page();
    }
    void finish_page() {
        if (!page_.spans.empty()) pages_.push_back(std::move(page_));
        page_ = {};
        line_ = column_ = 0;
    }
    std::vector<PageText> pages_;
    PageText page_;
    std::size_t line_ = 0;
    std::size_t column_ = 0;
};

}  // namespace

std::vector<PageText> paginate(std::string_view text) {
    Setter setter;
    bool carriage_return = false;
    for (const auto& c : decode_utf8(text)) {
        if (c.value == '\r') {
            carriage_return = true;
            setter.put('\n');
            continue;
        }
        if (c.value == '\n' && carriage_return) {
            carriage_return = false;
            continue;
        }
        carriage_return = false;
        setter.put(c.value);
    }
    return setter.finish();
}

// The page becomes a one-page PDF in memory: its Courier is one of the fonts every PDF viewer must
// have, so the same Poppler that renders documents draws it and we need no font code of our own.
Image render_text_page(const PageText& page, std::uint32_t longest) {
    std::string drawing = fmt::format("BT /F1 {} Tf\n", font_size);
    for (const auto& span : page.spans) {
        const auto points = decode_utf8(std::string_view(page.text).substr(span.begin, span.end - span.begin));
        const char32_t c = points.empty() ? U'?' : points[0].value;
        const unsigned code = c < 0x7F || (c >= 0xA1 && c <= 0xFF) ? static_cast<unsigned>(c) : 0x95u;  // a bullet
        drawing += fmt::format("1 0 0 1 {:.2f} {:.2f} Tm <{:02X}> Tj\n", span.box[0] * page_width,
                               page_height - (span.box[1] * page_height + 0.8 * font_size), code);
    }
    drawing += "ET\n";
    std::string pdf = "%PDF-1.4\n";
    std::vector<std::size_t> offsets;
    const auto object = [&](const std::string& body) {
        offsets.push_back(pdf.size());
        pdf += fmt::format("{} 0 obj\n{}\nendobj\n", offsets.size(), body);
    };
    object("<< /Type /Catalog /Pages 2 0 R >>");
    object("<< /Type /Pages /Kids [3 0 R] /Count 1 >>");
    object(
        fmt::format("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {} {}] /Contents 5 0 R "
                    "/Resources << /Font << /F1 4 0 R >> >> >>",
                    page_width, page_height));
    object("<< /Type /Font /Subtype /Type1 /BaseFont /Courier /Encoding /WinAnsiEncoding >>");
    object(fmt::format("<< /Length {} >>\nstream\n{}endstream", drawing.size(), drawing));
    const std::size_t table = pdf.size();
    pdf += fmt::format("xref\n0 {}\n0000000000 65535 f \n", offsets.size() + 1);
    for (const auto offset : offsets) pdf += fmt::format("{:010} 00000 n \n", offset);
    pdf += fmt::format("trailer << /Size {} /Root 1 0 R >>\nstartxref\n{}\n%%EOF\n", offsets.size() + 1, table);
    return PdfFile::from_bytes(pdf, "text page").render(0, longest);
}

}  // namespace marginmerge
