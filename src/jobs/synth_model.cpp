#include "jobs/synth_model.h"

#include <algorithm>
#include <cmath>

#include "core/random.h"
#include "kernels/products.h"

namespace marginmerge {

namespace {

// Streams of the seed, so that pages, queries and topics are independent.
constexpr std::uint64_t topic_stream = 1, page_stream = 2, grid_stream = 3, query_stream = 4;

Random stream(const SynthModel& m, std::uint64_t which, std::uint64_t number) {
    return Random(mix_seed(mix_seed(m.seed, which), number));
}

// A random direction; its norm is close to 1.
void direction(Random& random, std::span<float> out) {
    const double scale = 1.0 / std::sqrt(static_cast<double>(out.size()));
    for (float& x : out) x = static_cast<float>(random.normal() * scale);
}

// Topics are used unequally, as words are: topic t about 1/(t+2) as often.
std::size_t popular(Random& random, std::size_t count) {
    const double u = random.uniform();
    const double span = std::log(static_cast<double>(count + 1) / 2.0 + 1.0);
    return std::min(count - 1, static_cast<std::size_t>(2.0 * (std::exp(u * span) - 1.0)));
}

void draw_regions(const SynthModel& m, Random& random, SynthPage& page) {
    page.regions = Matrix(m.regions, m.dim);
    std::vector<float> own(m.dim);
    const auto topic_share = static_cast<float>(std::sqrt(m.shared));
    const auto own_share = static_cast<float>(std::sqrt(1.0 - m.shared));
    for (std::size_t r = 0; r < m.regions; ++r) {
        const float* topic = m.topics.row(popular(random, m.topics.rows()));
        direction(random, own);
        for (std::size_t j = 0; j < m.dim; ++j) page.regions(r, j) = topic_share * topic[j] + own_share * own[j];
    }
    normalise_rows(page.regions);
}

// Regions are the cells around random places of the page; some patches are background.
void place_regions(const SynthModel& m, Random& random, SynthPage& page) {
    std::vector<double> x(m.regions), y(m.regions);
    for (std::size_t r = 0; r < m.regions; ++r) x[r] = random.uniform(), y[r] = random.uniform();
    const auto columns = static_cast<std::size_t>(page.grid.columns);
    const auto rows = static_cast<std::size_t>(page.grid.rows);
    page.region.resize(columns * rows);
    for (std::size_t i = 0; i < page.region.size(); ++i) {
        const std::size_t column = i % columns, row = i / columns;
        const double px = (static_cast<double>(column) + 0.5) / static_cast<double>(columns);
        const double py = (static_cast<double>(row) + 0.5) / static_cast<double>(rows);
        std::size_t best = 0;
        double least = 1e9;
        for (std::size_t r = 0; r < m.regions; ++r) {
            const double gap = (px - x[r]) * (px - x[r]) + (py - y[r]) * (py - y[r]);
            if (gap < least) least = gap, best = r;
        }
        page.region[i] = random.uniform() < m.background ? -1 : static_cast<std::int32_t>(best);
    }
}

}  // namespace

void SynthModel::draw_topics(std::size_t count) {
    topics = Matrix(count, dim);
    for (std::size_t t = 0; t < count; ++t) {
        Random random = stream(*this, topic_stream, t);
        direction(random, topics.view().row_span(t));
    }
    normalise_rows(topics);
}

PatchGrid synth_grid(const SynthModel& m, std::size_t page) {
    Random random = stream(m, grid_stream, page);
    const double n = static_cast<double>(m.vectors) * (0.85 + 0.3 * random.uniform());
    const double rows = std::max(1.0, std::round(std::sqrt(n * (0.7 + 0.7 * random.uniform()))));
    const double columns = std::max(1.0, std::round(n / rows));
    return {static_cast<std::int32_t>(columns), static_cast<std::int32_t>(rows)};
}

SynthPage synth_page(const SynthModel& m, std::size_t number) {
    SynthPage page;
    page.grid = synth_grid(m, number);
    Random random = stream(m, page_stream, number);
    draw_regions(m, random, page);
    place_regions(m, random, page);
    page.vectors = Matrix(page.region.size(), m.dim);
    std::vector<float> own(m.dim);
    const auto content = static_cast<float>(std::sqrt(1.0 - m.patch_noise));
    const auto noise = static_cast<float>(std::sqrt(m.patch_noise));
    for (std::size_t i = 0; i < page.region.size(); ++i) {
        direction(random, own);
        // The most popular topic doubles as the look of an empty patch, the same on every page.
        const float* from =
            page.region[i] < 0 ? m.topics.row(0) : page.regions.row(static_cast<std::size_t>(page.region[i]));
        for (std::size_t j = 0; j < m.dim; ++j) page.vectors(i, j) = content * from[j] + noise * own[j];
    }
    normalise_rows(page.vectors);
    return page;
}

Matrix synth_query(const SynthModel& m, const SynthPage& page, std::size_t number) {
    Random random = stream(m, query_stream, number);
    const std::size_t tokens = 10 + random.below(12);
    std::vector<std::size_t> seen;  // patches that show something
    for (std::size_t i = 0; i < page.region.size(); ++i)
        if (page.region[i] >= 0) seen.push_back(i);
    if (seen.empty()) seen.push_back(0);
    // A few places of the page are what the query is about.
    std::vector<std::size_t> about(1 + random.below(3));
    for (auto& a : about) a = seen[random.below(seen.size())];
    Matrix query(tokens, m.dim);
    std::vector<float> noise(m.dim);
    for (std::size_t t = 0; t < tokens; ++t) {
        const bool distractor = random.uniform() < 0.3;
        direction(random, noise);
        const std::size_t patch = about[random.below(about.size())];
        const float* topic = m.topics.row(popular(random, m.topics.rows()));
        const float* region =
            page.region[patch] < 0 ? topic : page.regions.row(static_cast<std::size_t>(page.region[patch]));
        for (std::size_t j = 0; j < m.dim; ++j) {
            const float content = distractor ? topic[j] : 0.6f * region[j] + 0.4f * page.vectors(patch, j);
            query(t, j) = content + static_cast<float>(m.token_noise) * noise[j];
        }
    }
    normalise_rows(query);
    return query;
}

}  // namespace marginmerge
