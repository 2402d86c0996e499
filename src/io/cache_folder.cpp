#include "io/cache_folder.h"

#include <nlohmann/json.hpp>
#include <set>

#include "core/fail.h"

namespace marginmerge {

namespace {

using nlohmann::json;

constexpr const char* document_keys[] = {"doc_ids", "docids", "document_ids", "corpus_ids", "page_ids", "passage_ids",
                                         "pids",    "p_ids",  "ps_ids",       "docs",       "documents"};
constexpr const char* query_keys[] = {"query_ids", "queryids", "qids", "q_ids", "qs_ids", "queries"};
constexpr const char* gold_keys[] = {"gold",      "golds",     "gold_idx", "gold_indices", "gold_ids", "gold_docs",
                                     "gold_pids", "positives", "relevant", "labels",       "qrels"};

template <std::size_t N>
const json* first_of(const json& object, const char* const (&keys)[N]) {
    for (const char* key : keys)
        if (const auto found = object.find(key); found != object.end()) return &*found;
    return nullptr;
}

class MetaReader {
public:
    MetaReader(std::size_t documents, std::size_t queries, const std::string& source)
        : documents_(documents), queries_(queries), source_(source) {}

    CacheMeta read(const json& root) {
        if (root.is_array()) return read_records(root);
        if (!root.is_object()) fail(ErrorCode::corrupt, "{}: expected an object or a list of objects", source_);
        if (const json* ids = first_of(root, document_keys))
            meta_.document_ids = read_ids(*ids, documents_, "document ids");
        if (const json* ids = first_of(root, query_keys)) meta_.query_ids = read_ids(*ids, queries_, "query ids");
        if (const json* gold = first_of(root, gold_keys)) read_gold(*gold);
        return std::move(meta_);
    }

private:
    // One object a query: {"query_id": ..., "gold": ...}.
    CacheMeta read_records(const json& list) {
        if (queries_ != 0 && list.size() != queries_)
            fail(ErrorCode::corrupt, "{}: expected {} entries, one a query, found {}", source_, queries_, list.size());
        for (const json& record : list) {
            if (!record.is_object()) fail(ErrorCode::corrupt, "{}: expected a list of objects, one a query", source_);
            for (const char* key : {"query_id", "qid", "id", "_id"}) {
                if (const auto id = record.find(key); id != record.end()) {
                    meta_.query_ids.push_back(text(*id, "query id"));
                    break;
                }
            }
        }
        if (!meta_.query_ids.empty() && meta_.query_ids.size() != list.size())
            fail(ErrorCode::corrupt, "{}: query ids: expected {} of them, found {}", source_, list.size(),
                 meta_.query_ids.size());
        for (std::size_t q = 0; q < list.size(); ++q)
            if (const json* gold = first_of(list[q], gold_keys)) add(query_id(q), *gold);
        return std::move(meta_);
    }

    std::string text(const json& value, const char* what) const {
        if (value.is_string()) return value.get<std::string>();
        if (value.is_number_integer()) return value.dump();
        fail(ErrorCode::corrupt, "{}: {}: expected text or a whole number", source_, what);
    }
    // A list of another length names something else (query texts of all splits, say): not ours.
    std::vector<std::string> read_ids(const json& list, std::size_t count, const char* what) const {
        if (!list.is_array() || (count != 0 && list.size() != count)) return {};
        std::vector<std::string> ids;
        std::set<std::string> unique;
        for (const json& value : list) {
            if (value.is_object()) {
                const json* id = nullptr;
                for (const char* key : {"id", "_id", "doc_id", "query_id"})
                    if (const auto found = value.find(key); found != value.end()) id = &*found;
                if (id == nullptr) return {};
                ids.push_back(text(*id, what));
            } else {
                ids.push_back(text(value, what));
            }
            // Texts instead of ids repeat or break lines; the index serves better then.
            if (ids.back().empty() || ids.back().find('\n') != std::string::npos || !unique.insert(ids.back()).second)
                return {};
        }
        return ids;
    }
    std::string query_id(std::size_t q) const {
        return meta_.query_ids.empty() ? std::to_string(q) : meta_.query_ids[q];
    }
    std::string document_id(std::int64_t index) const {
        const std::size_t count = documents_ != 0 ? documents_ : meta_.document_ids.size();
        if (index < 0 || (count != 0 && static_cast<std::size_t>(index) >= count))
            fail(ErrorCode::corrupt, "{}: gold: expected a document index below {}, found {}", source_, count, index);
        return meta_.document_ids.empty() ? std::to_string(index) : meta_.document_ids[static_cast<std::size_t>(index)];
    }
    // An index, an id, or a list or {document: grade} of them; -1 and null mean none.
    void add(const std::string& query, const json& gold, int grade = 1) {
        if (gold.is_null()) return;
        if (gold.is_number_integer()) {
            if (gold.get<std::int64_t>() == -1) return;
            meta_.judgements[query][document_id(gold.get<std::int64_t>())] = grade;
        } else if (gold.is_string()) {
            meta_.judgements[query][gold.get<std::string>()] = grade;
        } else if (gold.is_array()) {
            for (const json& item : gold) {
                if (item.is_array()) fail(ErrorCode::corrupt, "{}: gold: expected at most one list a query", source_);
                add(query, item, grade);
            }
        } else if (gold.is_object()) {
            for (const auto& [document, value] : gold.items()) {
                if (!value.is_number_integer() || value.get<std::int64_t>() < -1000 || value.get<std::int64_t>() > 1000)
                    fail(ErrorCode::corrupt, "{}: gold: expected whole grades from -1000 to 1000", source_);
                meta_.judgements[query][document] = value.get<int>();
            }
        } else {
            fail(ErrorCode::corrupt, "{}: gold: expected indices or ids", source_);
        }
    }
    void read_gold(const json& gold) {
        if (gold.is_object()) {
            for (const auto& [query, value] : gold.items()) add(query, value);
            return;
        }
        if (!gold.is_array()) fail(ErrorCode::corrupt, "{}: gold: expected a list, one entry a query", source_);
        if (queries_ != 0 && gold.size() != queries_)
            fail(ErrorCode::corrupt, "{}: gold: expected {} entries, one a query, found {}", source_, queries_,
                 gold.size());
        if (!meta_.query_ids.empty() && gold.size() != meta_.query_ids.size())
            fail(ErrorCode::corrupt, "{}: gold: expected {} entries like the query ids, found {}", source_,
                 meta_.query_ids.size(), gold.size());
        for (std::size_t q = 0; q < gold.size(); ++q) add(query_id(q), gold[q]);
    }

    std::size_t documents_;
    std::size_t queries_;
    const std::string& source_;
    CacheMeta meta_;
};

// Gives the documents of another source their names.
class Named : public VectorSource {
public:
    Named(std::unique_ptr<VectorSource> source, std::vector<std::string> ids, std::string form)
        : source_(std::move(source)), ids_(std::move(ids)), form_(std::move(form)) {}
    bool next(SourceDocument& document) override {
        if (!source_->next(document)) return false;
        if (position_ < ids_.size()) document.id = ids_[position_];
        ++position_;
        return true;
    }
    std::size_t size() const override { return source_->size(); }
    std::string form() const override { return form_; }

private:
    std::unique_ptr<VectorSource> source_;
    std::vector<std::string> ids_;
    std::string form_;
    std::size_t position_ = 0;
};

CacheMeta read_meta(const std::filesystem::path& folder, std::size_t documents, std::size_t queries) {
    const auto path = folder / "meta.json";
    if (!std::filesystem::exists(path)) return {};
    const ByteSource bytes = map_bytes(path);
    return parse_cache_meta(bytes.text(), documents, queries, bytes.name);
}

std::size_t count_in(const std::filesystem::path& file) {
    return std::filesystem::exists(file) ? open_source(map_bytes(file), "0")->size() : 0;
}

}  // namespace

bool is_cache_folder(const std::filesystem::path& path) {
    return std::filesystem::is_directory(path) &&
           (std::filesystem::exists(path / "ps.pt") || std::filesystem::exists(path / "qs.pt"));
}

CacheMeta parse_cache_meta(std::string_view text, std::size_t documents, std::size_t queries,
                           const std::string& source) {
    const json root = json::parse(text, nullptr, false);
    if (root.is_discarded()) fail(ErrorCode::corrupt, "{}: expected JSON", source);
    return MetaReader(documents, queries, source).read(root);
}

std::unique_ptr<VectorSource> open_cache_folder(const std::filesystem::path& folder, const SourceOptions& options) {
    const auto file = folder / (options.queries ? "qs.pt" : "ps.pt");
    if (!std::filesystem::exists(file))
        fail(ErrorCode::not_found, "{}: expected this file in a cache folder", file.string());
    auto source = open_source(map_bytes(file), "0");
    const std::size_t count = source->size();
    CacheMeta meta = options.queries ? read_meta(folder, count_in(folder / "ps.pt"), count)
                                     : read_meta(folder, count, count_in(folder / "qs.pt"));
    auto& ids = options.queries ? meta.query_ids : meta.document_ids;
    const std::string form = std::string("cache folder, ") + (options.queries ? "qs.pt: " : "ps.pt: ") + source->form();
    return std::make_unique<Named>(std::move(source), std::move(ids), form);
}

Judgements read_cache_judgements(const std::filesystem::path& folder) {
    CacheMeta meta = read_meta(folder, count_in(folder / "ps.pt"), count_in(folder / "qs.pt"));
    if (meta.judgements.empty())
        fail(ErrorCode::not_found, "{}: expected gold documents in meta.json, found none", folder.string());
    return std::move(meta.judgements);
}

}  // namespace marginmerge
