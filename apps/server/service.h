#pragma once

#include <atomic>
#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>

#include "assets.h"
#include "bodies.h"
#include "metrics.h"
#include "overview.h"
#include "server_limits.h"
#include "snapshot.h"
#include "text_encoder.h"

namespace marginmerge::server {

struct ServiceOptions {
    SnapshotSources sources;
    std::filesystem::path assets;          ///< page images and texts; may be empty
    std::shared_ptr<TextEncoder> encoder;  ///< null: no text queries
    Limits limits;
    std::size_t threads = 0;  ///< for one search when nothing else runs; 0: all cores
    double poll_seconds = 1;  ///< how often to look for a new state of the index; 0: never
};

/// Everything the server does, without HTTP: requests in, JSON values out, ApiError or Error thrown.
/// Safe to call from any number of threads.
class Service {
public:
    explicit Service(ServiceOptions options);
    ~Service();
    Service(const Service&) = delete;
    Service& operator=(const Service&) = delete;

    nlohmann::ordered_json search(const SearchRequest& request);
    nlohmann::ordered_json explain(const ExplainRequest& request);
    nlohmann::ordered_json encode(const QueryInput& query);
    nlohmann::ordered_json add(const AddRequest& request);
    nlohmann::ordered_json remove(const std::vector<std::string>& ids, bool must_exist);
    nlohmann::ordered_json page(const std::string& id) const;
    nlohmann::ordered_json pages(std::size_t offset, std::size_t limit, const Filter& filter) const;
    nlohmann::ordered_json examples(std::size_t offset, std::size_t limit) const;
    nlohmann::ordered_json stats() const;
    nlohmann::ordered_json overview() const;
    Asset asset(const std::string& id, bool image) const;

    /// Looks at the files again; the next request sees what is there. Throws Error and keeps the
    /// old state when they cannot be read.
    nlohmann::ordered_json reload();
    bool ready() const { return ready_.load(); }
    /// /readyz says no from now on, so that a balancer sends no more requests; those that come are answered.
    void begin_shutdown() { ready_ = false; }

    std::shared_ptr<const Snapshot> snapshot() const;
    Metrics& metrics() { return metrics_; }
    const Metrics& metrics() const { return metrics_; }
    const Limits& limits() const { return options_.limits; }

private:
    struct Running;  ///< counts requests at work, and knows how many threads one may use
    MultiVectorSet resolve(const QueryInput& query, const Snapshot& snapshot);
    EncodedText encode_text(const std::string& text);
    std::vector<std::vector<Hit>> run(const MultiVectorSet& queries, const SearchRequest& request,
                                      const Snapshot& snapshot, std::size_t threads) const;
    void add_asset_flags(nlohmann::ordered_json& page, const Index& index, std::size_t position) const;
    void install(std::shared_ptr<const Snapshot> snapshot);
    void watch();
    void summarise();
    std::string writable_path() const;

    ServiceOptions options_;
    Assets assets_;
    Metrics metrics_;
    std::atomic<bool> ready_{false};
    std::atomic<std::size_t> running_{0};

    mutable std::mutex mutex_;  ///< snapshot_, overview_, last_reload_error_
    std::shared_ptr<const Snapshot> snapshot_;
    std::shared_ptr<const Overview> overview_;  ///< null until made
    std::string last_reload_error_;

    std::mutex reload_mutex_;  ///< one reload at a time
    std::mutex write_mutex_;   ///< one add or delete at a time

    std::mutex cache_mutex_;
    std::list<std::pair<std::string, EncodedText>> cache_;  ///< most recent first

    std::atomic<bool> end_{false};
    std::mutex wake_mutex_;
    std::condition_variable wake_;
    bool overview_due_ = false;
    std::thread watcher_;
    std::thread summariser_;
};

}  // namespace marginmerge::server
