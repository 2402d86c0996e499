#include "io/torch_source.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "core/fail.h"
#include "io/array_documents.h"
#include "io/part_names.h"
#include "io/pickle.h"

namespace marginmerge {

namespace {

using Kind = Pickle::Kind;

constexpr std::uint64_t max_pickle = 256U << 20;
constexpr int deepest_list = 64;

// One document: rows x dim elements of a storage.
struct TensorSlice {
    std::uint32_t storage = 0;
    std::uint64_t offset = 0;  // elements
    std::uint64_t rows = 0, dim = 0;
    std::uint64_t row_stride = 0, column_stride = 0;
    std::string id;
};

bool ends_with(std::string_view text, std::string_view end) {
    return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

const ZipArchive::Entry* pickle_entry(const ZipArchive& archive) {
    for (const auto& entry : archive.entries())
        if (entry.name == "data.pkl" || ends_with(entry.name, "/data.pkl")) return &entry;
    return nullptr;
}

// Walks the unpickled values and lists the documents.
class Collector {
public:
    Collector(const Pickle& pickle, const std::string& source, std::string stem, std::vector<std::int64_t> given)
        : bounds(std::move(given)), p_(pickle), source_(source), stem_(std::move(stem)) {
        for (const auto& storage : pickle.storages) stored_ += storage.elements;
    }

    std::vector<std::int64_t> bounds;  // given from outside or as a list in the dict
    std::vector<TensorSlice> slices;
    std::vector<std::string> ids;  // of a part named so
    std::string form;
    const Pickle::Tensor* offsets = nullptr;  // a tensor with offsets or lengths, read by the caller

    void collect() {
        const auto& root = p_.at(p_.root);
        if (root.kind == Kind::dict) return collect_dict(root);
        collect_vectors(root);
    }

    // Rows of a 2-D tensor become documents.
    void cut() {
        if (slices.size() != 1)
            fail(ErrorCode::corrupt, "{}: offsets: expected one tensor [N, d] to cut, found {}", source_,
                 slices.size());
        const TensorSlice whole = slices.front();
        const auto offsets_of = document_offsets(bounds, whole.rows, source_);
        slices.clear();
        for (std::size_t i = 0; i + 1 < offsets_of.size(); ++i) {
            TensorSlice part = whole;
            part.offset += static_cast<std::uint64_t>(offsets_of[i]) * whole.row_stride;
            part.rows = static_cast<std::uint64_t>(offsets_of[i + 1] - offsets_of[i]);
            part.id.clear();
            slices.push_back(std::move(part));
        }
        form = "torch, 2-D tensor with offsets";
    }

private:
    // Structures that share their parts could unfold without end; real files visit a node once.
    void count_visit() {
        if (++visits_ > 2 * p_.nodes.size() + 1000)
            fail(ErrorCode::corrupt, "{}: pickle: expected each value about once, found {} visits of {} values",
                 source_, visits_, p_.nodes.size());
    }

    std::string key_text(Pickle::Ref ref) {
        const auto& key = p_.at(ref);
        if (key.kind == Kind::text) return std::string(key.view());
        if (key.kind == Kind::integer) return std::to_string(key.number);
        fail(ErrorCode::unsupported, "{}: dict: expected texts or whole numbers as keys, found another value", source_);
    }

    void collect_vectors(const Pickle::Node& node) {
        if (node.kind == Kind::tensor) {
            const auto& t = p_.tensors[node.items];
            form = t.dimensions == 3 ? "torch, padded tensor" : "torch, one tensor";
            add_tensor(t, t.dimensions == 3 ? std::string() : stem_);
        } else if (node.kind == Kind::list) {
            form = "torch, list of tensors";
            add_list(node, 0);
        } else if (node.kind == Kind::dict) {
            add_dict(node);
        } else {
            fail(ErrorCode::unsupported,
                 "{}: expected a tensor, a list of tensors or a dict of tensors, found another value", source_);
        }
    }

    void collect_dict(const Pickle::Node& node) {
        const auto& items = p_.items(node);
        const Pickle::Node* vectors = nullptr;
        for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
            const auto& key = p_.at(items[i]);
            if (key.kind == Kind::text && part_names::is(part_names::vectors, key.view()))
                vectors = &p_.at(items[i + 1]);
        }
        if (vectors == nullptr) return add_dict(node);
        for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
            const auto& key = p_.at(items[i]);
            const auto& value = p_.at(items[i + 1]);
            if (key.kind != Kind::text) continue;
            if (part_names::is(part_names::ids, key.view())) collect_ids(value);
            if (part_names::is(part_names::offsets, key.view())) collect_offsets(value);
        }
        collect_vectors(*vectors);
    }
    void collect_ids(const Pickle::Node& node) {
        if (node.kind != Kind::list)
            fail(ErrorCode::unsupported, "{}: ids: expected a list, found another value", source_);
        ids.clear();
        for (const auto ref : p_.items(node)) ids.push_back(key_text(ref));
    }
    void collect_offsets(const Pickle::Node& node) {
        if (node.kind == Kind::tensor) {
            offsets = &p_.tensors[node.items];
            return;
        }
        if (node.kind != Kind::list)
            fail(ErrorCode::unsupported, "{}: offsets: expected a list or a tensor, found another value", source_);
        bounds.clear();
        for (const auto ref : p_.items(node)) {
            if (p_.at(ref).kind != Kind::integer)
                fail(ErrorCode::corrupt, "{}: offsets: expected whole numbers", source_);
            bounds.push_back(p_.at(ref).number);
        }
    }

    void add_list(const Pickle::Node& node, int depth) {
        if (depth > deepest_list)
            fail(ErrorCode::corrupt, "{}: expected lists nested at most {} deep", source_, deepest_list);
        count_visit();
        for (const auto ref : p_.items(node)) {
            const auto& item = p_.at(ref);
            count_visit();
            if (item.kind == Kind::tensor) {
                add_tensor(p_.tensors[item.items], {});
            } else if (item.kind == Kind::list) {
                add_list(item, depth + 1);
            } else {
                fail(ErrorCode::unsupported, "{}: list: expected tensors, found another value at document {}", source_,
                     slices.size());
            }
        }
    }
    void add_dict(const Pickle::Node& node) {
        form = "torch, dict of tensors";
        const auto& items = p_.items(node);
        for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
            const auto& value = p_.at(items[i + 1]);
            const std::string id = key_text(items[i]);
            count_visit();
            if (value.kind != Kind::tensor)
                fail(ErrorCode::unsupported, "{}: dict: expected a tensor for '{}', found another value", source_, id);
            const std::size_t before = slices.size();
            add_tensor(p_.tensors[value.items], id);
            if (slices.size() != before + 1)
                fail(ErrorCode::unsupported, "{}: dict: expected one document for '{}', found {}", source_, id,
                     slices.size() - before);
        }
    }

    void add_tensor(const Pickle::Tensor& t, const std::string& id) {
        const DType type = p_.storages[t.storage].type;
        const auto shape = std::span(t.shape).first(t.dimensions);
        if (!is_float(type) || t.dimensions < 1 || t.dimensions > 3)
            fail(ErrorCode::unsupported, "{}: document {}: expected vectors [n, d] in F16, BF16, F32 or F64, found {}",
                 source_, slices.size(), describe(type, shape));
        const std::size_t last = t.dimensions - 1;
        TensorSlice slice;
        slice.storage = t.storage;
        slice.offset = t.offset;
        slice.dim = t.shape[last];
        slice.column_stride = t.stride[last];
        slice.rows = last >= 1 ? t.shape[last - 1] : 1;
        slice.row_stride = last >= 1 ? t.stride[last - 1] : slice.dim;
        slice.id = id;
        const std::uint64_t batch = t.dimensions == 3 ? t.shape[0] : 1;
        check_document(0, slice.dim, type, source_, "document " + std::to_string(slices.size()));
        // An empty tensor may claim any number of documents.
        if (batch > 1 && slice.rows == 0)
            fail(ErrorCode::corrupt, "{}: document {}: expected rows, found {}", source_, slices.size(),
                 describe(type, shape));
        // Documents may share a storage, but a small file must not unfold into a huge collection.
        used_ += batch * slice.rows * slice.dim;
        if (used_ / 4 > stored_)
            fail(ErrorCode::corrupt, "{}: expected documents to share little, found {} elements out of {} stored",
                 source_, used_, stored_);
        for (std::uint64_t b = 0; b < batch; ++b) {
            slices.push_back(slice);
            slice.offset += t.dimensions == 3 ? t.stride[0] : 0;
        }
    }

    const Pickle& p_;
    const std::string& source_;
    std::string stem_;
    std::uint64_t visits_ = 0;
    std::uint64_t used_ = 0, stored_ = 0;  // elements in documents and in storages
};

class TorchSource : public VectorSource {
public:
    TorchSource(std::unique_ptr<ZipArchive> archive, const std::string& stem,
                const std::vector<std::int64_t>& boundaries)
        : archive_(std::move(archive)) {
        const auto* entry = pickle_entry(*archive_);
        prefix_ = entry->name.substr(0, entry->name.size() - std::strlen("data.pkl"));
        check_byte_order();
        const auto bytes = archive_->read(*entry, max_pickle);
        const Pickle pickle = parse_pickle(bytes, archive_->name());
        find_storages(pickle);
        Collector collector(pickle, archive_->name(), stem, boundaries);
        collector.collect();
        if (collector.offsets != nullptr) collector.bounds = read_integers(*collector.offsets);
        if (!collector.bounds.empty()) collector.cut();
        slices_ = std::move(collector.slices);
        form_ = collector.form;
        name_documents(collector.ids);
    }

    bool next(SourceDocument& document) override {
        if (position_ == slices_.size()) return false;
        const TensorSlice& s = slices_[position_];
        const DType type = storages_[s.storage].type;
        check_document(s.rows, s.dim, type, archive_->name(), "document " + std::to_string(position_));
        document = {};
        document.id = s.id;
        document.vectors = s.rows == 0 ? VectorsView(nullptr, ScalarType::f32, 0, s.dim) : read(s, type);
        ++position_;
        return true;
    }
    std::size_t size() const override { return slices_.size(); }
    std::string form() const override { return form_; }

private:
    struct StorageEntry {
        DType type;
        std::uint64_t elements;
        const ZipArchive::Entry* entry;
    };

    void check_byte_order() const {
        const auto* order = archive_->find(prefix_ + "byteorder");
        if (order == nullptr) return;
        const auto bytes = archive_->read(*order, 64);
        if (bytes.size() != 6 || std::memcmp(bytes.data(), "little", 6) != 0)
            fail(ErrorCode::unsupported, "{}: byteorder: expected little, found another", archive_->name());
    }
    void find_storages(const Pickle& pickle) {
        std::unordered_map<std::string_view, const ZipArchive::Entry*> entries;
        for (const auto& e : archive_->entries()) entries.emplace(e.name, &e);
        for (const auto& storage : pickle.storages) {
            const std::string name = prefix_ + "data/" + storage.key;
            const auto found = entries.find(name);
            if (found == entries.end())
                fail(ErrorCode::corrupt, "{}: expected an entry '{}' with a tensor's data, found none",
                     archive_->name(), name);
            const std::uint64_t shape[] = {storage.elements};
            checked_bytes(storage.type, shape, found->second->size, archive_->name(), "entry '" + name + "'");
            storages_.push_back({storage.type, storage.elements, found->second});
        }
    }
    void name_documents(std::vector<std::string>& ids) {
        if (ids.empty()) return;
        if (ids.size() != slices_.size())
            fail(ErrorCode::corrupt, "{}: ids: expected {} of them, found {}", archive_->name(), slices_.size(),
                 ids.size());
        for (std::size_t i = 0; i < ids.size(); ++i) slices_[i].id = std::move(ids[i]);
    }
    std::span<const std::byte> bytes_of(std::uint32_t storage, std::uint64_t first, std::uint64_t count) {
        if (reader_ == nullptr || open_storage_ != storage) {
            reader_ = archive_->open(*storages_[storage].entry);
            open_storage_ = storage;
        }
        const std::size_t width = dtype_size(storages_[storage].type);
        reader_->seek(first * width);
        return reader_->take(count * width);
    }
    std::vector<std::int64_t> read_integers(const Pickle::Tensor& t) {
        const DType type = storages_[t.storage].type;
        if (t.dimensions != 1 || (t.shape[0] > 1 && t.stride[0] != 1))
            fail(ErrorCode::corrupt, "{}: offsets: expected 1 dimension, found {}", archive_->name(), t.dimensions);
        return to_integers(type, bytes_of(t.storage, t.offset, t.shape[0]), archive_->name(), "offsets");
    }
    VectorsView read(const TensorSlice& s, DType type) {
        const bool contiguous = (s.column_stride == 1 || s.dim == 1) && (s.row_stride == s.dim || s.rows == 1);
        if (contiguous) return buffer_.view(bytes_of(s.storage, s.offset, s.rows * s.dim), type, s.rows, s.dim);
        const std::uint64_t reach = (s.rows - 1) * s.row_stride + (s.dim - 1) * s.column_stride + 1;
        const std::size_t width = dtype_size(type);
        if (reach * width > max_document_bytes)
            fail(ErrorCode::unsupported,
                 "{}: document {}: expected a contiguous tensor, found strides {} and {}; save x.contiguous()",
                 archive_->name(), position_, s.row_stride, s.column_stride);
        const auto raw = bytes_of(s.storage, s.offset, reach);
        gathered_.resize(s.rows * s.dim * width);
        std::byte* out = gathered_.data();
        for (std::uint64_t r = 0; r < s.rows; ++r) {
            for (std::uint64_t c = 0; c < s.dim; ++c, out += width)
                std::memcpy(out, raw.data() + (r * s.row_stride + c * s.column_stride) * width, width);
        }
        return buffer_.view(gathered_, type, s.rows, s.dim);
    }

    std::unique_ptr<ZipArchive> archive_;
    std::string prefix_;
    std::string form_;
    std::vector<StorageEntry> storages_;
    std::vector<TensorSlice> slices_;
    std::size_t position_ = 0;
    std::unique_ptr<ZipEntryReader> reader_;
    std::uint32_t open_storage_ = 0;
    std::vector<std::byte> gathered_;
    RowBuffer buffer_;
};

}  // namespace

bool is_torch_archive(const ZipArchive& archive) { return pickle_entry(archive) != nullptr; }

std::unique_ptr<VectorSource> open_torch_source(std::unique_ptr<ZipArchive> archive, const std::string& stem,
                                                const std::vector<std::int64_t>& boundaries) {
    return std::make_unique<TorchSource>(std::move(archive), stem, boundaries);
}

}  // namespace marginmerge
