#include <algorithm>

#include "core/fail.h"
#include "io/array_documents.h"
#include "io/npy_reader.h"
#include "io/part_names.h"
#include "io/torch_source.h"
#include "io/zip_archive.h"

namespace marginmerge {

namespace {

// Offsets and ids of a hundred million documents fit.
constexpr std::uint64_t max_labels = 2ULL << 30;

struct NamedArray {
    std::string name;  // without .npy
    const ZipArchive::Entry* entry;
    NpyHeader header;
};

// The header of an entry, read without unpacking the rest, checked against the entry's size.
NamedArray open_array(const ZipArchive& archive, const ZipArchive::Entry& entry, bool& is_array) {
    NamedArray array{entry.name, &entry, {}};
    is_array = false;
    if (array.name.size() > 4 && array.name.substr(array.name.size() - 4) == ".npy")
        array.name.resize(array.name.size() - 4);
    if (entry.size < 10) return array;
    const auto reader = archive.open(entry);
    const auto prefix = reader->take(std::min<std::uint64_t>(entry.size, max_npy_header));
    const std::string source = archive.name() + ": " + entry.name;
    if (std::string_view(reinterpret_cast<const char*>(prefix.data()), npy_magic.size()) != npy_magic) return array;
    is_array = true;
    array.header = parse_npy_header(prefix, source);
    const std::uint64_t available = entry.size - array.header.data_begin;
    std::vector<std::uint64_t> shape = array.header.array.shape;
    if (array.header.text_width != 0) shape.push_back(array.header.text_width);
    const auto needed = checked_bytes(array.header.array.type, shape, available, source, "array");
    if (needed != available)
        fail(ErrorCode::corrupt, "{}: array: expected {} bytes of data, found {}", source, needed, available);
    return array;
}

// One array a document, in archive order, each unpacked when its turn comes.
class ArrayPerDocument : public VectorSource {
public:
    ArrayPerDocument(std::unique_ptr<ZipArchive> archive, std::vector<NamedArray> arrays, std::vector<std::string> ids)
        : archive_(std::move(archive)), arrays_(std::move(arrays)), ids_(std::move(ids)) {}
    bool next(SourceDocument& document) override {
        if (position_ == arrays_.size()) return false;
        const NamedArray& array = arrays_[position_];
        const auto& shape = array.header.array.shape;
        reader_ = archive_->open(*array.entry);
        reader_->skip(array.header.data_begin);
        document = {};
        document.id = ids_.empty() ? array.name : ids_[position_];
        document.vectors = buffer_.view(reader_->take(array.header.array.bytes()), array.header.array.type,
                                        shape.size() == 1 ? 1 : shape[shape.size() - 2], shape.back());
        ++position_;
        return true;
    }
    std::size_t size() const override { return arrays_.size(); }
    std::string form() const override { return "npz, one array a document"; }

private:
    std::unique_ptr<ZipArchive> archive_;
    std::vector<NamedArray> arrays_;
    std::vector<std::string> ids_;
    std::unique_ptr<ZipEntryReader> reader_;
    std::size_t position_ = 0;
    RowBuffer buffer_;
};

// Keeps the archive alive for the reader of one big array in it.
class WithArchive : public VectorSource {
public:
    WithArchive(std::unique_ptr<ZipArchive> archive, std::unique_ptr<VectorSource> source)
        : archive_(std::move(archive)), source_(std::move(source)) {}
    bool next(SourceDocument& document) override { return source_->next(document); }
    std::size_t size() const override { return source_->size(); }
    std::string form() const override { return source_->form(); }

private:
    std::unique_ptr<ZipArchive> archive_;
    std::unique_ptr<VectorSource> source_;
};

void check_document_array(const NamedArray& array, const std::string& source) {
    const auto& info = array.header.array;
    const bool shape =
        info.shape.size() == 1 || info.shape.size() == 2 || (info.shape.size() == 3 && info.shape[0] == 1);
    const std::string where = source + ": " + array.entry->name;
    if (array.header.text_width != 0 || !is_float(info.type) || !shape)
        fail(ErrorCode::unsupported, "{}: expected a document's vectors [n, d] in F16, BF16, F32 or F64, found {}",
             where, array.header.text_width != 0 ? "text" : describe(info.type, info.shape));
    check_document(info.shape.size() == 1 ? 1 : info.shape[info.shape.size() - 2], info.shape.back(), info.type, where,
                   "array");
}

std::unique_ptr<VectorSource> open_npz(std::unique_ptr<ZipArchive> archive, const std::string& stem,
                                       const std::vector<std::int64_t>& boundaries) {
    const std::string source = archive->name();
    std::vector<NamedArray> documents;
    ArrayLabels labels;
    labels.bounds = boundaries;
    labels.stem = stem;
    for (const auto& entry : archive->entries()) {
        bool is_array = false;
        NamedArray array = open_array(*archive, entry, is_array);
        const std::string where = source + ": " + entry.name;
        if (!is_array) fail(ErrorCode::unsupported, "{}: expected a .npy array, found something else", where);
        const bool one_dimension = array.header.array.shape.size() == 1;
        const bool numbers = array.header.text_width == 0 && is_integer(array.header.array.type);
        if (part_names::is(part_names::ids, array.name) && one_dimension && (numbers || array.header.text_width != 0)) {
            labels.ids = npy_strings(archive->read(entry, max_labels), where);
        } else if (part_names::is(part_names::offsets, array.name) && one_dimension && numbers) {
            ArrayInfo info;
            labels.bounds = npy_integers(archive->read(entry, max_labels), where, info);
        } else if (part_names::is(part_names::grid, array.name) && numbers) {
            ArrayInfo info;
            labels.grid = npy_integers(archive->read(entry, max_labels), where, info);
        } else {
            documents.push_back(std::move(array));
        }
    }
    if (documents.empty()) fail(ErrorCode::corrupt, "{}: expected arrays of vectors, found none", source);
    const NamedArray& first = documents.front();
    const bool whole = documents.size() == 1 && (first.header.array.shape.size() == 3 || !labels.bounds.empty() ||
                                                 part_names::is(part_names::vectors, first.name));
    if (whole) {
        if (first.header.text_width != 0)
            fail(ErrorCode::unsupported, "{}: {}: expected numbers, found text", source, first.name);
        auto reader = archive->open(*first.entry);
        reader->skip(first.header.data_begin);
        auto inner = array_documents(std::move(reader), first.header.array, std::move(labels), source, "npz");
        return std::make_unique<WithArchive>(std::move(archive), std::move(inner));
    }
    if (!labels.bounds.empty())
        fail(ErrorCode::unsupported, "{}: offsets: expected one array of vectors beside them, found {}", source,
             documents.size());
    if (!labels.ids.empty() && labels.ids.size() != documents.size())
        fail(ErrorCode::corrupt, "{}: ids: expected {} of them, found {}", source, documents.size(), labels.ids.size());
    for (const NamedArray& array : documents) check_document_array(array, source);
    return std::make_unique<ArrayPerDocument>(std::move(archive), std::move(documents), std::move(labels.ids));
}

}  // namespace

std::unique_ptr<VectorSource> open_zip_source(ByteSource bytes, const std::string& stem,
                                              const std::vector<std::int64_t>& boundaries) {
    auto archive = std::make_unique<ZipArchive>(std::move(bytes));
    if (archive->entries().empty())
        fail(ErrorCode::corrupt, "{}: expected entries in the zip archive, found none", archive->name());
    if (is_torch_archive(*archive)) return open_torch_source(std::move(archive), stem, boundaries);
    return open_npz(std::move(archive), stem, boundaries);
}

}  // namespace marginmerge
