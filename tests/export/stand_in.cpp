#include "stand_in.h"

#include <cstring>

namespace marginmerge::test {

using nlohmann::json;

namespace {

json parse(const httplib::Request& request) { return json::parse(request.body, nullptr, false); }

void answer(httplib::Response& response, int status, const json& body) {
    response.status = status;
    response.set_content(body.dump(), "application/json");
}

}  // namespace

StandIn::StandIn(const std::string& engine) {
    server_.set_pre_routing_handler([this](const httplib::Request& request, httplib::Response&) {
        const std::lock_guard lock(mutex_);
        last_authorization = request.get_header_value("Authorization");
        return httplib::Server::HandlerResponse::Unhandled;
    });
    if (engine == "qdrant") qdrant();
    if (engine == "weaviate") weaviate();
    if (engine == "milvus") milvus();
    if (engine == "elasticsearch" || engine == "opensearch") bulk(engine == "elasticsearch");
    if (engine == "vespa") vespa();
    if (engine == "clickhouse") clickhouse();
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) std::this_thread::yield();
}

StandIn::~StandIn() {
    server_.stop();
    thread_.join();
}

bool StandIn::insert(httplib::Response& response) {
    const int status = trouble(inserts++);
    if (status == 200) return true;
    answer(response, status, {{"error", "trouble on purpose"}});
    return false;
}

void StandIn::expect(bool good, const std::string& what) {
    if (!good) problems.push_back(what);
}

void StandIn::store(const std::string& id, std::size_t position, const json& metadata, const json& vectors) {
    StoredPage page;
    page.position = position;
    page.metadata = metadata;
    expect(vectors.is_array() && !vectors.empty(), "vectors of " + id);
    for (const auto& row : vectors) {
        expect(row.size() == dim, "dimension of " + id);
        page.vectors.push_back(row.get<std::vector<float>>());
    }
    page.writes = pages[id].writes + 1;
    pages[id] = std::move(page);
}

void StandIn::qdrant() {
    server_.Get("/collections/pages", [this](const httplib::Request&, httplib::Response& response) {
        if (dim == 0)
            return answer(response, 404, {{"status", {{"error", "Not found: Collection `pages` doesn't exist!"}}}});
        answer(response, 200,
               {{"result",
                 {{"points_count", pages.size()},
                  {"config",
                   {{"params",
                     {{"vectors",
                       {{"size", dim.load()},
                        {"distance", "Dot"},
                        {"multivector_config", {{"comparator", "max_sim"}}}}}}}}}}},
                {"status", "ok"}});
    });
    server_.Put("/collections/pages", [this](const httplib::Request& request, httplib::Response& response) {
        const json body = parse(request);
        expect(body["vectors"]["distance"] == "Dot", "distance");
        expect(body["vectors"]["multivector_config"]["comparator"] == "max_sim", "comparator");
        dim = body["vectors"]["size"].get<std::size_t>();
        answer(response, 200, {{"result", true}, {"status", "ok"}});
    });
    server_.Put("/collections/pages/points", [this](const httplib::Request& request, httplib::Response& response) {
        const std::lock_guard lock(mutex_);
        if (!insert(response)) return;
        const json body = parse(request);
        expect(request.get_param_value("wait") == "true", "wait");
        expect(body.is_object() && body["points"].is_array(), "points");
        for (const auto& point : body["points"]) {
            const auto& payload = point["payload"];
            expect(point["id"].get<std::string>().size() == 36, "uuid");
            if (payload["id"] == poison)
                return answer(
                    response, 400,
                    {{"status", {{"error", "Wrong input: Vector dimension error: expected dim: 3, got 32"}}}});
            store(payload["id"], payload["position"], payload.value("metadata", json()), point["vector"]);
        }
        answer(response, 200, {{"result", {{"status", "completed"}}}, {"status", "ok"}});
    });
}

void StandIn::weaviate() {
    server_.Get("/v1/schema/Pages", [this](const httplib::Request&, httplib::Response& response) {
        if (dim == 0) {
            response.status = 404;
            return;
        }
        answer(response, 200,
               {{"class", "Pages"},
                {"vectorConfig",
                 {{"vectors", {{"vectorIndexConfig", {{"distance", "dot"}, {"multivector", {{"enabled", true}}}}}}}}}});
    });
    server_.Post("/v1/schema", [this](const httplib::Request& request, httplib::Response& response) {
        const json body = parse(request);
        expect(body["class"] == "Pages", "class");
        const auto& vectors = body["vectorConfig"]["vectors"];
        expect(vectors["vectorizer"].contains("none"), "vectorizer");
        expect(vectors["vectorIndexType"] == "hnsw", "vectorIndexType");
        expect(vectors["vectorIndexConfig"]["multivector"]["enabled"] == true, "multivector");
        dim = 32;
        answer(response, 200, body);
    });
    server_.Post("/v1/batch/objects", [this](const httplib::Request& request, httplib::Response& response) {
        const std::lock_guard lock(mutex_);
        if (!insert(response)) return;
        json results = json::array();
        const json body = parse(request);
        for (auto object : body.at("objects")) {
            expect(object["class"] == "Pages" && object["id"].get<std::string>().size() == 36, "object");
            const std::string id = object["properties"]["page_id"];
            if (id == poison) {
                object["result"] = {
                    {"status", "FAILED"},
                    {"errors", {{"error", json::array({{{"message", "new node has a vector with length 32"}}})}}}};
            } else {
                const auto text = object["properties"].value("metadata", json());
                store(id, object["properties"]["position"],
                      text.is_string() ? json::parse(text.get<std::string>()) : json(), object["vectors"]["vectors"]);
                object["result"] = {{"status", "SUCCESS"}};
            }
            results.push_back(object);
        }
        answer(response, 200, results);
    });
}

void StandIn::milvus() {
    const auto ok = [](httplib::Response& response, const json& data) {
        answer(response, 200, {{"code", 0}, {"data", data}});
    };
    server_.Post("/v2/vectordb/collections/has", [this, ok](const httplib::Request&, httplib::Response& response) {
        ok(response, {{"has", dim != 0}});
    });
    server_.Post("/v2/vectordb/collections/describe", [this, ok](const httplib::Request&, httplib::Response& response) {
        ok(response,
           {{"structFields",
             json::array(
                 {{{"name", "patches"},
                   {"fields",
                    json::array({{{"name", "vector"},
                                  {"params", json::array({{{"key", "dim"}, {"value", std::to_string(dim)}}})}}})}}})}});
    });
    server_.Post(
        "/v2/vectordb/collections/create", [this, ok](const httplib::Request& request, httplib::Response& response) {
            const json body = parse(request);
            const auto& patches = body["schema"]["structFields"][0];
            const auto& vector = patches["fields"][0];
            expect(body["schema"]["fields"][0]["isPrimary"] == true, "primary key");
            expect(vector["dataType"] == "ArrayOfVector" && vector["elementDataType"] == "FloatVector", "data type");
            expect(std::stoul(patches["typeParams"]["max_capacity"].get<std::string>()) <= 4096, "max_capacity");
            expect(body["indexParams"][0]["fieldName"] == "patches[vector]", "indexed field");
            expect(body["indexParams"][0]["metricType"] == "MAX_SIM_IP", "metric");
            dim = std::stoul(vector["elementTypeParams"]["dim"].get<std::string>());
            ok(response, json::object());
        });
    server_.Post("/v2/vectordb/collections/load", [this, ok](const httplib::Request&, httplib::Response& response) {
        ++finished;
        ok(response, json::object());
    });
    server_.Post("/v2/vectordb/entities/upsert", [this, ok](const httplib::Request& request,
                                                            httplib::Response& response) {
        const std::lock_guard lock(mutex_);
        if (!insert(response)) return;
        const json body = parse(request);
        expect(body["collectionName"] == "pages", "collectionName");
        for (const auto& entity : body["data"]) {
            if (entity["id"] == poison)
                return answer(
                    response, 200,
                    {{"code", 1100}, {"message", "the dim (32) of field data(vector) is not equal to schema dim"}});
            json vectors = json::array();
            for (const auto& patch : entity["patches"]) vectors.push_back(patch["vector"]);
            store(entity["id"], entity["position"], entity["metadata"].empty() ? json() : entity["metadata"], vectors);
        }
        ok(response, {{"upsertCount", body["data"].size()}});
    });
}

void StandIn::bulk(bool elasticsearch) {
    server_.Get("/pages/_mapping", [this, elasticsearch](const httplib::Request&, httplib::Response& response) {
        if (dim == 0) return answer(response, 404, {{"error", {{"reason", "no such index [pages]"}}}, {"status", 404}});
        const json vectors = elasticsearch ? json{{"type", "rank_vectors"}, {"dims", dim.load()}}
                                           : json{{"type", "object"}, {"enabled", false}};
        answer(response, 200, {{"pages", {{"mappings", {{"properties", {{"vectors", vectors}}}}}}}});
    });
    server_.Put("/pages", [this, elasticsearch](const httplib::Request& request, httplib::Response& response) {
        const auto vectors = parse(request)["mappings"]["properties"]["vectors"];
        if (elasticsearch)
            expect(vectors["type"] == "rank_vectors" && vectors["dims"] == 32, "mapping");
        else
            expect(vectors["type"] == "object" && vectors["enabled"] == false, "mapping");
        dim = 32;
        answer(response, 200, {{"acknowledged", true}});
    });
    server_.Post("/pages/_refresh", [this](const httplib::Request&, httplib::Response& response) {
        ++finished;
        answer(response, 200, {{"_shards", json::object()}});
    });
    server_.Post("/pages/_bulk", [this](const httplib::Request& request, httplib::Response& response) {
        const std::lock_guard lock(mutex_);
        if (!insert(response)) return;
        expect(request.get_header_value("Content-Type") == "application/x-ndjson", "content type");
        expect(!request.body.empty() && request.body.back() == '\n', "the last line must end");
        std::istringstream lines(request.body);
        json items = json::array();
        bool errors = false;
        for (std::string action, source; std::getline(lines, action) && std::getline(lines, source);) {
            const json document = json::parse(source);
            const std::string id = json::parse(action)["index"]["_id"];
            expect(document["id"] == id, "_id");
            if (id == poison) {
                errors = true;
                items.push_back({{"index",
                                  {{"_id", id},
                                   {"status", 400},
                                   {"error",
                                    {{"type", "document_parsing_exception"},
                                     {"reason", "The [rank_vectors] field has wrong dims"}}}}}});
                continue;
            }
            store(id, document["position"], document.value("metadata", json()), document["vectors"]);
            items.push_back({{"index", {{"_id", id}, {"status", 201}}}});
        }
        answer(response, 200, {{"took", 3}, {"errors", errors}, {"items", items}});
    });
}

void StandIn::vespa() {
    server_.Get("/document/v1/pages/pages/docid/", [this](const httplib::Request&, httplib::Response& response) {
        if (dim == 0) return answer(response, 400, {{"message", "Document type pages does not exist in any cluster"}});
        answer(response, 200, {{"documents", json::array()}});
    });
    server_.Post(
        R"(/document/v1/pages/pages/docid/(.+))", [this](const httplib::Request& request, httplib::Response& response) {
            const std::lock_guard lock(mutex_);
            if (!insert(response)) return;
            const json fields = parse(request)["fields"];
            const std::string id = fields["id"];
            expect(request.matches[1] == id, "document id of " + id);
            if (id == poison) return answer(response, 400, {{"message", "Error in document: wrong tensor type"}});
            json vectors = json::array();
            const auto& blocks = fields["vectors"]["blocks"];
            for (std::size_t i = 0; i < blocks.size(); ++i) vectors.push_back(blocks[std::to_string(i)]);
            for (std::size_t i = 0; i < blocks.size(); ++i) {
                const std::string hex = fields["bits"]["blocks"][std::to_string(i)];
                expect(hex.size() == dim / 4, "bits of " + id);
                for (std::size_t j = 0; j < dim; ++j) {
                    const auto byte = std::stoul(hex.substr(j / 8 * 2, 2), nullptr, 16);
                    expect(((byte >> (7 - j % 8)) & 1) == (vectors[i][j].get<float>() > 0 ? 1U : 0U), "a bit of " + id);
                }
            }
            const auto text = fields.value("metadata", json());
            store(id, fields["position"], text.is_string() ? json::parse(text.get<std::string>()) : json(), vectors);
            answer(response, 200, {{"pathId", request.path}});
        });
}

void StandIn::clickhouse() {
    server_.Post("/", [this](const httplib::Request& request, httplib::Response& response) {
        const std::lock_guard lock(mutex_);
        const std::string query = request.get_param_value("query");
        const auto text = [&](const std::string& body) { response.set_content(body + "\n", "text/plain"); };
        if (query.empty()) {
            const std::string& sql = request.body;
            if (sql.find("EXISTS TABLE") == 0) return text(dim == 0 ? "0" : "1");
            if (sql.find("CREATE TABLE IF NOT EXISTS pages") == 0) {
                if (dim == 0) dim = 32;
                return;
            }
            if (sql.find("system.columns") != std::string::npos)
                return text("position UInt64, id String, metadata String, vectors Array(Array(Float32))");
            if (sql.find("NOT IN (0, 32)") != std::string::npos) return text(dim == 32 ? "0" : "7");
            if (sql.find("SELECT count()") == 0) return text(std::to_string(pages.size()));
            response.status = 400;
            return text("Code: 62. DB::Exception: Syntax error: " + sql);
        }
        if (!insert(response)) return;
        expect(query == "INSERT INTO pages FORMAT Native", "insert");
        expect(!tokens || !request.get_param_value("insert_deduplication_token").empty(), "token");
        // Blocks of the Native format.
        const std::string& bytes = request.body;
        std::size_t at = 0;
        const auto varint = [&] {
            std::uint64_t value = 0;
            for (unsigned shift = 0;; shift += 7) {
                const auto b = static_cast<unsigned char>(bytes.at(at++));
                value |= static_cast<std::uint64_t>(b & 127) << shift;
                if (b < 128) return value;
            }
        };
        const auto string = [&] {
            const auto length = varint();
            at += length;
            return bytes.substr(at - length, length);
        };
        const auto number = [&] {
            std::uint64_t value = 0;
            std::memcpy(&value, bytes.data() + at, 8);
            at += 8;
            return value;
        };
        while (at < bytes.size()) {
            expect(varint() == 4, "columns");
            const auto rows = varint();
            std::vector<std::uint64_t> positions(rows), ends(rows);
            std::vector<std::string> ids(rows), metadata(rows);
            expect(string() == "position" && string() == "UInt64", "position");
            for (auto& p : positions) p = number();
            expect(string() == "id" && string() == "String", "id");
            for (auto& id : ids) id = string();
            expect(string() == "metadata" && string() == "String", "metadata");
            for (auto& m : metadata) m = string();
            expect(string() == "vectors" && string() == "Array(Array(Float32))", "vectors");
            for (auto& e : ends) e = number();
            std::vector<std::uint64_t> inner(ends.empty() ? 0 : ends.back());
            for (auto& e : inner) e = number();
            std::size_t row = 0, previous = 0;
            for (std::size_t i = 0; i < rows; ++i) {
                json vectors = json::array();
                for (; row < ends[i]; ++row) {
                    std::vector<float> values(inner[row] - previous);
                    std::memcpy(values.data(), bytes.data() + at, values.size() * 4);
                    at += values.size() * 4;
                    previous = inner[row];
                    vectors.push_back(values);
                }
                if (ids[i] == poison) {
                    response.status = 400;
                    return text("Code: 33. DB::Exception: Cannot read all data");
                }
                store(ids[i], positions[i], metadata[i].empty() ? json() : json::parse(metadata[i]), vectors);
            }
        }
    });
}

}  // namespace marginmerge::test
