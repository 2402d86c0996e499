#include "io/array_documents.h"

#include <cstring>

#include "core/fail.h"

namespace marginmerge {

namespace {

class ArrayDocuments : public VectorSource {
public:
    ArrayDocuments(std::unique_ptr<ByteStream> reader, ArrayInfo array, ArrayLabels labels, std::string source,
                   const std::string& kind)
        : reader_(std::move(reader)), array_(std::move(array)), labels_(std::move(labels)), source_(std::move(source)) {
        const std::size_t dimensions = array_.shape.size();
        dim_ = array_.shape.back();
        if (dimensions == 3) {
            form_ = kind + ", 3-D padded";
            count_ = array_.shape[0];
            check_document(array_.shape[1], dim_, array_.type, source_, "padded document");
            if (array_.shape[1] == 0)  // no bytes at all may claim any number of documents
                fail(ErrorCode::corrupt, "{}: vectors: expected rows, found {}", source_,
                     describe(array_.type, array_.shape));
            check_lengths();
        } else {
            single_ = labels_.bounds.empty();
            offsets_ = single_ ? std::vector<std::int64_t>{0, static_cast<std::int64_t>(array_.shape[0])}
                               : document_offsets(labels_.bounds, array_.shape[0], source_);
            form_ = kind + (single_ ? ", 2-D, one document" : ", 2-D with offsets");
            count_ = offsets_.size() - 1;
            if (single_ && labels_.ids.empty()) labels_.ids = {labels_.stem};
        }
        if (!labels_.ids.empty() && labels_.ids.size() != count_)
            fail(ErrorCode::corrupt, "{}: ids: expected {} of them, found {}", source_, count_, labels_.ids.size());
        if (!labels_.grid.empty() && labels_.grid.size() != 2 * count_)
            fail(ErrorCode::corrupt, "{}: grid: expected {} x 2 entries, found {} in all", source_, count_,
                 labels_.grid.size());
    }

    bool next(SourceDocument& document) override {
        if (position_ == count_) return false;
        const std::size_t i = position_++;
        std::uint64_t rows = 0;
        std::uint64_t unused = 0;
        if (array_.shape.size() == 3) {
            rows = labels_.bounds.empty() ? array_.shape[1] : static_cast<std::uint64_t>(labels_.bounds[i]);
            unused = array_.shape[1] - rows;
        } else {
            rows = static_cast<std::uint64_t>(offsets_[i + 1] - offsets_[i]);
            check_document(rows, dim_, array_.type, source_,
                           single_ ? "2-D array without offsets" : "document " + std::to_string(i));
        }
        const std::uint64_t row_bytes = dim_ * dtype_size(array_.type);
        // Only now: skipping may reuse the buffer that the last document still stood in.
        if (pending_skip_ > 0) reader_->skip(pending_skip_);
        document = {};
        document.id = labels_.ids.empty() ? std::string() : labels_.ids[i];
        document.vectors = buffer_.view(reader_->take(rows * row_bytes), array_.type, rows, dim_);
        pending_skip_ = unused * row_bytes;
        if (!labels_.grid.empty()) document.grid = grid(i);
        return true;
    }
    std::size_t size() const override { return count_; }
    std::string form() const override { return form_; }

private:
    void check_lengths() const {
        if (labels_.bounds.empty()) return;
        if (labels_.bounds.size() != count_)
            fail(ErrorCode::corrupt, "{}: lengths: expected {} of them, found {}", source_, count_,
                 labels_.bounds.size());
        for (const auto length : labels_.bounds) {
            if (length < 0 || static_cast<std::uint64_t>(length) > array_.shape[1])
                fail(ErrorCode::corrupt, "{}: lengths: expected 0 to {}, found {}", source_, array_.shape[1], length);
        }
    }
    PatchGrid grid(std::size_t i) const {
        const auto columns = labels_.grid[2 * i];
        const auto rows = labels_.grid[2 * i + 1];
        if (columns < 0 || rows < 0 || columns > 65536 || rows > 65536)
            fail(ErrorCode::corrupt, "{}: grid: expected 0 to 65536 for document {}, found {} x {}", source_, i,
                 columns, rows);
        return {static_cast<std::int32_t>(columns), static_cast<std::int32_t>(rows)};
    }

    std::unique_ptr<ByteStream> reader_;
    ArrayInfo array_;
    ArrayLabels labels_;
    std::string source_;
    std::string form_;
    std::vector<std::int64_t> offsets_;
    std::uint64_t dim_ = 0;
    std::size_t count_ = 0;
    std::size_t position_ = 0;
    std::uint64_t pending_skip_ = 0;
    bool single_ = false;
    RowBuffer buffer_;
};

}  // namespace

VectorsView RowBuffer::view(std::span<const std::byte> raw, DType type, std::size_t rows, std::size_t dim) {
    const std::size_t count = rows * dim;
    if (type == DType::f64) {
        values_.resize(count);
        for (std::size_t i = 0; i < count; ++i) {
            double value = 0;
            std::memcpy(&value, raw.data() + i * sizeof value, sizeof value);
            values_[i] = static_cast<float>(value);
        }
        return {values_.data(), ScalarType::f32, rows, dim};
    }
    const ScalarType scalar = type == DType::f32   ? ScalarType::f32
                              : type == DType::f16 ? ScalarType::f16
                                                   : ScalarType::bf16;
    if (reinterpret_cast<std::uintptr_t>(raw.data()) % scalar_size(scalar) == 0) return {raw.data(), scalar, rows, dim};
    values_.resize((raw.size() + sizeof(float) - 1) / sizeof(float));
    std::memcpy(values_.data(), raw.data(), raw.size());
    return {values_.data(), scalar, rows, dim};
}

std::vector<std::int64_t> document_offsets(std::span<const std::int64_t> bounds, std::uint64_t rows,
                                           const std::string& source) {
    const auto total = static_cast<std::int64_t>(rows);
    if (bounds.empty()) fail(ErrorCode::corrupt, "{}: offsets: expected at least one entry, found none", source);
    std::int64_t sum = 0;
    bool sums = true;  // lengths: nothing negative and no overflow on the way to the total
    for (const auto value : bounds) sums = sums && value >= 0 && value <= total && (sum += value) <= total;
    if (sums && sum == total && !(bounds.size() > 1 && bounds.front() == 0 && bounds.back() == total)) {
        std::vector<std::int64_t> offsets{0};
        for (const auto value : bounds) offsets.push_back(offsets.back() + value);
        return offsets;
    }
    if (bounds.front() != 0)
        fail(ErrorCode::corrupt, "{}: offsets: expected 0 as the first entry (or lengths that sum to {}), found {}",
             source, total, bounds.front());
    for (std::size_t i = 1; i < bounds.size(); ++i) {
        if (bounds[i] < bounds[i - 1])
            fail(ErrorCode::corrupt, "{}: offsets: expected ascending entries, found {} after {} at {}", source,
                 bounds[i], bounds[i - 1], i);
    }
    if (bounds.back() != total)
        fail(ErrorCode::corrupt, "{}: offsets: expected {} as the last entry, found {}", source, total, bounds.back());
    return {bounds.begin(), bounds.end()};
}

void check_document(std::uint64_t rows, std::uint64_t dim, DType type, const std::string& source,
                    const std::string& what) {
    if (dim < min_dimension || dim > max_dimension)
        fail(ErrorCode::unsupported, "{}: {}: expected {} to {} dimensions, found {}", source, what, min_dimension,
             max_dimension, dim);
    if (rows > max_document_rows || rows * dim * dtype_size(type) > max_document_bytes)
        fail(ErrorCode::unsupported, "{}: {}: expected at most {} rows and {} bytes a document, found {} rows of {}",
             source, what, max_document_rows, max_document_bytes, rows, dim);
}

std::unique_ptr<VectorSource> array_documents(std::unique_ptr<ByteStream> reader, ArrayInfo array, ArrayLabels labels,
                                              const std::string& source, const std::string& kind) {
    if (!is_float(array.type))
        fail(ErrorCode::unsupported, "{}: vectors: expected F16, BF16, F32 or F64, found {}", source,
             describe(array.type, array.shape));
    if (array.shape.size() != 2 && array.shape.size() != 3)
        fail(ErrorCode::corrupt, "{}: vectors: expected 2 or 3 dimensions, found {}", source,
             describe(array.type, array.shape));
    return std::make_unique<ArrayDocuments>(std::move(reader), std::move(array), std::move(labels), source, kind);
}

}  // namespace marginmerge
