#include "marginmerge/jobs/index_jobs.h"

#include "core/fail.h"
#include "io/finite_vectors.h"
#include "io/mapped_file.h"
#include "io/multi_vector_file.h"

namespace marginmerge {

namespace {

std::optional<VectorCode> wanted_code(const std::string& name) {
    if (name.empty()) return std::nullopt;
    return parse_vector_code(name);
}

std::string_view text_of(const MappedFile& file) {
    return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

}  // namespace

AddReport index_add_job(const IndexAddJobOptions& o) {
    // Everything that can be wrong with the input is found before the lock is taken.
    AddOptions add;
    add.code = wanted_code(o.code);
    const MultiVectorSet pages = read_multi_vectors(o.pages);
    std::vector<std::string> metadata;
    if (!o.metadata.empty()) {
        const MappedFile file(o.metadata);
        metadata = parse_metadata_lines(text_of(file), pages, o.metadata.string());
    }
    MultiVectorSet full, queries;
    if (!o.full.empty()) {
        full = read_multi_vectors(o.full);
        add.full = &full;
    }
    if (!o.example_queries.empty()) {
        queries = read_finite_vectors(o.example_queries, o.threads);
        if (queries.size() > 0 && queries.dim() != pages.dim())
            fail(ErrorCode::invalid_argument, "{}: dimension: expected {} as in {}, found {}",
                 o.example_queries.string(), pages.dim(), o.pages.string(), queries.dim());
        add.example_queries = &queries;
    }
    add.replace = o.replace;
    add.threads = o.threads;
    add.progress = o.progress;
    IndexWriter writer(o.index, {.create = true, .lock_timeout = o.lock_timeout});
    return writer.add(pages, metadata, add);
}

DeleteReport index_delete_job(const IndexDeleteJobOptions& o) {
    std::vector<std::string> ids = o.ids;
    if (!o.ids_file.empty()) {
        const MappedFile file(o.ids_file);
        std::string_view text = text_of(file);
        while (!text.empty()) {
            const std::size_t end = std::min(text.find('\n'), text.size());
            std::string_view line = text.substr(0, end);
            text.remove_prefix(std::min(end + 1, text.size()));
            if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
            if (!line.empty()) ids.emplace_back(line);
        }
    }
    if (ids.empty()) fail(ErrorCode::invalid_argument, "delete: expected at least one page id");
    IndexWriter writer(o.index, {.create = false, .lock_timeout = o.lock_timeout});
    return writer.remove(ids, {.ignore_missing = o.ignore_missing});
}

CompactReport index_compact_job(const IndexCompactJobOptions& o) {
    CompactOptions compact;
    compact.code = wanted_code(o.code);
    compact.progress = o.progress;
    IndexWriter writer(o.index, {.create = false, .lock_timeout = o.lock_timeout});
    return writer.compact(compact);
}

}  // namespace marginmerge
