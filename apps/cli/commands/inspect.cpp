#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
#include "core/fail.h"
#include "marginmerge/jobs/inspect.h"

namespace marginmerge::cli {

namespace {

using Json = nlohmann::ordered_json;

// JSON inside metadata shows as JSON, anything else as text.
Json embedded(const std::string& text) {
    Json parsed = Json::parse(text, nullptr, false);
    return parsed.is_discarded() ? Json(text) : parsed;
}

Json to_json(const std::string& path, const InspectReport& r) {
    Json out;
    out["path"] = path;
    out["kind"] = r.kind;
    out["sound"] = r.sound();
    out["bytes"] = r.bytes;
    if (r.vectors) {
        const VectorsReport& v = *r.vectors;
        out["documents"] = v.documents;
        out["vectors"] = v.vectors;
        out["dimensions"] = v.dim;
        out["dtype"] = v.type;
        out["vectors_per_document"] = {{"least", v.fewest}, {"most", v.most}};
        out["empty_documents"] = v.empty_documents;
        out["with_grid"] = v.with_grid;
        out["boxes"] = v.has_boxes;
        out["scanned_documents"] = v.scanned;
        out["zero_vectors"] = v.zero_vectors;
        out["norm"] = {{"least", v.norm_least}, {"mean", v.norm_mean}, {"most", v.norm_most}};
        out["redundancy"] = v.redundancy;
        out["redundancy_documents"] = v.redundancy_documents;
    }
    if (r.compressed) {
        const CompressedReport& c = *r.compressed;
        out["source_vectors"] = c.source_vectors;
        out["kept"] = c.kept;
        out["bytes_per_document"] = c.bytes_per_document;
        out["source_bytes_per_document"] = c.source_bytes_per_document;
        out["unowned"] = c.unowned;
        out["idle"] = c.idle;
    }
    if (r.model) {
        const ModelReport& m = *r.model;
        out["dimensions"] = m.dim;
        out["prototypes"] = m.prototypes;
        out["probes"] = m.probes;
        out["remembering"] = m.remembering;
        out["network"] = m.network;
        out["uses_grid"] = m.uses_grid;
        out["recipe"] = {{"preset", m.preset}, {"anchors", m.anchors},
                         {"fill", m.fill},     {"representative", m.representative},
                         {"keep", m.keep},     {"align", m.aligned}};
        if (!m.settings.empty()) out["settings"] = embedded(m.settings);
        if (!m.provenance.empty()) out["provenance"] = embedded(m.provenance);
    }
    if (r.index) {
        const IndexReport& i = *r.index;
        out["index"] = {{"pages", i.pages},
                        {"deleted", i.deleted},
                        {"segments", i.segments},
                        {"generation", i.generation},
                        {"vectors", i.vectors},
                        {"source_vectors", i.source_vectors},
                        {"vector_bytes", i.vector_bytes},
                        {"bytes", i.bytes},
                        {"full_bytes", i.full_bytes},
                        {"code", i.code}};
    }
    for (const auto& t : r.tensors) out["tensors"].push_back({{"name", t.name}, {"dtype", t.type}, {"shape", t.shape}});
    for (const auto& [key, value] : r.metadata) out["metadata"][key] = embedded(value);
    out["notes"] = r.notes;
    out["problems"] = r.problems;
    return out;
}

void print_vectors(const VectorsReport& v) {
    fmt::print("  {} documents, {} vectors, {} dimensions, {}\n", v.documents, v.vectors, v.dim, v.type);
    if (v.documents > 0)
        fmt::print("  vectors a document: {} to {}, mean {:.1f}\n", v.fewest, v.most,
                   static_cast<double>(v.vectors) / static_cast<double>(v.documents));
    fmt::print("  norms: {:.4f} to {:.4f}, mean {:.4f}\n", v.norm_least, v.norm_most, v.norm_mean);
    if (v.redundancy_documents > 0)
        fmt::print("  redundancy n/effrank: {:.1f} (mean of {} documents)\n", v.redundancy, v.redundancy_documents);
    if (v.with_grid > 0) fmt::print("  patch grid known for {} documents\n", v.with_grid);
    if (v.has_boxes) fmt::print("  a region on the page for every vector\n");
}

void print_compressed(const CompressedReport& c) {
    fmt::print("  compressed from {} vectors: {:.2f}% kept, {:.1f} KB a document instead of {:.1f} KB\n",
               c.source_vectors, 100 * c.kept, c.bytes_per_document / 1e3, c.source_bytes_per_document / 1e3);
    if (c.unowned > 0) fmt::print("  {} source vectors have no representative\n", c.unowned);
    if (c.idle > 0) fmt::print("  {} representatives stand for no source vector\n", c.idle);
}

void print_model(const ModelReport& m) {
    if (m.prototypes > 0) fmt::print("  {} prototypes, {} dimensions\n", m.prototypes, m.dim);
    if (m.probes > 0) fmt::print("  {} probes\n", m.probes);
    if (m.remembering > 0) fmt::print("  remembers what judged queries asked of {} pages\n", m.remembering);
    fmt::print("  {}, coordinates {}\n", m.network ? "weighting network 15-32-16-1" : "no network",
               m.uses_grid ? "used" : "not used");
    fmt::print("  recipe: {}anchors {}, fill {}, representative {}, keep {}{}\n",
               m.preset.empty() ? "" : m.preset + ": ", m.anchors, m.fill, m.representative, m.keep,
               m.aligned ? ", aligned with judgements" : "");
    if (!m.settings.empty()) fmt::print("  settings: {}\n", m.settings);
    if (!m.provenance.empty()) fmt::print("  provenance: {}\n", m.provenance.substr(0, 400));
}

void print_index(const IndexReport& i) {
    fmt::print("  {} pages in {} segments, {} deleted, generation {}\n", i.pages, i.segments, i.deleted, i.generation);
    fmt::print("  {} vectors as {} out of {}, {:.1f} KB a page\n", i.vectors, i.code, i.source_vectors,
               i.pages > 0 ? static_cast<double>(i.vector_bytes) / 1e3 / static_cast<double>(i.pages) : 0.0);
}

void print_text(const std::string& path, const InspectReport& r) {
    fmt::print("{}: {} file, {} bytes, {}\n", path, r.kind, r.bytes, r.sound() ? "sound" : "UNSOUND");
    if (r.vectors) print_vectors(*r.vectors);
    if (r.compressed) print_compressed(*r.compressed);
    if (r.model) print_model(*r.model);
    if (r.index) print_index(*r.index);
    for (const auto& t : r.tensors)
        fmt::print("  tensor {:<16} {:<4} [{}]\n", t.name, t.type, fmt::join(t.shape, ", "));
    for (const auto& [key, value] : r.metadata)
        if (value.size() <= 200) fmt::print("  {}: {}\n", key, one_line(value));
    for (const auto& note : r.notes) fmt::print("  note: {}\n", note);
}

}  // namespace

void register_inspect(CLI::App& app) {
    struct Options {
        Common common;
        InspectOptions job;
        std::string path;
    };
    auto o = std::make_shared<Options>();
    CLI::App* command = app.add_subcommand("inspect", "What is in any of our files, and whether it is sound");
    command->add_option("FILE", o->path, "A multi-vector, compressed or model file, or an index folder")->required();
    command->add_flag("--verify", o->job.verify, "Read every value, however large the file is");
    command->footer(
        "Exit status 1 when the file is unsound.\n"
        "Examples:\n  marginmerge inspect docs.safetensors\n  marginmerge inspect index.safetensors --verify --json");
    add_common(*command, o->common);
    command->callback([o] {
        o->job.path = o->path;
        o->job.threads = o->common.threads;
        const InspectReport report = inspect(o->job, progress_bar(o->common));
        if (o->common.json) {
            fmt::print("{}\n", to_json(o->path, report).dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
        } else {
            print_text(o->path, report);
        }
        if (!report.sound()) throw Error(ErrorCode::corrupt, report.problems.front());
    });
}

}  // namespace marginmerge::cli
