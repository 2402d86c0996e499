#include "index/segment.h"

#include <algorithm>
#include <cmath>

#include "core/fail.h"
#include "index/limited_json.h"
#include "io/multi_vector_file.h"
#include "kernels/convert.h"

namespace marginmerge {

namespace {

constexpr std::size_t max_columns = 64;

VectorCode code_of(ScalarType type) {
    return type == ScalarType::f32 ? VectorCode::f32 : type == ScalarType::f16 ? VectorCode::f16 : VectorCode::bf16;
}

std::size_t dimension(const SafetensorsFile& file) {
    const auto found = file.metadata().find("dim");
    const std::string text = found == file.metadata().end() ? "" : found->second;
    if (text.empty() || text.size() > 6 || text.find_first_not_of("0123456789") != std::string::npos || text == "0")
        fail(ErrorCode::corrupt, "{}: dim: expected a dimension, found '{}'", file.path(), text);
    return std::stoul(text);
}

void check_full(const MultiVectorSet& full, const MultiVectorSet& layout, const std::string& source) {
    if (full.size() != layout.size() || (full.size() > 0 && full.dim() != layout.dim()))
        fail(ErrorCode::corrupt, "{}: expected {} pages of {} dimensions, found {} of {}", source, layout.size(),
             layout.dim(), full.size(), full.dim());
    for (std::size_t i = 0; i < full.size(); ++i)
        if (full.id(i) != layout.id(i))
            fail(ErrorCode::corrupt, "{}: page {}: expected id '{}', found '{}'", source, i, layout.id(i), full.id(i));
}

}  // namespace

std::shared_ptr<const Segment> Segment::open(const std::filesystem::path& path, const std::filesystem::path& full) {
    const std::shared_ptr<Segment> s(new Segment());
    const SafetensorsFile file(path);
    const auto schema = file.metadata().find("schema");
    if (schema != file.metadata().end() && schema->second == coded_schema) {
        s->read_codes(file);
    } else {
        s->layout_ = read_multi_vectors(path);
        s->code_ = code_of(s->layout_.type());
        s->dim_ = s->layout_.dim();
    }
    s->storage_ = file.keep_alive();
    s->read_metadata(file);
    if (!full.empty()) {
        s->full_ = read_multi_vectors(full);
        check_full(*s->full_, s->layout_, full.string());
    }
    return s;
}

std::shared_ptr<const Segment> Segment::wrap(const MultiVectorSet& pages) {
    const std::shared_ptr<Segment> s(new Segment());
    s->layout_ = pages;
    s->code_ = code_of(pages.type());
    s->dim_ = pages.dim();
    return s;
}

void Segment::read_codes(const SafetensorsFile& file) {
    const auto version = file.metadata().find("version");
    if (version == file.metadata().end() || version->second != schema_version)
        fail(ErrorCode::unsupported, "{}: version: expected {}, found {}", file.path(), schema_version,
             version == file.metadata().end() ? "none" : version->second);
    dim_ = dimension(file);
    const bool bits = file.find("bits") != nullptr;
    code_ = bits ? VectorCode::bits : VectorCode::int8;
    const char* name = bits ? "bits" : "codes";
    const TensorInfo& codes = file.require(name, bits ? DType::u8 : DType::i8, 2);
    const std::size_t row = bits ? bit_row_bytes(dim_) : dim_;
    if (codes.shape[1] != row)
        fail(ErrorCode::corrupt, "{}: tensor '{}': expected rows of {} bytes for {} dimensions, found {}", file.path(),
             name, row, dim_, codes.shape[1]);
    const auto scales = file.require_span<float>("scales", DType::f32, 1);
    if (scales.size() != codes.shape[0])
        fail(ErrorCode::corrupt, "{}: scales: expected {}, found {}", file.path(), codes.shape[0], scales.size());
    for (const float s : scales)
        if (!std::isfinite(s))
            fail(ErrorCode::corrupt, "{}: scales: expected finite numbers, found {}", file.path(), s);
    const auto* bytes = file.bytes(codes).data();
    if (bits)
        bits_ = {reinterpret_cast<const std::uint8_t*>(bytes), scales.data(), codes.shape[0], dim_};
    else
        int8_ = {reinterpret_cast<const std::int8_t*>(bytes), scales.data(), codes.shape[0], dim_};
    MultiVectorParts parts = read_multi_vector_layout(file);
    // Row counts are checked against the offsets; the vectors themselves are never touched.
    parts.vectors = {nullptr, ScalarType::f16, codes.shape[0], dim_};
    layout_ = MultiVectorSet(std::move(parts), file.path());
}

void Segment::read_metadata(const SafetensorsFile& file) {
    if (file.find("page_metadata") == nullptr) return;
    const auto bytes = file.require_span<std::uint8_t>("page_metadata", DType::u8, 1);
    metadata_text_ = {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
    const auto lines = static_cast<std::size_t>(std::count(metadata_text_.begin(), metadata_text_.end(), '\n'));
    if (lines != size())
        fail(ErrorCode::corrupt, "{}: page_metadata: expected {} lines, found {}", file.path(), size(), lines);
    metadata_offsets_.reserve(lines + 1);
    metadata_offsets_.push_back(0);
    for (std::size_t i = 0; i < metadata_text_.size(); ++i)
        if (metadata_text_[i] == '\n') metadata_offsets_.push_back(i + 1);
    if (metadata_offsets_.back() != metadata_text_.size())
        fail(ErrorCode::corrupt, "{}: page_metadata: expected a line end after the last page", file.path());
}

Matrix Segment::decoded(std::size_t page) const {
    const auto first = static_cast<std::size_t>(layout_.offsets()[page]);
    const std::size_t count = layout_.vectors_of(page);
    if (plain()) return to_float(layout_.vectors(page));
    Matrix m(count, dim_);
    if (code_ == VectorCode::int8)
        decode_int8(int8_.middle_rows(first, count), m.data());
    else
        decode_bits(bits_.middle_rows(first, count), m.data());
    return m;
}

std::size_t Segment::vector_bytes(std::size_t page) const {
    const std::size_t count = layout_.vectors_of(page);
    if (plain()) return layout_.vectors(page).bytes();
    return count * (sizeof(float) + (code_ == VectorCode::int8 ? dim_ : bit_row_bytes(dim_)));
}

std::string_view Segment::metadata(std::size_t page) const {
    if (!has_metadata()) return {};
    return metadata_text_.substr(metadata_offsets_[page], metadata_offsets_[page + 1] - metadata_offsets_[page] - 1);
}

std::shared_ptr<const Column> Segment::column(const std::string& field) const {
    const std::lock_guard lock(mutex_);
    const auto known = columns_.find(field);
    if (known != columns_.end()) return known->second;
    // Strangers choose the field names: their filters must not fill the memory.
    if (columns_.size() >= max_columns) columns_.clear();
    auto made = std::make_shared<Column>();
    made->offsets.reserve(size() + 1);
    for (std::size_t i = 0; i < size(); ++i) {
        const auto text = metadata(i);
        if (!text.empty())
            field_values(parse_limited_json(text, "metadata of page '" + layout_.id(i) + "'"), field, made->values);
        made->offsets.push_back(static_cast<std::uint32_t>(made->values.size()));
    }
    columns_[field] = made;
    return made;
}

BitsView Segment::sign_bits() const {
    if (code_ == VectorCode::bits) return bits_;
    std::call_once(sign_once_, [&] {
        const std::size_t rows = layout_.total_vectors();
        sign_codes_ = AlignedArray<std::uint8_t>(rows * bit_row_bytes(dim_));
        sign_scales_ = AlignedArray<float>(rows);
        for (std::size_t i = 0; i < size(); ++i) {
            const auto first = static_cast<std::size_t>(layout_.offsets()[i]);
            auto* codes = sign_codes_.data() + first * bit_row_bytes(dim_);
            auto* scales = sign_scales_.data() + first;
            if (plain())
                encode_bits(layout_.vectors(i), codes, scales);
            else
                encode_bits(VectorsView(ConstMatrix(decoded(i))), codes, scales);
        }
    });
    return {sign_codes_.data(), sign_scales_.data(), layout_.total_vectors(), dim_};
}

}  // namespace marginmerge
