#include "lab/dataset_files.h"
#include "io/folders.h"

#include "core/fail.h"
#include "io/atomic_file.h"
#include "io/cache_folder.h"
#include "jobs/fingerprint.h"
#include "lab/resources.h"
#include "marginmerge/core/version.h"
#include "marginmerge/jobs/import.h"
#include "marginmerge/jobs/synth.h"

namespace marginmerge::lab {

namespace fs = std::filesystem;

namespace {

DataRole parse_role(const std::string& role, const std::string& where) {
    if (role == "train") return DataRole::train;
    if (role == "bank") return DataRole::bank;
    if (role == "zero-shot") return DataRole::zero_shot;
    fail(ErrorCode::invalid_argument, "{}: role: expected train, bank or zero-shot, found '{}'", where, role);
}

fs::path first_of(const fs::path& root, std::initializer_list<const char*> names) {
    for (const char* name : names)
        if (fs::exists(root / name)) return root / name;
    return {};
}

void take_folder(DatasetSource& source, const fs::path& root) {
    if (is_cache_folder(root)) {
        source.cache = root;
    } else {
        source.documents = first_of(root, {"docs.safetensors", "documents.safetensors"});
        if (source.documents.empty())
            fail(ErrorCode::not_found, "{}: expected docs.safetensors, or ps.pt and qs.pt, found neither",
                 root.string());
        source.test_queries = first_of(root, {"test_queries.safetensors"});
        source.test_qrels = first_of(root, {"test_qrels.tsv"});
        source.train_queries = first_of(root, {"train_queries.safetensors"});
        source.train_qrels = first_of(root, {"train_qrels.tsv"});
        source.queries = first_of(root, {"queries.safetensors"});
        source.qrels = first_of(root, {"qrels.tsv"});
    }
    source.structural = first_of(root, {"structural.safetensors"});
    source.name = root.filename().empty() ? root.parent_path().filename().string() : root.filename().string();
}

// Field by field, so that a dataset.json in a folder may say only what the folder cannot.
void take_description(DatasetSource& s, const nlohmann::json& d, const fs::path& base, const std::string& where) {
    const auto text = [&](const char* field) {
        const auto found = d.find(field);
        if (found == d.end()) return std::string();
        if (!found->is_string()) fail(ErrorCode::corrupt, "{}: {}: expected a text", where, field);
        return found->get<std::string>();
    };
    const auto path = [&](const char* field, fs::path& target) {
        if (const auto value = text(field); !value.empty()) target = base / value;
    };
    if (!text("name").empty()) s.name = text("name");
    path("documents", s.documents);
    path("cache", s.cache);
    path("queries", s.queries);
    path("qrels", s.qrels);
    path("train_queries", s.train_queries);
    path("train_qrels", s.train_qrels);
    path("test_queries", s.test_queries);
    path("test_qrels", s.test_qrels);
    path("structural_scores", s.structural);
    if (!text("encoder").empty()) s.encoder = text("encoder");
    if (!text("content").empty()) s.content = text("content");
    if (!text("role").empty()) s.role = parse_role(text("role"), where);
    if (d.contains("synthetic")) s.synthetic = d["synthetic"];
}

bool is_ready(const fs::path& folder) { return fs::exists(folder / "ready"); }

}  // namespace

DatasetSource dataset_source(const nlohmann::json& description, const fs::path& base) {
    DatasetSource source;
    take_description(source, description, base, "dataset");
    if (source.name.empty()) fail(ErrorCode::invalid_argument, "dataset: expected a name, found none");
    return source;
}

DatasetSource dataset_source(const std::string& argument) {
    DatasetSource source;
    if (fs::is_regular_file(argument) && argument.ends_with(".json")) {
        const fs::path file = argument;
        source.name = file.stem().string();
        take_description(source, read_json(argument), file.parent_path(), argument);
        return source;
    }
    std::string folder = argument;
    const auto colon = folder.rfind(':');
    if (colon != std::string::npos && !fs::is_directory(folder)) {
        source.role = parse_role(folder.substr(colon + 1), "--data " + argument);
        folder.resize(colon);
    }
    if (!fs::is_directory(folder))
        fail(ErrorCode::not_found, "--data {}: expected a folder or a dataset file, found neither", folder);
    take_folder(source, folder);
    const fs::path description = fs::path(folder) / "dataset.json";
    if (fs::exists(description))
        take_description(source, read_json(description.string()), folder, description.string());
    return source;
}

DatasetSource with_files(DatasetSource source, const fs::path& work, std::size_t threads, const Progress& progress) {
    if (!source.synthetic.is_null()) {
        const auto& s = source.synthetic;
        const fs::path folder = work / (source.name + "-" + hash_hex(s.dump() + version()));
        if (!is_ready(folder)) {
            make_folder(folder);
            SynthOptions options;
            options.output = folder;
            options.kind = s.value("kind", options.kind);
            options.documents = s.value("documents", options.documents);
            options.queries = s.value("queries", options.queries);
            options.vectors = s.value("vectors", options.vectors);
            options.redundancy = s.value("redundancy", options.redundancy);
            options.dim = s.value("dim", options.dim);
            options.difficulty = s.value("difficulty", options.difficulty);
            options.seed = s.value("seed", options.seed);
            options.threads = threads;
            synthesise(options, progress);
            write_text_file(folder / "ready", s.dump() + "\n");
        }
        source.documents = folder / "docs.safetensors";
        source.queries = folder / "queries.safetensors";
        source.qrels = folder / "qrels.tsv";
    } else if (!source.cache.empty()) {
        const fs::path folder = work / source.name;
        std::string stamp = version();
        for (const char* file : {"ps.pt", "qs.pt", "meta.json"})
            if (fs::exists(source.cache / file)) stamp += file_fingerprint(source.cache / file);
        const auto current = [&] {
            if (!is_ready(folder)) return false;
            return read_json((folder / "ready").string()).value("stamp", "") == stamp;
        };
        source.documents = folder / "docs.safetensors";
        source.queries = folder / "queries.safetensors";
        source.qrels = folder / "qrels.tsv";
        if (!current()) {
            make_folder(folder);
            ImportOptions options;
            options.sources = {source.cache};
            options.output = source.documents;
            import_vectors(options, progress);
            options.queries = true;
            options.output = source.queries;
            options.qrels_out = source.qrels;
            import_vectors(options, progress);
            write_text_file(folder / "ready", nlohmann::json{{"stamp", stamp}}.dump() + "\n");
        }
    }
    if (source.documents.empty())
        fail(ErrorCode::invalid_argument, "{}: documents: expected a file, found none", source.name);
    return source;
}

}  // namespace marginmerge::lab
