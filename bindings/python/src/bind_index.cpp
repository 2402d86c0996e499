#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include "bind.h"
#include "core/fail.h"
#include "marginmerge/index/index.h"
#include "marginmerge/index/index_writer.h"

namespace marginmerge::python {

namespace {

// What Python says about a search.
struct SearchArguments {
    std::size_t k, threads;
    std::string filter, filter_json, first_pass;
    std::size_t candidates, prefix, rerank;
    bool full;
};

SearchOptions to_options(const SearchArguments& a) {
    SearchOptions o;
    o.k = a.k;
    o.threads = a.threads;
    if (!a.filter.empty()) o.filter = Filter::parse(a.filter);
    if (!a.filter_json.empty()) o.filter = Filter::parse_json(a.filter_json);
    o.first_pass = parse_first_pass(a.first_pass);
    o.candidates = a.candidates;
    o.prefix = a.prefix;
    o.rerank = a.rerank;
    o.full = a.full;
    return o;
}

py::list to_hits(const std::vector<Hit>& hits) {
    py::list out;
    for (const Hit& h : hits) out.append(py::make_tuple(h.id, h.score, h.position));
    return out;
}

template <class T>
py::array_t<T> to_array(const std::vector<T>& values) {
    return py::array_t<T>(static_cast<py::ssize_t>(values.size()), values.data());
}

py::dict to_dict(const IndexStats& s) {
    py::dict d;
    d["pages"] = s.pages;
    d["deleted"] = s.deleted;
    d["dim"] = s.dim;
    d["vectors"] = s.vectors;
    d["source_vectors"] = s.source_vectors;
    d["vector_bytes"] = s.vector_bytes;
    d["bytes"] = s.bytes;
    d["full_bytes"] = s.full_bytes;
    d["segments"] = s.segments;
    d["generation"] = s.generation;
    d["code"] = to_string(s.code);
    return d;
}

std::optional<VectorCode> to_code(const std::string& name) {
    if (name.empty()) return std::nullopt;
    return parse_vector_code(name);
}

std::size_t position_of(const Index& index, const std::string& id) {
    const auto found = index.find(id);
    if (!found) throw py::key_error(id);
    return *found;
}

py::dict explain(const Index& index, py::object query, const std::string& id) {
    const Tensor q = borrow(query, "query", 2);
    const Explanation e = index.explain(q.view(), position_of(index, id));
    py::list tokens;
    for (const TokenMatch& t : e.tokens) {
        py::dict token;
        token["representative"] = t.representative;
        token["score"] = t.score;
        token["patches"] = t.patches;
        tokens.append(token);
    }
    py::dict out;
    out["id"] = e.id;
    out["score"] = e.score;
    out["tokens"] = tokens;
    return out;
}

py::dict add_pages(const std::filesystem::path& folder, const MultiVectorSet& pages,
                   const std::vector<std::string>& metadata, const std::string& code, bool replace,
                   const MultiVectorSet* full, double lock_timeout, std::size_t threads, py::object progress) {
    AddOptions o;
    o.code = to_code(code);
    o.replace = replace;
    o.full = full;
    o.threads = threads;
    o.progress = to_progress(std::move(progress));
    AddReport r;
    {
        const py::gil_scoped_release release;
        IndexWriter writer(folder, {.create = true, .lock_timeout = lock_timeout});
        r = writer.add(pages, metadata, o);
    }
    py::dict d;
    d["added"] = r.added;
    d["replaced"] = r.replaced;
    d["generation"] = r.generation;
    return d;
}

py::dict delete_pages(const std::filesystem::path& folder, const std::vector<std::string>& ids, bool ignore_missing,
                      double lock_timeout) {
    DeleteReport r;
    {
        const py::gil_scoped_release release;
        IndexWriter writer(folder, {.create = false, .lock_timeout = lock_timeout});
        r = writer.remove(ids, {.ignore_missing = ignore_missing});
    }
    py::dict d;
    d["deleted"] = r.deleted;
    d["missing"] = r.missing;
    d["generation"] = r.generation;
    return d;
}

py::dict compact_index(const std::filesystem::path& folder, const std::string& code, double lock_timeout,
                       py::object progress) {
    CompactOptions o;
    o.code = to_code(code);
    o.progress = to_progress(std::move(progress));
    CompactReport r;
    {
        const py::gil_scoped_release release;
        IndexWriter writer(folder, {.create = false, .lock_timeout = lock_timeout});
        r = writer.compact(o);
    }
    py::dict d;
    d["pages"] = r.pages;
    d["segments_before"] = r.segments_before;
    d["bytes_before"] = r.bytes_before;
    d["bytes_after"] = r.bytes_after;
    d["generation"] = r.generation;
    return d;
}

py::dict verify(const std::filesystem::path& path, py::object progress) {
    VerifyReport r;
    const Progress p = to_progress(std::move(progress));
    {
        const py::gil_scoped_release release;
        r = verify_index(path, p);
    }
    py::dict d;
    d["files"] = r.files;
    d["bytes"] = r.bytes;
    d["pages"] = r.pages;
    d["problems"] = r.problems;
    d["leftovers"] = r.leftovers;
    return d;
}

}  // namespace

void bind_index(py::module_& m) {
    py::class_<SearchArguments>(m, "SearchArguments")
        .def(py::init([](std::size_t k, std::size_t threads, const std::string& filter, const std::string& filter_json,
                         const std::string& first_pass, std::size_t candidates, std::size_t prefix, std::size_t rerank,
                         bool full) {
            return SearchArguments{k, threads, filter, filter_json, first_pass, candidates, prefix, rerank, full};
        }));
    py::class_<Index, std::shared_ptr<Index>>(m, "Snapshot")
        .def_static("open",
                    [](const std::filesystem::path& path) {
                        const py::gil_scoped_release release;
                        return std::const_pointer_cast<Index>(Index::open(path));
                    })
        .def_static("wrap",
                    [](const MultiVectorSet& set) {
                        const py::gil_scoped_release release;
                        return std::const_pointer_cast<Index>(Index::wrap(set));
                    })
        .def("reopen",
             [](const std::shared_ptr<Index>& index) {
                 const py::gil_scoped_release release;
                 return std::const_pointer_cast<Index>(Index::reopen(index));
             })
        .def("__len__", &Index::size)
        .def_property_readonly("dim", &Index::dim)
        .def("stats", [](const Index& index) { return to_dict(index.stats()); })
        .def("has_full", &Index::has_full)
        .def("id", &Index::id)
        .def("find", [](const Index& index, const std::string& id) { return index.find(id); })
        .def("vectors",
             [](const Index& index, const std::string& id) {
                 auto held = std::make_unique<Matrix>(index.vectors(position_of(index, id)));
                 const VectorsView view(held->view());
                 const py::capsule owner(held.release(), [](void* p) { delete static_cast<Matrix*>(p); });
                 return to_numpy(view, owner, true);
             })
        .def("owner",
             [](const Index& index, const std::string& id) {
                 const auto owner = index.owner(position_of(index, id));
                 return to_array(std::vector<std::int32_t>(owner.begin(), owner.end()));
             })
        .def("metadata",
             [](const Index& index, const std::string& id) {
                 return from_json(std::string(index.metadata(position_of(index, id))));
             })
        .def("search",
             [](const Index& index, py::object query, const SearchArguments& arguments) {
                 const Tensor q = borrow(query, "query", 2);
                 const SearchOptions o = to_options(arguments);
                 std::vector<Hit> hits;
                 {
                     const py::gil_scoped_release release;
                     hits = index.search(q.view(), o);
                 }
                 return to_hits(hits);
             })
        .def("search_batch",
             [](const Index& index, const MultiVectorSet& queries, const SearchArguments& arguments) {
                 const SearchOptions o = to_options(arguments);
                 std::vector<std::vector<Hit>> hits;
                 {
                     const py::gil_scoped_release release;
                     hits = index.search_batch(queries, o);
                 }
                 py::list out;
                 for (const auto& h : hits) out.append(to_hits(h));
                 return out;
             })
        .def("score_all",
             [](const Index& index, py::object query, std::size_t threads) {
                 const Tensor q = borrow(query, "query", 2);
                 std::vector<float> scores;
                 {
                     const py::gil_scoped_release release;
                     scores = index.score_all(q.view(), threads);
                 }
                 return to_array(scores);
             })
        .def("explain", &explain);
    m.def("add_pages", &add_pages);
    m.def("delete_pages", &delete_pages);
    m.def("compact_index", &compact_index);
    m.def("verify_index", &verify);
}

}  // namespace marginmerge::python
