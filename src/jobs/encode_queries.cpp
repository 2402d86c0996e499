#include <algorithm>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/clock.h"
#include "core/fail.h"
#include "core/parallel.h"
#include "encode/encoder.h"
#include "encode/json_fields.h"
#include "encode/onnx_session.h"
#include "io/multi_vector_file.h"
#include "jobs/encode.h"

namespace marginmerge {

namespace {

struct Query {
    std::string id;
    std::string text;
};

Query from_json_line(std::string_view line, const std::string& where) {
    const auto json = parse_json(line, where);
    const auto field = [&](const char* name) -> std::string {
        const auto found = json.is_object() ? json.find(name) : json.end();
        if (found == json.end()) return {};
        return found->is_string() ? found->get<std::string>() : found->dump();
    };
    std::string id = field("_id");
    if (id.empty()) id = field("id");
    std::string text = field("text");
    if (text.empty()) text = field("query");
    return {std::move(id), std::move(text)};
}

std::vector<Query> read_queries(const std::filesystem::path& path) {
    const std::string bytes = read_text_file(path.string(), std::uint64_t{1} << 30);
    const std::string extension = path.extension().string();
    std::vector<Query> out;
    std::string_view rest = bytes;
    for (std::size_t number = 1; !rest.empty(); ++number) {
        const std::size_t end = std::min(rest.find('\n'), rest.size());
        std::string_view line = rest.substr(0, end);
        rest.remove_prefix(std::min(end + 1, rest.size()));
        if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
        if (line.find_first_not_of(" \t") == std::string_view::npos) continue;
        const std::string where = fmt::format("{}: line {}", path.string(), number);
        Query query;
        if (extension == ".jsonl" || extension == ".json") {
            query = from_json_line(line, where);
        } else if (const auto tab = line.find('\t'); extension == ".tsv") {
            if (tab == std::string_view::npos)
                fail(ErrorCode::corrupt, "{}: expected an id, a tab and the query, found no tab", where);
            query = {std::string(line.substr(0, tab)), std::string(line.substr(tab + 1))};
            if (number == 1 && (query.id == "query-id" || query.id == "query_id" || query.id == "_id")) continue;
        } else {
            query = {std::to_string(out.size()), std::string(line)};
        }
        if (query.id.empty()) query.id = std::to_string(out.size());
        if (query.text.empty()) fail(ErrorCode::corrupt, "{}: expected a query, found none", where);
        out.push_back(std::move(query));
    }
    if (out.empty()) fail(ErrorCode::corrupt, "{}: expected queries, found none", path.string());
    return out;
}

}  // namespace

EncodeReport encode_queries(const EncodeQueriesOptions& options, const Progress& progress) {
    const auto started = Clock::now();
    const std::vector<Query> queries = read_queries(options.queries);
    EncoderOptions how;
    how.models = options.models;
    how.documents = false;
    const Encoder encoder(read_card(options.card), how);
    std::vector<Matrix> vectors(queries.size());
    std::mutex mutex;
    std::size_t done = 0;
    parallel_for(queries.size(), options.threads, [&](std::size_t i) {
        try {
            vectors[i] = encoder.encode_query(queries[i].text).vectors;
        } catch (const Error& error) {
            fail(error.code(), "{}: query '{}': {}", options.queries.string(), queries[i].id, error.what());
        }
        const std::lock_guard lock(mutex);
        ++done;
        if (progress) progress({"encode", "queries", done, queries.size(), ""});
    });
    MultiVectorBuilder builder(encoder.dim());
    EncodeReport report;
    for (std::size_t i = 0; i < queries.size(); ++i) {
        builder.add(queries[i].id, vectors[i]);
        report.vectors += vectors[i].rows();
    }
    write_multi_vectors(options.output, builder.finish(), options.type,
                        {{"encoder", encoder.card().name}, {"kind", "queries"}});
    report.files = 1;
    report.pages = queries.size();
    report.dim = encoder.dim();
    report.card = options.card;
    report.runtime = onnxruntime_description();
    report.seconds = seconds_since(started);
    return report;
}

}  // namespace marginmerge
