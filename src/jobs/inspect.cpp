#include "marginmerge/jobs/inspect.h"

#include <fmt/core.h>

#include "core/fail.h"
#include "index/manifest.h"
#include "index/segment.h"
#include "io/multi_vector_file.h"
#include "jobs/inspect_vectors.h"
#include "marginmerge/index/index.h"
#include "marginmerge/index/index_writer.h"
#include "marginmerge/jobs/model_file.h"

namespace marginmerge {

namespace {

constexpr std::uint64_t scan_completely = 2ULL << 30;  // bytes of vectors
constexpr std::size_t sample_documents = 4096;

CompressedReport describe_compressed(const MultiVectorSet& set) {
    CompressedReport c;
    std::vector<char> busy;
    for (std::size_t i = 0; i < set.size(); ++i) {
        const auto owner = set.owner(i);
        c.source_vectors += owner.size();
        busy.assign(set.vectors_of(i), 0);
        for (const auto o : owner) {
            if (o < 0) {
                ++c.unowned;
            } else {
                busy[static_cast<std::size_t>(o)] = 1;
            }
        }
        for (const char b : busy) c.idle += b == 0 ? 1 : 0;
    }
    const auto documents = static_cast<double>(std::max<std::size_t>(1, set.size()));
    const auto row = static_cast<double>(set.all_vectors().row_bytes());
    c.bytes_per_document = static_cast<double>(set.total_vectors()) * row / documents;
    c.source_bytes_per_document = static_cast<double>(c.source_vectors) * row / documents;
    c.kept =
        c.source_vectors > 0 ? static_cast<double>(set.total_vectors()) / static_cast<double>(c.source_vectors) : 0;
    return c;
}

void describe_set(const InspectOptions& options, const Progress& progress, InspectReport& report) {
    const MultiVectorSet set = read_multi_vectors(options.path);
    report.kind = set.has_owner() ? "compressed" : "multi-vector";
    const bool whole = options.verify || set.all_vectors().bytes() <= scan_completely;
    report.vectors = scan_vectors(set, options.path.string(), whole ? 0 : sample_documents, options.threads, progress,
                                  report.problems);
    const VectorsReport& v = *report.vectors;
    if (v.zero_vectors > 0)
        report.notes.push_back(fmt::format("{} vectors are zero: padding that import would drop", v.zero_vectors));
    if (v.empty_documents > 0) report.notes.push_back(fmt::format("{} documents have no vector", v.empty_documents));
    if (v.scanned < v.documents)
        report.notes.push_back(
            fmt::format("values of {} of {} documents were read; --verify reads all", v.scanned, v.documents));
    if (set.has_owner()) report.compressed = describe_compressed(set);
}

void describe_model(const InspectOptions& options, InspectReport& report) {
    const Model model = load_model(options.path);
    report.kind = "model";
    ModelReport m;
    m.prototypes = model.bank.size();
    m.probes = model.probes.tokens.rows();
    m.remembering = model.memory.pages.size();
    m.dim = m.prototypes > 0        ? model.bank.prototypes.cols()
            : !model.probes.empty() ? model.probes.tokens.cols()
                                    : model.alignment.change.cols();
    m.aligned = model.recipe.align;
    m.network = model.network.has_value();
    m.uses_grid = model.uses_grid;
    m.preset = model.recipe.preset;
    m.anchors = model.recipe.anchors;
    m.fill = model.recipe.fill;
    m.representative = model.recipe.representative;
    m.keep = model.recipe.budget.keep;
    m.settings = model.settings;
    m.provenance = model.provenance;
    report.model = m;
}

void describe_index(const InspectOptions& options, const Progress& progress, InspectReport& report) {
    report.kind = "index";
    const auto index = Index::open(options.path);
    const IndexStats s = index->stats();
    report.index = IndexReport{s.pages,          s.deleted,      s.segments, s.generation, s.vectors,
                               s.source_vectors, s.vector_bytes, s.bytes,    s.full_bytes, to_string(s.code)};
    report.bytes = s.bytes + s.full_bytes;
    report.problems = verify_index(options.path, progress).problems;
}

void describe_tensors(const SafetensorsFile& file, InspectReport& report) {
    report.bytes = file.source().bytes.size();
    report.metadata = file.metadata();
    for (const TensorInfo& t : file.tensors()) report.tensors.push_back({t.name, dtype_name(t.type), t.shape});
}

}  // namespace

InspectReport inspect(const InspectOptions& options, const Progress& progress) {
    InspectReport report;
    if (std::filesystem::is_directory(options.path)) {
        describe_index(options, progress, report);
        return report;
    }
    const SafetensorsFile file(options.path);
    describe_tensors(file, report);
    const auto found = file.metadata().find("schema");
    const std::string schema = found == file.metadata().end() ? "" : found->second;
    const bool vectors = file.find("vectors") != nullptr && file.find("offsets") != nullptr;
    const bool model =
        file.find("prototypes") != nullptr || file.find("probes") != nullptr || file.find("w1") != nullptr;
    if (schema == multi_vector_schema || (schema.empty() && vectors)) {
        describe_set(options, progress, report);
    } else if (schema == model_schema || (schema.empty() && model)) {
        describe_model(options, report);
    } else if (schema == coded_schema) {
        describe_index(options, progress, report);
        report.kind = "coded";
        report.bytes = file.source().bytes.size();
    } else {
        fail(ErrorCode::unsupported,
             "{}: expected a file of marginmerge, found {}; 'marginmerge import' reads other files",
             options.path.string(), schema.empty() ? "safetensors without our tensors" : "schema '" + schema + "'");
    }
    return report;
}

}  // namespace marginmerge
