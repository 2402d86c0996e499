#include <fmt/core.h>

#include <csignal>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "command.h"
#include "http_server.h"
#include "marginmerge/core/error.h"
#include "service.h"

namespace marginmerge::cli {

namespace {

struct ServeFlags {
    Common common;
    server::ServiceOptions service;
    server::HttpOptions http;
    server::EndpointOptions encoder;
    std::string card;    ///< --encoder: a card run in this process
    std::string models;  ///< --models
};

std::string from_environment(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
}

void serve(ServeFlags& options) {
    if (options.http.api_key.empty()) options.http.api_key = from_environment("MARGINMERGE_API_KEY");
    options.service.limits = options.http.limits;
    options.service.threads = options.common.threads;
    if (!options.encoder.url.empty()) {
        options.encoder.api_key = from_environment("MARGINMERGE_ENCODER_KEY");
        options.service.encoder = server::make_endpoint_encoder(options.encoder);
    } else if (!options.card.empty()) {
        options.service.encoder = server::make_card_encoder(options.card, options.models);
    }
    // Blocked here, the signals stay blocked in every thread made from now on; one thread waits for them.
    sigset_t signals;
    sigemptyset(&signals);
    for (const int s : {SIGTERM, SIGINT, SIGHUP, SIGUSR2}) sigaddset(&signals, s);
    ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    std::signal(SIGPIPE, SIG_IGN);

    server::Service service(std::move(options.service));
    server::HttpServer http(service, options.http);
    const int port = http.bind();
    const bool v6 = options.http.host.find(':') != std::string::npos;
    const std::string url = fmt::format("http://{}{}{}:{}/", v6 ? "[" : "", options.http.host, v6 ? "]" : "", port);
    const auto stats = service.snapshot()->index->stats();
    if (options.common.json) {
        fmt::print("{{\"url\": \"{}\", \"port\": {}, \"pages\": {}}}\n", url, port, stats.pages);
    } else {
        fmt::print("{} pages, {} vectors, {} dimensions\nOpen {}\n", stats.pages, stats.vectors, stats.dim, url);
    }
    std::fflush(stdout);

    const auto note = [&](const std::string& text) {
        if (!options.common.quiet) fmt::print(stderr, "marginmerge: {}\n", text);
    };
    std::thread waiter([&] {
        for (;;) {
            int signal = 0;
            if (::sigwait(&signals, &signal) != 0 || signal == SIGUSR2) return;
            if (signal == SIGHUP) {
                try {
                    service.reload();
                    note("index read again");
                } catch (const std::exception& error) {
                    note(std::string("the old index stays: ") + error.what());
                }
                continue;
            }
            note("stopping; running requests are finished first");
            service.begin_shutdown();
            http.stop();
            return;
        }
    });
    http.run();
    ::pthread_kill(waiter.native_handle(), SIGUSR2);
    waiter.join();
}

}  // namespace

void register_serve(CLI::App& app) {
    auto options = std::make_shared<ServeFlags>();
    CLI::App* command = app.add_subcommand("serve", "An index over HTTP, with a web page");
    server::SnapshotSources& sources = options->service.sources;
    server::Limits& limits = options->http.limits;
    command->add_option("INDEX", sources.index, "An index folder, or any multi-vector file")->required();
    command->add_option("--host", options->http.host, "Address to listen on; any but loopback needs a key")
        ->capture_default_str();
    command->add_option("--port", options->http.port, "Port; 0 takes a free one")
        ->capture_default_str()
        ->check(CLI::Range(0, 65535));
    command->add_option("--api-key", options->http.api_key,
                        "Key that clients must send (or environment MARGINMERGE_API_KEY)");
    command->add_option("--full", sources.full, "The pages before compression, to compare with");
    command->add_option("--queries", sources.queries,
                        "Example queries for the page (default: those kept in the index)");
    command->add_option("--variants", sources.variants, "The same pages with other numbers of vectors, for the slider");
    command->add_option("--assets", options->service.assets, "Folder with page images and texts (ID.png, ID.txt, …)");
    auto* card = command->add_option("--encoder", options->card, "Encoder card for text queries, run in this process");
    command->add_option("--models", options->models, "Folder to look in for files the card names");
    command
        ->add_option("--encoder-url", options->encoder.url,
                     "Token-embedding server for text queries, http://host:port[/pooling]")
        ->excludes(card);
    command->add_option("--encoder-model", options->encoder.model, "Model name to send to it");
    command->add_option("--encoder-task", options->encoder.task, "Task to send to it, for example token_embed");
    command->add_option("--encoder-prefix", options->encoder.prefix, "Text put before every query");
    command->add_option("--encoder-timeout", options->encoder.timeout_seconds, "Seconds to wait for it")
        ->capture_default_str();
    command->add_option("--workers", options->http.workers, "Requests worked on at once; 0: two for each core");
    command->add_option("--poll", options->service.poll_seconds, "Seconds between looks for a changed index; 0: never")
        ->capture_default_str();
    command->add_option("--max-body", limits.body_bytes, "Largest request body, bytes")->capture_default_str();
    command->add_option("--max-batch", limits.batch, "Most queries in a request")->capture_default_str();
    command->add_option("--max-k", limits.k, "Most results for a query")->capture_default_str();
    command->add_option("--max-connections", limits.connections, "Most open connections")->capture_default_str();
    command->add_option("--timeout", limits.search_seconds, "Seconds a request may work")->capture_default_str();
    command->add_option("--grace", limits.grace_seconds, "Seconds to finish requests after a stop")
        ->capture_default_str();
    add_common(*command, options->common);
    command->footer(
        "Examples:\n"
        "  marginmerge serve pages.index\n"
        "  marginmerge serve pages.index --full docs.safetensors --queries queries.safetensors --assets images\n"
        "  marginmerge serve pages.index --assets docs.safetensors.assets --encoder minilm/card.json\n"
        "  marginmerge serve pages.index --encoder-url http://gpu:8000/pooling --encoder-model colqwen\n"
        "  MARGINMERGE_API_KEY=secret marginmerge serve pages.index --host 0.0.0.0\n"
        "SIGTERM finishes running requests and ends; SIGHUP reads the index again.");
    command->callback([options] { serve(*options); });
}

}  // namespace marginmerge::cli
