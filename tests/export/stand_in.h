#pragma once

// Servers that answer as the engines' documentation says they do, as far as an upload goes. They check
// every payload strictly and keep what they accepted, so that tests can compare it with the index.
#include <httplib.h>

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

namespace marginmerge::test {

struct StoredPage {
    std::vector<std::vector<float>> vectors;
    nlohmann::json metadata;  ///< null when there was none
    std::size_t position = 0;
    std::size_t writes = 0;
};

class StandIn {
public:
    explicit StandIn(const std::string& engine);
    ~StandIn();

    std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }

    /// Called before every insert; a status other than 200 is answered instead of doing the work.
    std::function<int(std::size_t insert)> trouble = [](std::size_t) { return 200; };
    /// Of the collection; 0 while there is none. Set before the upload to have one there already.
    std::atomic<std::size_t> dim{0};
    std::map<std::string, StoredPage> pages;
    std::vector<std::string> problems;  ///< payloads that were not as documented
    std::atomic<std::size_t> inserts{0};
    std::atomic<std::size_t> finished{0};  ///< refresh, load and the like
    std::string last_authorization;
    bool tokens = true;  ///< every insert must carry a deduplication token, where the engine has them
    /// The page of this id is refused by itself, in the engine's way.
    std::string poison;

private:
    bool insert(httplib::Response& response);
    void expect(bool good, const std::string& what);
    void store(const std::string& id, std::size_t position, const nlohmann::json& metadata,
               const nlohmann::json& vectors);
    void qdrant();
    void weaviate();
    void milvus();
    void bulk(bool elasticsearch);
    void vespa();
    void clickhouse();

    httplib::Server server_;
    std::mutex mutex_;
    std::thread thread_;
    int port_ = 0;
};

}  // namespace marginmerge::test
