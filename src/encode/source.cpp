#include "encode/source.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/fail.h"
#include "encode/pdf.h"
#include "encode/resample.h"
#include "encode/text_pages.h"
#include "io/mapped_file.h"

namespace marginmerge {

namespace {

namespace fs = std::filesystem;

const std::set<std::string> text_extensions = {".txt", ".text", ".md", ".rst", ".log", ".csv", ".tsv"};
const std::set<std::string> other_extensions = {".pdf", ".png", ".jpg", ".jpeg", ".webp", ".tif", ".tiff"};

std::string lower_extension(const fs::path& path) {
    std::string e = path.extension().string();
    std::transform(e.begin(), e.end(), e.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; });
    return e;
}

class PdfSource final : public Source {
public:
    explicit PdfSource(const fs::path& path) : file_(PdfFile::open(path)), stem_(path.stem().string()) {}
    std::size_t pages() const override { return file_.pages(); }
    Page load(std::size_t index, const PageRequest& request) const override {
        Page page;
        const auto size = file_.size(index);
        page.width = size.width;
        page.height = size.height;
        page.title = file_.title().empty() ? stem_ : file_.title();
        if (request.text) page.text = file_.text(index);
        if (request.longest_side > 0) page.image = file_.render(index, request.longest_side);
        return page;
    }

private:
    PdfFile file_;
    std::string stem_;
};

class ImageSource final : public Source {
public:
    ImageSource(MappedFile file, const SourceLimits& limits)
        : file_(std::move(file)), limits_(limits.image), pages_(image_pages(bytes(), file_.path().string())) {}
    std::size_t pages() const override { return pages_; }
    Page load(std::size_t index, const PageRequest& request) const override {
        Page page;
        page.image = decode_image(bytes(), index, limits_, file_.path().string());
        page.width = page.image.width;
        page.height = page.image.height;
        page.title = file_.path().stem().string();
        if (request.longest_side == 0) page.image = {};
        return page;
    }

private:
    std::span<const std::uint8_t> bytes() const {
        return {reinterpret_cast<const std::uint8_t*>(file_.bytes().data()), file_.bytes().size()};
    }
    MappedFile file_;
    ImageLimits limits_;
    std::size_t pages_;
};

class TextSource final : public Source {
public:
    TextSource(const MappedFile& file, const std::string& source) : stem_(file.path().stem().string()) {
        constexpr std::size_t most_text = 256 << 20;
        const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
        if (text.size() > most_text)
            fail(ErrorCode::unsupported, "{}: expected at most {} bytes of text, found {}", source, most_text,
                 text.size());
        if (text.find('\0') != std::string_view::npos)
            fail(ErrorCode::unsupported, "{}: expected text, found binary data", source);
        pages_ = paginate(text);
        if (pages_.empty()) fail(ErrorCode::corrupt, "{}: expected text, found only blanks", source);
    }
    std::size_t pages() const override { return pages_.size(); }
    Page load(std::size_t index, const PageRequest& request) const override {
        Page page;
        page.text = pages_[index];
        page.width = 612;
        page.height = 792;
        page.title = stem_;
        if (request.longest_side > 0) page.image = render_text_page(page.text, request.longest_side);
        return page;
    }

private:
    std::string stem_;
    std::vector<PageText> pages_;
};

bool known(const fs::path& path) {
    const std::string e = lower_extension(path);
    return text_extensions.count(e) != 0 || other_extensions.count(e) != 0;
}

/// Ids are newline-joined in our files, so a name may not hold one.
std::string safe_name(std::string name) {
    for (char& c : name) {
        if (static_cast<unsigned char>(c) < 32) c = '_';
    }
    return name;
}

void list_folder(const fs::path& folder, std::vector<SourceFile>& out) {
    std::vector<SourceFile> found;
    std::error_code error;
    fs::recursive_directory_iterator it(folder, fs::directory_options::skip_permission_denied, error), end;
    for (; !error && it != end; it.increment(error)) {
        if (it->is_regular_file(error) && known(it->path()))
            found.push_back({it->path(), safe_name(it->path().lexically_relative(folder).generic_string())});
    }
    std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    out.insert(out.end(), found.begin(), found.end());
}

}  // namespace

std::unique_ptr<Source> open_source(const fs::path& path, const SourceLimits& limits) {
    const std::string source = path.string();
    std::error_code error;
    const std::uint64_t size = fs::file_size(path, error);
    if (error) fail(ErrorCode::io, "{}: cannot read: {}", source, error.message());
    if (size == 0) fail(ErrorCode::corrupt, "{}: the file is empty", source);
    if (size > limits.most_bytes)
        fail(ErrorCode::unsupported, "{}: expected at most {} bytes, found {}", source, limits.most_bytes, size);
    const MappedFile file(path);
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(file.bytes().data());
    const std::string_view head(reinterpret_cast<const char*>(bytes), std::min<std::size_t>(file.bytes().size(), 1024));
    std::unique_ptr<Source> opened;
    if (head.find("%PDF-") != std::string_view::npos || lower_extension(path) == ".pdf")
        opened = std::make_unique<PdfSource>(path);
    else if (image_format({bytes, file.bytes().size()}) != ImageFormat::unknown)
        opened = std::make_unique<ImageSource>(file, limits);
    else if (other_extensions.count(lower_extension(path)) != 0)
        fail(ErrorCode::corrupt, "{}: expected PNG, JPEG, WebP or TIFF, found something else", source);
    else
        opened = std::make_unique<TextSource>(file, source);
    if (opened->pages() > limits.most_pages)
        fail(ErrorCode::unsupported, "{}: expected at most {} pages, found {}", source, limits.most_pages,
             opened->pages());
    return opened;
}

std::vector<SourceFile> list_sources(const std::vector<fs::path>& arguments) {
    std::vector<SourceFile> all;
    std::error_code error;
    for (const auto& argument : arguments) {
        if (fs::is_directory(argument, error))
            list_folder(argument, all);
        else if (fs::exists(argument, error))
            all.push_back({argument, safe_name(argument.filename().generic_string())});
        else
            fail(ErrorCode::not_found, "{}: no such file or folder", argument.string());
    }
    // Two files of one name are told apart by the paths they were given with; a file given twice
    // is taken once.
    std::map<std::string, int> uses;
    for (const auto& file : all) ++uses[file.name];
    std::set<std::string> names;
    std::vector<SourceFile> out;
    for (auto& file : all) {
        if (uses[file.name] > 1) file.name = safe_name(file.path.lexically_normal().generic_string());
        if (names.insert(file.name).second) out.push_back(std::move(file));
    }
    return out;
}

}  // namespace marginmerge
