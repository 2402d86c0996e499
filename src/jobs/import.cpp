#include "marginmerge/jobs/import.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_set>

#include "core/fail.h"
#include "io/cache_folder.h"
#include "io/multi_vector_stream.h"
#include "io/npy_reader.h"
#include "io/output_path.h"
#include "io/qrels.h"
#include "io/text_lines.h"
#include "io/vector_source.h"
#include "kernels/convert.h"

namespace marginmerge {

namespace {

// Rows converted at a time: bounds memory whatever the size of a document.
constexpr std::size_t block_rows = 1024;
constexpr float largest_half = 65504.0f;

// Most encoders normalise in bfloat16, which leaves norms up to half a percent off whatever the
// type they are stored in later; such vectors count as unit and stay exactly as they are.
constexpr double norm_tolerance = 1e-2;

std::vector<std::string> read_ids(const std::filesystem::path& path) {
    const ByteSource bytes = map_bytes(path);
    const std::string_view text = bytes.text();
    if (text.substr(0, npy_magic.size()) == npy_magic) return npy_strings(bytes.bytes, bytes.name);
    std::vector<std::string> ids;
    const auto first = text.find_first_not_of(" \t\r\n");
    if (first != std::string_view::npos && text[first] == '[') {
        const auto list = nlohmann::json::parse(text, nullptr, false);
        if (list.is_array()) {
            for (const auto& id : list) {
                if (!id.is_string() && !id.is_number_integer())
                    fail(ErrorCode::corrupt, "{}: ids: expected texts or whole numbers", bytes.name);
                ids.push_back(id.is_string() ? id.get<std::string>() : id.dump());
            }
            return ids;
        }
    }
    TextLines lines(text);
    for (std::string_view line; lines.next(line);) ids.emplace_back(line);
    return ids;
}

class Importer {
public:
    Importer(const ImportOptions& options, const Progress& progress) : options_(options), progress_(progress) {
        report_.type = options.type;
        report_.normalised = !options.keep_norms;
        if (!options.ids.empty()) ids_ = read_ids(options.ids);
    }

    ImportReport run() {
        read_judgements();
        for (const auto& path : options_.sources) import_source(path);
        if (ids_ && position_ != ids_->size())
            fail(ErrorCode::corrupt, "{}: ids: expected {} of them, one a document, found {}", options_.ids.string(),
                 position_, ids_->size());
        if (!stream_) fail(ErrorCode::corrupt, "{}: expected documents, found none", options_.sources.front().string());
        report_.documents = stream_->documents();
        report_.vectors = stream_->vectors();
        if (report_.documents == 0)
            fail(ErrorCode::corrupt, "{}: expected documents, found only empty ones",
                 options_.sources.front().string());
        report_.bytes = stream_->commit(metadata());
        if (!options_.qrels_out.empty()) write_qrels(options_.qrels_out, judgements_);
        return std::move(report_);
    }

private:
    void import_source(const std::filesystem::path& path) {
        SourceOptions source_options;
        source_options.offsets = options_.offsets;
        source_options.queries = options_.queries;
        const auto source = open_source(path, source_options);
        name_ = path.string();
        SourceDocument document;
        std::size_t count = 0;
        const bool alone = options_.sources.size() == 1;
        while (source->next(document)) {
            add(document);
            ++count;
            if (progress_ && alone) progress_({"import", "documents", count, source->size(), {}});
        }
        report_.sources.push_back({name_, source->form(), count});
        if (progress_ && !alone) progress_({"import", "sources", report_.sources.size(), options_.sources.size(), {}});
    }

    std::string take_id(const SourceDocument& document) {
        const std::size_t position = position_++;
        if (ids_ && position >= ids_->size())
            fail(ErrorCode::corrupt, "{}: ids: expected one a document, found {} for more documents",
                 options_.ids.string(), ids_->size());
        std::string id = ids_ ? (*ids_)[position] : document.id.empty() ? std::to_string(position) : document.id;
        if (id.empty() || id.find('\n') != std::string::npos || !is_utf8(id))
            fail(ErrorCode::corrupt, "{}: id of document {}: expected UTF-8 text without line breaks, found '{}'",
                 name_, position, id);
        if (!seen_.insert(id).second)
            fail(ErrorCode::corrupt, "{}: ids: expected unique ids, found '{}' twice; --ids names documents otherwise",
                 name_, id);
        return id;
    }

    void add(const SourceDocument& document) {
        const std::string id = take_id(document);
        const VectorsView& v = document.vectors;
        if (v.rows > 0) {
            if (report_.dim == 0) report_.dim = v.dim;
            if (v.dim != report_.dim)
                fail(ErrorCode::corrupt,
                     "{}: document '{}': expected {} dimensions like the documents before, found {}", name_, id,
                     report_.dim, v.dim);
            if (!stream_) stream_.emplace(options_.output, v.dim, options_.type);
        }
        PatchGrid grid = document.grid.known() ? document.grid : options_.grid;
        const std::size_t patches = static_cast<std::size_t>(grid.columns) * static_cast<std::size_t>(grid.rows);
        if (!document.grid.known() && patches > v.rows && v.rows > 0)
            fail(ErrorCode::invalid_argument, "--grid {}x{}: document '{}': expected at least {} vectors, found {}",
                 grid.columns, grid.rows, id, patches, v.rows);
        std::size_t kept = 0;
        bool grid_broken = patches > v.rows;
        for (std::size_t first = 0; first < v.rows; first += block_rows) {
            const std::size_t count = std::min(block_rows, v.rows - first);
            kept += add_block(document, id, first, count, patches, grid_broken);
        }
        if (grid.known() && grid_broken) {
            grid = {};
            ++report_.grids_dropped;
        }
        if (kept > 0) return stream_->end_document(id, grid);
        if (!options_.drop_empty)
            fail(ErrorCode::corrupt,
                 "{}: document '{}': expected at least one vector that is not zero, found {}; --drop-empty leaves it "
                 "out",
                 name_, id, v.rows == 0 ? "no rows" : fmt::format("{} zero rows", v.rows));
        ++report_.empty_dropped;
    }

    // Cleans rows [first, first+count) and appends what stays; returns how many.
    std::size_t add_block(const SourceDocument& document, const std::string& id, std::size_t first, std::size_t count,
                          std::size_t patches, bool& grid_broken) {
        const VectorsView block = document.vectors.middle_rows(first, count);
        const std::size_t dim = block.dim;
        values_.resize(count * dim);
        to_float(block, values_.data());
        keep_.clear();
        bool changed = block.type != options_.type;
        for (std::size_t r = 0; r < count; ++r) {
            float* row = values_.data() + r * dim;
            double squares = 0;
            for (std::size_t j = 0; j < dim; ++j) squares += static_cast<double>(row[j]) * static_cast<double>(row[j]);
            if (!std::isfinite(squares)) refuse_row(id, first + r, row, dim);
            if (squares == 0) {
                ++report_.zero_rows_dropped;
                grid_broken = grid_broken || first + r < patches;
                continue;
            }
            const double norm = std::sqrt(squares);
            if (std::abs(norm - 1) > norm_tolerance) {
                ++report_.not_unit;
                if (!options_.keep_norms) {
                    for (std::size_t j = 0; j < dim; ++j)
                        row[j] = static_cast<float>(static_cast<double>(row[j]) / norm);
                    changed = true;
                } else if (options_.type == ScalarType::f16 && norm > largest_half) {
                    check_half_range(id, first + r, row, dim);
                }
            }
            keep_.push_back(r);
        }
        append(document, block, first, changed);
        return keep_.size();
    }

    void append(const SourceDocument& document, VectorsView block, std::size_t first, bool changed) {
        if (keep_.empty()) return;
        const std::size_t dim = block.dim;
        const std::size_t row_bytes = dim * scalar_size(options_.type);
        const bool boxed = !document.boxes.empty();
        if (!changed && keep_.size() == block.rows) {
            stream_->append(block,
                            boxed ? document.boxes.subspan(4 * first, 4 * block.rows) : std::span<const float>());
            return;
        }
        packed_.resize(keep_.size() * row_bytes);
        boxes_.clear();
        for (std::size_t k = 0; k < keep_.size(); ++k) {
            const std::size_t r = keep_[k];
            from_float({values_.data() + r * dim, dim}, options_.type, packed_.data() + k * row_bytes);
            if (boxed)
                boxes_.insert(boxes_.end(), document.boxes.begin() + static_cast<std::ptrdiff_t>(4 * (first + r)),
                              document.boxes.begin() + static_cast<std::ptrdiff_t>(4 * (first + r) + 4));
        }
        stream_->append({packed_.data(), options_.type, keep_.size(), dim}, boxes_);
    }

    [[noreturn]] void refuse_row(const std::string& id, std::size_t r, const float* row, std::size_t dim) const {
        std::size_t j = 0;
        while (j + 1 < dim && std::isfinite(row[j])) ++j;
        fail(ErrorCode::corrupt, "{}: document '{}': row {}: expected finite numbers, found {} in column {}", name_, id,
             r, row[j], j);
    }
    void check_half_range(const std::string& id, std::size_t r, const float* row, std::size_t dim) const {
        for (std::size_t j = 0; j < dim; ++j) {
            if (std::abs(row[j]) > largest_half)
                fail(ErrorCode::unsupported,
                     "{}: document '{}': row {}: expected values up to {} for F16, found {}; use "
                     "--dtype f32",
                     name_, id, r, largest_half, row[j]);
        }
    }

    // Before any work, so that a folder without judgements is refused early.
    void read_judgements() {
        if (options_.qrels_out.empty()) return;
        for (const auto& path : options_.sources) {
            if (!is_cache_folder(path)) continue;
            for (auto& [query, documents] : read_cache_judgements(path)) judgements_[query].merge(documents);
        }
        if (judgements_.empty())
            fail(ErrorCode::invalid_argument,
                 "--qrels-out: expected a cache folder with meta.json as source, found none");
        report_.judged_queries = judgements_.size();
    }

    std::map<std::string, std::string> metadata() const {
        constexpr std::size_t most = 16;  // names of sources worth remembering
        nlohmann::ordered_json provenance;
        auto names = nlohmann::ordered_json::array();
        for (std::size_t i = 0; i < std::min(most, report_.sources.size()); ++i)
            names.push_back(std::filesystem::path(report_.sources[i].path).filename().string().substr(0, 200));
        provenance["sources"] = names;
        provenance["source_count"] = report_.sources.size();
        provenance["form"] = report_.sources.front().form;
        provenance["zero_rows_dropped"] = report_.zero_rows_dropped;
        provenance["not_unit"] = report_.not_unit;
        provenance["normalised"] = report_.normalised;
        return {{"import", provenance.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)}};
    }

    const ImportOptions& options_;
    const Progress& progress_;
    ImportReport report_;
    std::optional<std::vector<std::string>> ids_;
    Judgements judgements_;
    std::optional<MultiVectorStream> stream_;
    std::unordered_set<std::string> seen_;
    std::string name_;
    std::size_t position_ = 0;
    std::vector<float> values_;
    std::vector<std::byte> packed_;
    std::vector<float> boxes_;
    std::vector<std::size_t> keep_;
};

}  // namespace

ImportReport import_vectors(const ImportOptions& options, const Progress& progress) {
    if (options.sources.empty()) fail(ErrorCode::invalid_argument, "import: expected a source, found none");
    if (options.output.empty()) fail(ErrorCode::invalid_argument, "import: expected an output file, found none");
    if (!options.offsets.empty() && options.sources.size() != 1)
        fail(ErrorCode::invalid_argument, "--offsets: expected one source, found {}", options.sources.size());
    std::vector<std::filesystem::path> inputs = options.sources;
    inputs.insert(inputs.end(), {options.offsets, options.ids});
    check_output(options.output, inputs);
    inputs.push_back(options.output);
    if (!options.qrels_out.empty()) check_output(options.qrels_out, inputs);
    return Importer(options, progress).run();
}

}  // namespace marginmerge
