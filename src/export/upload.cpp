#include "export/upload.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/fail.h"
#include "export/survey.h"
#include "io/atomic_file.h"

namespace marginmerge {

namespace {

constexpr double first_pause = 0.5, longest_pause = 30;

/// What the server has acknowledged, on disk.
class Journal {
public:
    Journal(const UploadOptions& options, std::size_t pages)
        : path_(options.journal), fingerprint_(options.fingerprint) {
        std::ifstream in(path_, std::ios::binary);
        if (!in) return;
        const auto json = nlohmann::json::parse(in, nullptr, false);
        if (!json.is_object() || json.value("fingerprint", std::string()) != fingerprint_) {
            foreign_ = true;
            return;
        }
        const auto done = json.find("pages");
        if (done != json.end() && done->is_number_unsigned()) done_ = std::min(done->get<std::size_t>(), pages);
    }
    std::size_t done() const { return done_; }
    bool foreign() const { return foreign_; }
    void record(std::size_t pages) {
        done_ = pages;
        const nlohmann::ordered_json json = {
            {"schema", "marginmerge.upload"}, {"version", "1"}, {"fingerprint", fingerprint_}, {"pages", pages}};
        write_text_file(path_, json.dump(1) + "\n");
    }
    void finish() const {
        std::error_code ignored;
        std::filesystem::remove(path_, ignored);
    }

private:
    std::filesystem::path path_;
    std::string fingerprint_;
    std::size_t done_ = 0;
    bool foreign_ = false;
};

struct Batch {
    std::vector<ExportPage> pages;
    std::vector<std::string> encoded;
    std::size_t bytes = 0;
};

class Uploader {
public:
    Uploader(const Index& index, const ExportPlan& plan, const RestDialect& dialect, const UploadOptions& options,
             const Progress& progress)
        : index_(index),
          plan_(plan),
          dialect_(dialect),
          options_(options),
          progress_(progress),
          journal_(options, plan.pages) {
        for (std::size_t i = 0; i < std::max<std::size_t>(1, options.connections); ++i)
            servers_.push_back(options.connect());
        if (!options_.pause)
            options_.pause = [](double seconds) {
                std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
            };
    }

    UploadReport run() {
        std::size_t first = journal_.done();
        if (journal_.foreign())
            report_.notes.push_back(
                "an earlier upload of another index or to another place was interrupted; starting anew");
        const bool existed = prepare(first > 0);
        if (first > 0 && !existed) {
            report_.notes.push_back("the collection of the interrupted upload is gone from the server; starting anew");
            first = 0;
        }
        report_.resumed_pages = first;
        done_ = first;
        stream_pages(
            index_, first, plan_.unit_norm, options_.threads,
            [&](const ExportPage& page) { return dialect_.encode(plan_, page); },
            [&](const ExportPage& page, std::string encoded) {
                add(page, std::move(encoded));
                return true;
            });
        if (!wave_.back().pages.empty() || wave_.size() > 1) send_wave();
        try {
            dialect_.finish(*servers_[0], plan_);
        } catch (const Error& error) {
            fail(error.code(), "{}: all pages are in, but {}", options_.where, error.what());
        }
        journal_.finish();
        return std::move(report_);
    }

private:
    bool prepare(bool resuming) {
        try {
            return dialect_.prepare(*servers_[0], plan_, resuming, options_.append);
        } catch (const Error& error) {
            // A wrong address or a refusal here is not a passing matter: nothing was sent yet.
            fail(error.code(), "{}: {}", options_.where, error.what());
        }
    }

    void add(const ExportPage& page, std::string encoded) {
        const std::size_t size = std::max(encoded.size(), page.vectors.size() * sizeof(float));
        if (!wave_.back().pages.empty() && wave_.back().bytes + size > plan_.batch_bytes) {
            if (wave_.size() == servers_.size())
                send_wave();
            else
                wave_.emplace_back();
        }
        Batch& batch = wave_.back();
        batch.pages.push_back(page);
        batch.encoded.push_back(std::move(encoded));
        batch.bytes += size;
    }

    // All requests of the wave, spread over the connections; returns when each has been acknowledged.
    void send_wave() {
        std::vector<HttpRequest> requests;
        std::size_t pages = 0;
        for (const Batch& batch : wave_) {
            const std::string token = fmt::format("{}-{}", options_.fingerprint, batch.pages.front().position);
            for (auto& request : dialect_.requests(plan_, batch.pages, batch.encoded, token))
                requests.push_back(std::move(request));
            pages += batch.pages.size();
        }
        std::atomic<std::size_t> next{0};
        std::atomic<bool> stop{false};
        std::exception_ptr failure;
        std::mutex mutex;
        const auto work = [&](RestServer& server) {
            for (std::size_t i = next++; i < requests.size() && !stop; i = next++) {
                try {
                    send(server, requests[i]);
                } catch (...) {
                    const std::lock_guard lock(mutex);
                    if (!failure) failure = std::current_exception();
                    stop = true;
                }
            }
        };
        std::vector<std::thread> threads;
        for (std::size_t i = 1; i < std::min(servers_.size(), requests.size()); ++i)
            threads.emplace_back([&, i] { work(*servers_[i]); });
        work(*servers_[0]);
        for (auto& thread : threads) thread.join();
        if (failure) std::rethrow_exception(failure);
        done_ += pages;
        journal_.record(done_);
        wave_.clear();
        wave_.emplace_back();
        if (progress_) progress_({"upload", "pages", done_, plan_.pages, {}});
    }

    void send(RestServer& server, const HttpRequest& request) {
        double pause = first_pause;
        for (std::size_t attempt = 0;; ++attempt) {
            Verdict verdict;
            double asked = 0;
            try {
                const HttpAnswer answer = server.ask(request);
                verdict = dialect_.judge(answer);
                asked = answer.retry_after;
            } catch (const Error& error) {
                if (error.code() != ErrorCode::io) throw;
                verdict = {Verdict::Kind::again, error.what()};
            }
            if (verdict.kind == Verdict::Kind::accepted) {
                const std::lock_guard lock(count_mutex_);
                ++report_.requests;
                report_.bytes += request.body.size();
                return;
            }
            if (verdict.kind == Verdict::Kind::refused) give_up("refused", verdict.why);
            if (attempt >= options_.retries) give_up(fmt::format("failed {} times", attempt + 1), verdict.why);
            {
                const std::lock_guard lock(count_mutex_);
                ++report_.retried;
            }
            options_.pause(std::min(longest_pause, std::max(pause, asked)));
            pause *= 2;
        }
    }

    [[noreturn]] void give_up(const std::string& what, const std::string& why) const {
        fail(ErrorCode::io, "{}: a request {}: {}; {} of {} pages are in, the same command goes on from there",
             options_.where, what, why, done_, plan_.pages);
    }

    const Index& index_;
    const ExportPlan& plan_;
    const RestDialect& dialect_;
    UploadOptions options_;
    const Progress& progress_;
    Journal journal_;
    std::vector<std::unique_ptr<RestServer>> servers_;
    std::vector<Batch> wave_ = std::vector<Batch>(1);
    std::size_t done_ = 0;  ///< pages acknowledged, earlier runs included
    UploadReport report_;
    std::mutex count_mutex_;
};

}  // namespace

UploadReport upload_index(const Index& index, const ExportPlan& plan, const RestDialect& dialect,
                          const UploadOptions& options, const Progress& progress) {
    return Uploader(index, plan, dialect, options, progress).run();
}

}  // namespace marginmerge
