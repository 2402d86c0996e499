#include <algorithm>

#include "core/fail.h"
#include "io/array_documents.h"
#include "io/multi_vector_file.h"
#include "io/natural_order.h"

namespace marginmerge {

namespace {

// Pages of a mapped file are given back when this much has been read since the last time.
constexpr std::size_t release_step = 8U << 20;

// Our own layout: vectors and offsets in one tensor each.
class OwnLayout : public VectorSource {
public:
    OwnLayout(MultiVectorSet set, ByteSource bytes) : set_(std::move(set)), bytes_(std::move(bytes)) {}
    bool next(SourceDocument& document) override {
        if (position_ == set_.size()) return false;
        const VectorsView v = set_.vectors(position_);
        const auto begin = static_cast<std::size_t>(static_cast<const std::byte*>(v.data) - bytes_.bytes.data());
        if (v.bytes() > 0 && begin - released_ >= release_step) {
            bytes_.release(released_, begin - released_);
            released_ = begin;
        }
        check_document(v.rows, v.dim, to_dtype(v.type), bytes_.name, "document " + std::to_string(position_));
        document = {set_.id(position_), v, set_.grid(position_), set_.boxes(position_)};
        ++position_;
        return true;
    }
    std::size_t size() const override { return set_.size(); }
    std::string form() const override { return "safetensors, multi-vector layout"; }

private:
    MultiVectorSet set_;
    ByteSource bytes_;
    std::size_t position_ = 0;
    std::size_t released_ = 0;
};

// One tensor a document, named by its id.
class TensorPerDocument : public VectorSource {
public:
    TensorPerDocument(SafetensorsFile file, std::vector<std::size_t> order)
        : file_(std::move(file)), order_(std::move(order)) {}
    bool next(SourceDocument& document) override {
        if (position_ == order_.size()) return false;
        const TensorInfo& t = file_.tensors()[order_[position_++]];
        const auto raw = file_.bytes(t);
        const std::size_t dim = t.shape.back();
        const std::size_t rows = t.shape.size() == 1 ? 1 : t.shape[t.shape.size() - 2];
        if (read_ >= release_step) {
            file_.source().release(0, file_.source().bytes.size());
            read_ = 0;
        }
        read_ += raw.size();
        document = {};
        document.id = t.name;
        document.vectors = buffer_.view(raw, t.type, rows, dim);
        return true;
    }
    std::size_t size() const override { return order_.size(); }
    std::string form() const override { return "safetensors, one tensor a document"; }

private:
    SafetensorsFile file_;
    std::vector<std::size_t> order_;
    std::size_t position_ = 0;
    std::size_t read_ = 0;
    RowBuffer buffer_;
};

void check_tensor(const TensorInfo& t, const std::string& source) {
    const bool shape = t.shape.size() == 1 || t.shape.size() == 2 || (t.shape.size() == 3 && t.shape[0] == 1);
    if (!is_float(t.type) || !shape)
        fail(ErrorCode::unsupported,
             "{}: tensor '{}': expected a document's vectors [n, d] in F16, BF16, F32 or F64, found {}", source, t.name,
             describe(t.type, t.shape));
    const std::uint64_t rows = t.shape.size() == 1 ? 1 : t.shape[t.shape.size() - 2];
    check_document(rows, t.shape.back(), t.type, source, "tensor '" + t.name + "'");
}

}  // namespace

std::unique_ptr<VectorSource> open_safetensors_source(ByteSource bytes, const std::string& stem) {
    SafetensorsFile file(bytes);
    const auto schema = file.metadata().find("schema");
    if (schema != file.metadata().end() && schema->second != multi_vector_schema)
        fail(ErrorCode::unsupported, "{}: schema: expected {} or none, found {}", bytes.name, multi_vector_schema,
             schema->second);
    if (file.find("vectors") != nullptr && file.find("offsets") != nullptr) {
        if (file.find("source_offsets") != nullptr)
            fail(ErrorCode::unsupported,
                 "{}: expected original vectors, found a compressed file (tensor 'source_offsets'); it needs no import",
                 bytes.name);
        return std::make_unique<OwnLayout>(read_multi_vectors(file), bytes);
    }
    if (file.tensors().empty()) fail(ErrorCode::corrupt, "{}: expected tensors, found none", bytes.name);
    const TensorInfo& first = file.tensors().front();
    if (file.tensors().size() == 1 && first.shape.size() == 3 && first.shape[0] != 1) {
        const auto begin = static_cast<std::size_t>(file.bytes(first).data() - bytes.bytes.data());
        ArrayLabels labels;
        labels.stem = stem;
        return array_documents(memory_reader(bytes, begin, begin + (first.end - first.begin)),
                               {first.type, first.shape}, std::move(labels), bytes.name, "safetensors");
    }
    // Writers of the format sort tensors by type and name, so the place in the file says nothing
    // about the order of documents; names in natural order do ("page2" before "page10").
    std::vector<std::size_t> positions(file.tensors().size());
    for (std::size_t i = 0; i < positions.size(); ++i) positions[i] = i;
    const auto& tensors = file.tensors();
    std::sort(positions.begin(), positions.end(),
              [&](std::size_t a, std::size_t b) { return natural_less(tensors[a].name, tensors[b].name); });
    for (const TensorInfo& t : tensors) check_tensor(t, bytes.name);
    return std::make_unique<TensorPerDocument>(std::move(file), std::move(positions));
}

}  // namespace marginmerge
