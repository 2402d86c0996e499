#include "marginmerge/jobs/export.h"

#include <nlohmann/json.hpp>

#include "core/clock.h"
#include "core/fail.h"
#include "export/folder.h"
#include "export/http_client.h"
#include "export/survey.h"
#include "export/target.h"
#include "export/upload.h"
#include "io/multi_vector_file.h"
#include "jobs/fingerprint.h"
#include "kernels/convert.h"
#include "marginmerge/core/version.h"

namespace marginmerge {

namespace {

// Queries that judge unit norms; more would not change the picture.
constexpr std::size_t most_judging_queries = 500;
// Vectors of a page that stands in for a query.
constexpr std::size_t stand_in_vectors = 8;

void check_name(const std::string& name) {
    const auto ok = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
    if (name.empty() || name.size() > 48 || name[0] < 'a' || name[0] > 'z' ||
        !std::all_of(name.begin(), name.end(), ok))
        fail(ErrorCode::invalid_argument,
             "--name: expected a lower-case letter and then letters, digits or _, at most 48, found '{}'", name);
}

// The queries of the example: given ones, else those stored with the index, else a page that stands in.
struct Example {
    MultiVectorSet queries;
    std::size_t chosen = 0;
    std::string from;
    bool real = true;
};

Example choose_example(const ExportOptions& o, const Index& index) {
    Example example;
    if (!o.queries.empty()) {
        example.queries = read_multi_vectors(o.queries);
        example.from = "the first of " + o.queries.filename().string();
        if (example.queries.size() == 0)
            fail(ErrorCode::corrupt, "{}: expected at least one query, found none", o.queries.string());
    } else if (index.example_queries().size() > 0) {
        example.queries = index.example_queries();
        example.from = "the first of the queries stored with the index";
    } else {
        if (!o.query.empty())
            fail(ErrorCode::invalid_argument, "--query: expected --queries with it, or queries stored with the index");
        std::size_t p = 0;
        while (p + 1 < index.size() && index.vectors_of(p) == 0) ++p;
        const Matrix rows = index.vectors(p);
        MultiVectorBuilder builder(index.dim());
        builder.add(index.id(p), rows.view().middle_rows(0, std::min(rows.rows(), stand_in_vectors)));
        example.queries = builder.finish();
        example.from = "with the first vectors of a page, since no queries were given (`--queries`)";
        example.real = false;
        return example;
    }
    if (example.queries.dim() != index.dim())
        fail(ErrorCode::invalid_argument, "{}: expected queries of {} dimensions like the index, found {}",
             o.queries.empty() ? index.path().string() : o.queries.string(), index.dim(), example.queries.dim());
    if (!o.query.empty()) {
        const auto found = example.queries.find(o.query);
        if (!found)
            fail(ErrorCode::not_found, "{}: expected a query '{}', found none",
                 o.queries.empty() ? index.path().string() : o.queries.string(), o.query);
        example.chosen = *found;
        example.from =
            o.queries.empty() ? "a query stored with the index" : "a query of " + o.queries.filename().string();
    }
    return example;
}

void judge_unit_norms(const ExportOptions& o, const Index& index, const IndexSurvey& survey, const Example& example,
                      ExportPlan& plan, ExportReport& report) {
    ExportReport::UnitNorm unit;
    unit.scaled = survey.not_unit;
    std::vector<std::size_t> positions;
    for (std::size_t q = 0; q < std::min(example.queries.size(), most_judging_queries); ++q) positions.push_back(q);
    if (example.chosen >= positions.size()) positions.push_back(example.chosen);
    const MultiVectorSet judging = example.queries.subset(positions);
    const auto after = exact_search(index, judging, true, o.threads);
    plan.expected = after[std::min(example.chosen, positions.size() - 1)];
    if (example.real) {
        SearchOptions search;
        search.threads = o.threads;
        const NormCost cost = compare_rankings(index.search_batch(judging, search), after);
        unit.queries = cost.queries;
        unit.first_changed = cost.first_changed;
        unit.list_changed = cost.list_changed;
        unit.overlap = cost.overlap;
    }
    plan.unit_norm = true;
    plan.shortest = plan.longest = 1;
    report.unit_norm = unit;
}

std::string marker_text(const ExportPlan& plan, const ExportTarget& target) {
    const nlohmann::ordered_json marker = {
        {"schema", "marginmerge.export"}, {"version", "1"},         {"writer", version()},
        {"target", target.name()},        {"name", plan.name},      {"pages", plan.pages},
        {"vectors", plan.vectors},        {"dimensions", plan.dim}, {"unit_norm", plan.unit_norm},
        {"query", plan.query_id}};
    return marker.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

void write_files(const ExportOptions& o, const Index& index, const ExportTarget& target, const ExportPlan& plan,
                 const TextFiles& texts, ExportReport& report, const Progress& progress) {
    OutputFolder folder(o.output);
    folder.write(texts);
    const auto writer = target.open(plan, folder.path());
    stream_pages(
        index, 0, plan.unit_norm, o.threads, [&](const ExportPage& page) { return writer->encode(page); },
        [&](const ExportPage& page, std::string encoded) {
            writer->add(page, std::move(encoded));
            if (progress) progress({"export", "pages", page.position + 1, plan.pages, {}});
            return true;
        });
    report.bytes = writer->finish();
    folder.commit();
}

// What the server was sent depends on all of these; a journal of anything else is worth nothing.
std::string upload_fingerprint(const ExportOptions& o, const Index& index, const ExportPlan& plan) {
    const std::string contents =
        std::filesystem::is_directory(o.index) ? std::to_string(index.stats().generation) : file_fingerprint(o.index);
    return hash_hex(fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}", version(),
                                std::filesystem::absolute(o.index).string(), contents, o.target, o.url, plan.name,
                                plan.pages, plan.vectors, plan.dim, plan.unit_norm, plan.batch_bytes));
}

void upload(const ExportOptions& o, const Index& index, const ExportTarget& target, const ExportPlan& plan,
            const TextFiles& texts, ExportReport& report, const Progress& progress) {
    constexpr const char* journal_name = "upload.json";
    HttpOptions http;
    http.url = o.url;
    http.headers = o.headers;
    http.timeout = o.timeout;
    UploadOptions options;
    options.connect = [&] { return connect_http(http); };
    options.where = o.target + " " + printable_url(o.url);
    options.journal = o.output / journal_name;
    options.fingerprint = upload_fingerprint(o, index, plan);
    options.append = o.append;
    options.connections = o.connections;
    options.retries = o.retries;
    options.threads = o.threads;
    {
        // The texts may be replaced; how far an earlier upload got must not be lost with them.
        OutputFolder folder(o.output);
        folder.write(texts);
        std::error_code ignored;
        std::filesystem::copy_file(options.journal, folder.path() / journal_name, ignored);
        folder.commit();
    }
    const UploadReport sent = upload_index(index, plan, *target.rest(), options, progress);
    report.uploaded = true;
    report.bytes = sent.bytes;
    report.resumed_pages = sent.resumed_pages;
    report.requests = sent.requests;
    report.retried = sent.retried;
    report.notes.insert(report.notes.end(), sent.notes.begin(), sent.notes.end());
}

}  // namespace

std::vector<ExportTargetInfo> export_target_list() {
    std::vector<ExportTargetInfo> list;
    for (const ExportTarget* t : export_targets())
        list.push_back({std::string(t->name()), std::string(t->summary()), t->rest() != nullptr});
    return list;
}

ExportReport export_index(const ExportOptions& o, const Progress& progress) {
    const ExportTarget& target = export_target(o.target);
    check_name(o.name);
    if (o.output.empty()) fail(ErrorCode::invalid_argument, "-o: expected the name of a folder, found nothing");
    if (!o.url.empty() && target.rest() == nullptr)
        fail(ErrorCode::invalid_argument, "--url: {} has no HTTP interface to load through; leave --url away",
             o.target);
    if (o.ann && !target.offers_ann())
        fail(ErrorCode::invalid_argument, "--ann: {} has no choice of index here; leave --ann away", o.target);
    const auto index = Index::open(o.index);
    if (index->size() == 0) fail(ErrorCode::invalid_argument, "{}: expected pages, found none", o.index.string());
    const Example example = choose_example(o, *index);
    const IndexSurvey survey = survey_index(*index, target, o.threads, progress);
    if (const auto why = target.cosine_only(o.ann); !why.empty() && survey.not_unit > 0 && !o.unit_norm)
        fail(ErrorCode::unsupported,
             "{}: {}, but {} of {} vectors here are not of unit norm ({:.3f} to {:.3f}) and their norms carry meaning; "
             "--unit-norm scales them and says what that costs",
             o.target, why, survey.not_unit, survey.vectors, survey.shortest, survey.longest);

    ExportReport report;
    ExportPlan plan;
    plan.name = o.name;
    plan.pages = index->size();
    plan.dim = index->dim();
    plan.batch_bytes = o.batch_bytes;
    plan.ann = o.ann;
    plan.uploaded_to = printable_url(o.url);
    plan.vectors = survey.vectors;
    plan.most_vectors = survey.most_vectors;
    plan.shortest = survey.shortest;
    plan.longest = survey.longest;
    plan.query = to_float(example.queries.vectors(example.chosen));
    plan.query_id = example.queries.id(example.chosen);
    plan.query_from = example.from;
    if (o.unit_norm) {
        judge_unit_norms(o, *index, survey, example, plan, report);
    } else {
        // A coded index compares coded queries; other engines get decoded vectors, so they are asked instead.
        const std::size_t chosen[] = {example.chosen};
        plan.expected = exact_search(*index, example.queries.subset(chosen), false, o.threads).front();
    }
    report.target = o.target;
    report.output = o.output.string();
    report.pages = plan.pages;
    report.vectors = plan.vectors;
    report.dim = plan.dim;
    report.query_id = plan.query_id;
    report.query_from = plan.query_from;
    if (!example.real)
        report.notes.push_back(
            "no queries given and none stored with the index: the example asks with vectors of page '" + plan.query_id +
            "'");

    TextFiles texts = target.texts(plan);
    if (!o.url.empty()) texts.erase("load.sh");  // there are no files for it to load
    texts[export_marker] = marker_text(plan, target);
    const auto start = Clock::now();
    if (o.url.empty())
        write_files(o, *index, target, plan, texts, report, progress);
    else
        upload(o, *index, target, plan, texts, report, progress);
    report.seconds = seconds_since(start);
    return report;
}

}  // namespace marginmerge
