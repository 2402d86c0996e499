#include <httplib.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "api_error.h"
#include "core/fail.h"
#include "kernels/products.h"
#include "text_encoder.h"

namespace marginmerge::server {

using nlohmann::json;

namespace {

constexpr std::size_t max_answer_bytes = 64U << 20;

[[noreturn]] void failed(const std::string& what) { throw ApiError(502, "encoder_failed", "encoder: " + what); }

Matrix rows_from(const json& rows) {
    if (!rows.is_array() || rows.empty() || !rows[0].is_array() || rows[0].empty()) {
        failed("expected a vector for each token in the answer; is the server set to pool tokens?");
    }
    Matrix out(rows.size(), rows[0].size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (!rows[i].is_array() || rows[i].size() != out.cols()) failed("vectors of different lengths in the answer");
        for (std::size_t j = 0; j < out.cols(); ++j) {
            if (!rows[i][j].is_number()) failed("something else than numbers in the answer");
            out(i, j) = static_cast<float>(rows[i][j].get<double>());
            if (!std::isfinite(out(i, j))) failed("a value in the answer is not finite");
        }
    }
    return out;
}

const json& vectors_in(const json& answer) {
    if (!answer.is_object()) failed("the answer is not a JSON object");
    for (const char* name : {"data", "embeddings"}) {
        const auto list = answer.find(name);
        if (list == answer.end()) continue;
        if (!list->is_array() || list->empty()) failed(std::string(name) + " is empty in the answer");
        const json& first = (*list)[0];
        if (!first.is_object()) return first;
        for (const char* inner : {"data", "embedding", "embeddings"}) {
            if (first.contains(inner)) return first[inner];
        }
    }
    failed("no data or embeddings in the answer");
}

class EndpointEncoder : public TextEncoder {
public:
    explicit EndpointEncoder(const EndpointOptions& options) : options_(options) {
        const auto scheme = options.url.find("://");
        const std::string kind = options.url.substr(0, scheme == options.url.npos ? 0 : scheme);
        if (kind != "http" && kind != "https") {
            fail(ErrorCode::invalid_argument, "--encoder-url {}: expected http://host:port/path", options.url);
        }
        const auto slash = options.url.find('/', scheme + 3);
        base_ = options.url.substr(0, slash);
        path_ = slash == options.url.npos || options.url.substr(slash) == "/" ? "/pooling" : options.url.substr(slash);
        if (!httplib::Client(base_).is_valid() || base_.size() <= scheme + 3) {
            fail(ErrorCode::invalid_argument, "--encoder-url {}: expected http://host:port/path", options.url);
        }
    }

    EncodedText encode(const std::string& text) override {
        json body{{"input", json::array({options_.prefix + text})}};
        if (!options_.model.empty()) body["model"] = options_.model;
        if (!options_.task.empty()) body["task"] = options_.task;
        httplib::Client client(base_);
        const auto seconds = std::chrono::duration<double>(options_.timeout_seconds);
        client.set_connection_timeout(
            std::chrono::duration_cast<std::chrono::milliseconds>(std::min(seconds, std::chrono::duration<double>(5))));
        client.set_read_timeout(std::chrono::duration_cast<std::chrono::milliseconds>(seconds));
        client.set_write_timeout(std::chrono::duration_cast<std::chrono::milliseconds>(seconds));
        httplib::Headers headers;
        if (!options_.api_key.empty()) headers.emplace("Authorization", "Bearer " + options_.api_key);
        httplib::Request request;
        request.method = "POST";
        request.path = path_;
        request.headers = headers;
        request.body = body.dump(-1, ' ', false, json::error_handler_t::replace);
        request.set_header("Content-Type", "application/json");
        // A read timeout is for each read; a server that trickles is cut off by the whole time.
        const auto deadline =
            std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(seconds);
        std::string received;
        request.content_receiver = [&](const char* data, std::size_t size, std::uint64_t, std::uint64_t) {
            received.append(data, size);
            return received.size() <= max_answer_bytes && std::chrono::steady_clock::now() < deadline;
        };
        const auto result = client.send(request);
        if (!result) failed("cannot be reached at " + base_ + path_ + " (" + httplib::to_string(result.error()) + ")");
        if (result->status != 200) failed("answered with status " + std::to_string(result->status));
        const json answer = json::parse(received, nullptr, false);
        EncodedText out;
        out.vectors = rows_from(vectors_in(answer));
        normalise_rows(out.vectors);
        return out;
    }

    std::string description() const override {
        return base_ + path_ + (options_.model.empty() ? "" : " (" + options_.model + ")");
    }

private:
    EndpointOptions options_;
    std::string base_;
    std::string path_;
};

}  // namespace

std::unique_ptr<TextEncoder> make_endpoint_encoder(const EndpointOptions& options) {
    return std::make_unique<EndpointEncoder>(options);
}

}  // namespace marginmerge::server
