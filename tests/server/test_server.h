#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>

#include "core/random.h"
#include "http_server.h"
#include "io/multi_vector_file.h"
#include "kernels/products.h"
#include "marginmerge/index/index_writer.h"
#include "service.h"
#include "support/temporary_directory.h"

namespace marginmerge::test {

inline Matrix random_rows(std::size_t rows, std::size_t dim, std::uint64_t seed) {
    Random random(seed);
    Matrix m(rows, dim);
    for (float& x : m.flat()) x = static_cast<float>(random.normal());
    normalise_rows(m);
    return m;
}

/// A corpus in files: 12 pages of 4x4 patches compressed to 4 vectors each (owner = patch / 4), its
/// full vectors, three queries, an index folder with metadata, images and texts for some pages.
struct Corpus {
    static constexpr std::size_t pages = 12, patches = 16, kept = 4, dim = 16;
    TemporaryDirectory directory;

    Corpus() {
        MultiVectorBuilder full(dim);
        MultiVectorBuilder queries(dim);
        std::vector<std::string> metadata;
        for (std::size_t i = 0; i < pages; ++i) {
            full.add("page-" + std::to_string(i), random_rows(patches, dim, 100 + i), {4, 4});
            metadata.push_back(std::string("{\"title\": \"Page number ").append(std::to_string(i)) + "\", \"year\": " +
                               std::to_string(2010 + i) + ", \"language\": \"" + (i % 3 == 0 ? "de" : "en") + "\"}");
        }
        for (std::size_t i = 0; i < 3; ++i) queries.add("q" + std::to_string(i), random_rows(5, dim, 900 + i));
        const MultiVectorSet all = full.finish();
        const MultiVectorSet asked = queries.finish();
        write_multi_vectors(directory / "full.safetensors", all, ScalarType::f32);
        write_multi_vectors(directory / "queries.safetensors", asked, ScalarType::f32);
        const MultiVectorSet small = compressed(all, kept);
        write_multi_vectors(directory / "small.safetensors", small, ScalarType::f32);
        AddOptions options;
        options.code = VectorCode::f32;
        IndexWriter(directory / "index").add(small, metadata, options);
        std::filesystem::create_directory(directory / "assets");
        write_text_file(directory / "assets/page-0.txt", "words of page zero");
        write_text_file(directory / "assets/page-1.svg", "<svg xmlns=\"http://www.w3.org/2000/svg\"/>");
        write_text_file(directory / "secret.txt", "not for you");
    }

    /// Means of consecutive patches, `kept` for each page.
    static MultiVectorSet compressed(const MultiVectorSet& all, std::size_t kept, bool with_grid = true) {
        struct Storage {
            Matrix vectors;
            std::vector<std::int64_t> offsets{0}, source_offsets{0};
            std::vector<std::int32_t> owner, grid;
        };
        auto s = std::make_shared<Storage>();
        s->vectors = Matrix(all.size() * kept, all.dim());
        MultiVectorParts parts;
        const auto* values = static_cast<const float*>(all.all_vectors().data);
        for (std::size_t i = 0; i < all.size(); ++i) {
            const std::size_t n = all.vectors_of(i);
            for (std::size_t p = 0; p < n; ++p) {
                const std::size_t r = p * kept / n;
                s->owner.push_back(static_cast<std::int32_t>(r));
                for (std::size_t j = 0; j < all.dim(); ++j)
                    s->vectors(i * kept + r, j) += values[(i * n + p) * all.dim() + j];
            }
            s->offsets.push_back(static_cast<std::int64_t>((i + 1) * kept));
            s->source_offsets.push_back(static_cast<std::int64_t>((i + 1) * n));
            s->grid.insert(s->grid.end(), {4, 4});
            parts.ids.push_back(all.id(i));
        }
        normalise_rows(s->vectors);
        parts.vectors = ConstMatrix(s->vectors.view());
        parts.offsets = s->offsets;
        parts.source_offsets = s->source_offsets;
        parts.owner = s->owner;
        if (with_grid) parts.grid = s->grid;
        parts.storage = s;
        return MultiVectorSet(std::move(parts), "compressed");
    }

    server::ServiceOptions options() const {
        server::ServiceOptions o;
        o.sources.index = directory / "index";
        o.sources.full = directory / "full.safetensors";
        o.sources.queries = directory / "queries.safetensors";
        o.assets = directory / "assets";
        o.poll_seconds = 0;
        return o;
    }
};

/// A running server on a free loopback port.
struct RunningServer {
    server::Service service;
    server::HttpServer http;
    int port;
    std::thread thread;

    explicit RunningServer(server::ServiceOptions options, server::HttpOptions http_options = {})
        : service(std::move(options)),
          http(service, with_free_port(http_options)),
          port(http.bind()),
          thread([this] { http.run(); }) {}
    ~RunningServer() { stop(); }
    void stop() {
        if (!thread.joinable()) return;
        service.begin_shutdown();
        http.stop();
        thread.join();
    }
    static server::HttpOptions with_free_port(server::HttpOptions o) {
        o.port = 0;
        return o;
    }
};

}  // namespace marginmerge::test
