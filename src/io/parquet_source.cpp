#include <algorithm>
#include <cstring>
#include <optional>

#include "core/fail.h"
#include "io/array_documents.h"
#include "io/parquet_pages.h"
#include "io/part_names.h"
#include "io/text_lines.h"
#include "io/vector_column.h"
#include "kernels/convert.h"

namespace marginmerge {

using namespace parquet;

namespace {

// Shared prefixes could make a small page very long ids.
constexpr std::size_t max_id_bytes = 65536;

bool is_dictionary(Encoding e) { return e == Encoding::rle_dictionary || e == Encoding::plain_dictionary; }

/// Indices into the dictionary: a byte with their width, then the hybrid.
void dictionary_indices(const ParquetPage& page, std::size_t size, std::vector<std::uint32_t>& out,
                        const std::string& source) {
    out.clear();
    if (page.values == 0) return;
    if (page.data.empty()) fail(ErrorCode::corrupt, "{}: page: expected dictionary indices, found nothing", source);
    const int width = static_cast<int>(page.data[0]);
    if (width > 32) fail(ErrorCode::corrupt, "{}: page: expected indices of at most 32 bits, found {}", source, width);
    if (width == 0)
        out.assign(page.values, 0);
    else
        decode_hybrid(page.data.subspan(1), width, page.values, out, source);
    for (const auto index : out)
        if (index >= size)
            fail(ErrorCode::corrupt, "{}: page: expected an index below {}, found {}", source, size, index);
}

[[noreturn]] void unknown_encoding(const ParquetPage& page, const ParquetLeaf& leaf, const std::string& source) {
    fail(ErrorCode::unsupported,
         "{}: column {}: expected values that are plain, in a dictionary or byte-split, found encoding {}; write it "
         "again without",
         source, leaf.name(), static_cast<int>(page.encoding));
}

/// Numbers of a page as floats.
class FloatDecoder {
public:
    FloatDecoder(const ParquetLeaf& leaf, const std::string& source) : leaf_(leaf), source_(source) {
        width_ = leaf.type == Type::real64 ? 8 : leaf.type == Type::real32 ? 4 : 2;
    }
    std::span<const float> decode(const ParquetPage& page, const ParquetPages& pages) {
        if (page.encoding == Encoding::plain) {
            need(page.data.size(), page.values);
            convert(page.data, page.values, values_);
        } else if (page.encoding == Encoding::byte_stream_split) {
            need(page.data.size(), page.values);
            joined_.resize(page.values * width_);
            for (std::size_t b = 0; b < width_; ++b)
                for (std::size_t i = 0; i < page.values; ++i) joined_[i * width_ + b] = page.data[b * page.values + i];
            convert(joined_, page.values, values_);
        } else if (is_dictionary(page.encoding)) {
            need(pages.dictionary().size(), pages.dictionary_size());
            convert(pages.dictionary(), pages.dictionary_size(), dictionary_);
            dictionary_indices(page, pages.dictionary_size(), indices_, source_);
            values_.resize(page.values);
            for (std::size_t i = 0; i < page.values; ++i) values_[i] = dictionary_[indices_[i]];
        } else {
            unknown_encoding(page, leaf_, source_);
        }
        return values_;
    }

private:
    void need(std::size_t bytes, std::size_t values) const {
        if (bytes / width_ < values)
            fail(ErrorCode::corrupt, "{}: column {}: page: expected {} numbers, found {} bytes", source_, leaf_.name(),
                 values, bytes);
    }
    void convert(std::span<const std::byte> bytes, std::size_t count, std::vector<float>& out) const {
        out.resize(count);
        if (width_ == 4) {
            if (count > 0) std::memcpy(out.data(), bytes.data(), count * 4);
        } else if (width_ == 8) {
            for (std::size_t i = 0; i < count; ++i) {
                double value = 0;
                std::memcpy(&value, bytes.data() + 8 * i, 8);
                out[i] = static_cast<float>(value);
            }
        } else {
            for (std::size_t i = 0; i < count; ++i) {
                std::uint16_t value = 0;
                std::memcpy(&value, bytes.data() + 2 * i, 2);
                out[i] = half_to_float(value);
            }
        }
    }

    const ParquetLeaf& leaf_;
    const std::string& source_;
    std::size_t width_ = 4;
    std::vector<float> values_, dictionary_;
    std::vector<std::byte> joined_;
    std::vector<std::uint32_t> indices_;
};

/// Texts or whole numbers of a column that does not repeat, one a row; null becomes "".
class TextColumn {
public:
    TextColumn(const ParquetFile& file, std::size_t leaf) : file_(file), leaf_(leaf) {}

    void group(std::size_t index) {
        pages_.emplace(file_, leaf_, index);
        row_ = 0;
        page_ = {};
    }
    std::string next() {
        while (row_ == page_.entries) {
            if (!pages_->next(page_))
                fail(ErrorCode::corrupt, "{}: column {}: expected an id for every row, found fewer", file_.bytes.name,
                     leaf().name());
            row_ = value_ = 0;
            decode();
        }
        const bool present = page_.definition.empty() || page_.definition[row_] == leaf().max_definition;
        ++row_;
        return present ? std::string(texts_[value_++]) : std::string();
    }

private:
    const ParquetLeaf& leaf() const { return file_.leaves[leaf_]; }
    void plain(std::span<const std::byte> data, std::size_t count, std::vector<std::string>& out) const {
        out.clear();
        const auto bad = [&] {
            fail(ErrorCode::corrupt, "{}: column {}: expected {} ids, found fewer", file_.bytes.name, leaf().name(),
                 count);
        };
        for (std::size_t i = 0; i < count; ++i) {
            if (leaf().type == Type::bytes) {
                std::uint32_t length = 0;
                if (data.size() < 4) bad();
                std::memcpy(&length, data.data(), 4);
                if (length > data.size() - 4) bad();
                out.emplace_back(reinterpret_cast<const char*>(data.data()) + 4, length);
                data = data.subspan(4 + length);
            } else {
                const std::size_t width = leaf().type == Type::int32 ? 4 : 8;
                if (data.size() < width) bad();
                std::int64_t value = 0;
                if (width == 4) {
                    std::int32_t small = 0;
                    std::memcpy(&small, data.data(), 4);
                    value = small;
                } else {
                    std::memcpy(&value, data.data(), 8);
                }
                out.push_back(std::to_string(value));
                data = data.subspan(width);
            }
        }
    }
    /// Texts whose lengths, and (`prefixes`) the part each shares with the one before, stand delta-packed in front.
    void delta_texts(std::span<const std::byte> data, std::size_t count, bool prefixes) {
        const std::string& source = file_.bytes.name;
        std::vector<std::int64_t> shared(count, 0), lengths;
        if (prefixes) decode_delta(data, count, shared, source);
        decode_delta(data, count, lengths, source);
        texts_.clear();
        std::string previous;
        for (std::size_t i = 0; i < count; ++i) {
            if (shared[i] < 0 || static_cast<std::uint64_t>(shared[i]) > previous.size() || lengths[i] < 0 ||
                static_cast<std::uint64_t>(lengths[i]) > data.size())
                fail(ErrorCode::corrupt, "{}: column {}: expected {} ids, found fewer", source, leaf().name(), count);
            previous.resize(static_cast<std::size_t>(shared[i]));
            previous.append(reinterpret_cast<const char*>(data.data()), static_cast<std::size_t>(lengths[i]));
            if (previous.size() > max_id_bytes)
                fail(ErrorCode::corrupt, "{}: column {}: expected ids of at most {} bytes, found a longer one", source,
                     leaf().name(), max_id_bytes);
            data = data.subspan(static_cast<std::size_t>(lengths[i]));
            texts_.push_back(previous);
        }
    }
    void decode() {
        if (page_.encoding == Encoding::plain) {
            plain(page_.data, page_.values, texts_);
        } else if (is_dictionary(page_.encoding)) {
            std::vector<std::string> dictionary;
            plain(pages_->dictionary(), pages_->dictionary_size(), dictionary);
            std::vector<std::uint32_t> indices;
            dictionary_indices(page_, dictionary.size(), indices, file_.bytes.name);
            texts_.clear();
            for (const auto index : indices) texts_.push_back(dictionary[index]);
        } else if (page_.encoding == Encoding::delta_length_byte_array && leaf().type == Type::bytes) {
            delta_texts(page_.data, page_.values, false);
        } else if (page_.encoding == Encoding::delta_byte_array && leaf().type == Type::bytes) {
            delta_texts(page_.data, page_.values, true);
        } else if (page_.encoding == Encoding::delta_binary_packed && leaf().type != Type::bytes) {
            std::vector<std::int64_t> numbers;
            auto data = page_.data;
            decode_delta(data, page_.values, numbers, file_.bytes.name);
            texts_.clear();
            for (const auto number : numbers) texts_.push_back(std::to_string(number));
        } else {
            unknown_encoding(page_, leaf(), file_.bytes.name);
        }
    }

    const ParquetFile& file_;
    std::size_t leaf_;
    std::optional<ParquetPages> pages_;
    ParquetPage page_;
    std::size_t row_ = 0, value_ = 0;
    std::vector<std::string> texts_;
};

/// Rows of a column list<list<float>> (or list<float>: one vector a row).
class ParquetSource : public VectorSource {
public:
    explicit ParquetSource(ParquetFile file) : file_(std::move(file)) {
        std::vector<VectorColumn> columns;
        std::vector<std::size_t> leaves;
        for (std::size_t i = 0; i < file_.leaves.size(); ++i) {
            const ParquetLeaf& leaf = file_.leaves[i];
            const bool number = leaf.type == Type::real32 || leaf.type == Type::real64 || leaf.half;
            if (number && (leaf.max_repetition == 1 || leaf.max_repetition == 2)) {
                columns.push_back({leaf.path.front(), leaf.max_repetition});
                leaves.push_back(i);
            }
            const bool text = leaf.type == Type::bytes || leaf.type == Type::int32 || leaf.type == Type::int64;
            if (!ids_ && text && leaf.max_repetition == 0 && leaf.path.size() == 1 &&
                part_names::is(part_names::ids, leaf.path.front()))
                ids_.emplace(file_, i);
        }
        vectors_ = leaves[choose_vector_column(columns, file_.bytes.name)];
        decoder_.emplace(leaf(), file_.bytes.name);
    }

    bool next(SourceDocument& document) override {
        while (group_row_ == rows_of_group()) {
            if (group_ != not_begun) end_group();
            if (++group_ == file_.groups.size()) return false;
            pages_.emplace(file_, vectors_, group_);
            if (ids_) ids_->group(group_);
            group_row_ = entry_ = value_ = 0;
            page_ = {};
        }
        read_row();
        ++group_row_;
        document = {};
        if (ids_) document.id = ids_->next();
        ++row_;
        if (vectors_in_row_ > 0) {
            check_document(vectors_in_row_, dim_, DType::f32, file_.bytes.name, fmt::format("row {}", row_ - 1));
            document.vectors = VectorsView(row_values_.data(), ScalarType::f32, vectors_in_row_, dim_);
        }
        return true;
    }
    std::size_t size() const override { return file_.rows; }
    std::string form() const override { return "Parquet, column " + file_.leaves[vectors_].path.front(); }

private:
    static constexpr std::size_t not_begun = static_cast<std::size_t>(-1);

    const ParquetLeaf& leaf() const { return file_.leaves[vectors_]; }
    std::uint64_t rows_of_group() const { return group_ == not_begun ? 0 : file_.groups[group_].rows; }
    [[noreturn]] void bad(const std::string& what) const {
        fail(ErrorCode::corrupt, "{}: column {}: row {}: {}", file_.bytes.name, leaf().name(), row_, what);
    }

    bool more_entries() {
        if (entry_ < page_.entries) return true;
        if (!pages_->next(page_)) return false;
        numbers_ = decoder_->decode(page_, *pages_);
        entry_ = value_ = 0;
        return true;
    }

    void end_group() {
        if (more_entries()) bad("expected the end of the row group, found more values");
        const auto& chunk = file_.groups[group_].chunks[vectors_];
        file_.bytes.release(chunk.begin, chunk.bytes);
    }

    // Entries up to the next one of repetition 0, which begins another row.
    void read_row() {
        row_values_.clear();
        vectors_in_row_ = 0;
        const int most = leaf().max_repetition;
        const int full = leaf().max_definition;
        const int vector_level = most - 1;  // repetition below this or equal begins a new vector
        std::size_t in_vector = 0;
        bool first = true;
        const auto end_vector = [&] {
            if (in_vector == 0) return;
            if (vectors_in_row_ == 0) dim_ = in_vector;
            if (in_vector != dim_)
                bad(fmt::format("vector {}: expected {} numbers like the first, found {}", vectors_in_row_, dim_,
                                in_vector));
            ++vectors_in_row_;
            in_vector = 0;
        };
        while (more_entries()) {
            const int repetition = page_.repetition.empty() ? 0 : page_.repetition[entry_];
            if (repetition == 0 && !first) break;
            if (repetition != 0 && first) bad("expected the beginning of a row, found its middle");
            first = false;
            if (repetition <= vector_level) end_vector();
            const int definition = page_.definition.empty() ? full : page_.definition[entry_];
            ++entry_;
            if (definition == full) {
                row_values_.push_back(numbers_[value_++]);
                ++in_vector;
                if (row_values_.size() * sizeof(float) > max_document_bytes)
                    bad("expected a document of at most 1 GB, found more");
            } else if (definition >= leaf().list_definition[0] && most == 2) {
                bad(definition >= leaf().list_definition[1] ? "expected numbers, found null"
                                                            : "expected vectors, found an empty or null one");
            } else if (definition >= leaf().list_definition[0]) {
                bad("expected numbers, found null");
            }
        }
        if (first) bad("expected a row, found the end of the column");
        end_vector();
    }

    ParquetFile file_;
    std::size_t vectors_ = 0;  ///< leaf
    std::optional<TextColumn> ids_;
    std::optional<FloatDecoder> decoder_;
    std::optional<ParquetPages> pages_;
    ParquetPage page_;
    std::span<const float> numbers_;
    std::size_t group_ = not_begun, group_row_ = 0, entry_ = 0, value_ = 0, row_ = 0;
    std::vector<float> row_values_;
    std::size_t vectors_in_row_ = 0, dim_ = 0;
};

}  // namespace

std::unique_ptr<VectorSource> open_parquet_source(ByteSource bytes) {
    return std::make_unique<ParquetSource>(read_parquet_footer(std::move(bytes)));
}

}  // namespace marginmerge
