#include "marginmerge/jobs/compress_pages.h"

#include <algorithm>
#include <mutex>

#include "core/fail.h"
#include "core/parallel.h"
#include "jobs/page_worker.h"
#include "jobs/recipe_json.h"
#include "kernels/convert.h"

namespace marginmerge {

namespace {

// What the result lives in.
struct Storage {
    std::vector<std::byte> vectors;
    std::vector<std::int64_t> offsets{0}, source_offsets{0};
    std::vector<std::int32_t> owner, grid;
};

std::size_t common_dimension(std::span<const VectorsView> pages) {
    std::size_t dim = 0;
    for (std::size_t p = 0; p < pages.size(); ++p) {
        if (pages[p].rows == 0) continue;
        if (dim == 0) dim = pages[p].dim;
        if (pages[p].dim != dim)
            fail(ErrorCode::invalid_argument, "page {}: expected {} dimensions like the pages before, found {}", p, dim,
                 pages[p].dim);
    }
    return dim == 0 && !pages.empty() ? pages.front().dim : dim;
}

void check_count(std::size_t found, std::size_t pages, const char* what) {
    if (found != 0 && found != pages)
        fail(ErrorCode::invalid_argument, "{}: expected {} of them, one a page, found {}", what, pages, found);
}

}  // namespace

CompressPagesReport compress_pages(std::span<const VectorsView> pages, const Model* model,
                                   const CompressPagesOptions& options) {
    check_count(options.ids.size(), pages.size(), "ids");
    check_count(options.grids.size(), pages.size(), "grids");
    const std::size_t dim = common_dimension(pages);
    const Model none;
    const Model& used = model != nullptr ? *model : none;
    check_model_dimension(used, dim, "model");
    CompressPagesReport report;

    auto s = std::make_shared<Storage>();
    for (const VectorsView& page : pages)
        s->source_offsets.push_back(s->source_offsets.back() + static_cast<std::int64_t>(page.rows));
    report.recipe = resolve_recipe(options.recipe, model, s->source_offsets);
    for (const VectorsView& page : pages) {
        const std::size_t kept = report.recipe.budget.count(page.rows);
        s->offsets.push_back(s->offsets.back() + static_cast<std::int64_t>(kept));
    }
    const std::size_t row_bytes = dim * scalar_size(options.type);
    s->vectors.resize(static_cast<std::size_t>(s->offsets.back()) * row_bytes);
    s->owner.resize(static_cast<std::size_t>(s->source_offsets.back()));
    for (const PatchGrid& grid : options.grids) s->grid.insert(s->grid.end(), {grid.columns, grid.rows});

    std::vector<PageWorker> workers(resolve_threads(options.threads));
    std::mutex mutex;
    std::size_t done = 0;
    parallel_for_workers(pages.size(), options.threads, [&](std::size_t p, std::size_t worker) {
        const PatchGrid grid = options.grids.empty() ? PatchGrid() : options.grids[p];
        const std::string id = options.ids.empty() ? std::to_string(p) : options.ids[p];
        const CompressedPage& page = workers[worker].compress(pages[p], grid, p, used, report.recipe, "compress", id);
        from_float(page.representatives.flat(), options.type,
                   s->vectors.data() + static_cast<std::size_t>(s->offsets[p]) * row_bytes);
        std::ranges::copy(page.owner, s->owner.begin() + s->source_offsets[p]);
        if (!options.progress) return;
        const std::lock_guard lock(mutex);
        options.progress({"compress", "pages", ++done, pages.size(), ""});
    });
    std::size_t odd = 0;
    for (const PageWorker& worker : workers) odd += worker.odd_norms();
    if (odd > 0) report.notes.push_back(odd_norms_note(odd));

    MultiVectorParts parts;
    parts.vectors = {s->vectors.data(), options.type, static_cast<std::size_t>(s->offsets.back()), dim};
    parts.offsets = s->offsets;
    parts.source_offsets = s->source_offsets;
    parts.owner = s->owner;
    parts.grid = s->grid;
    parts.ids = options.ids;
    parts.metadata["recipe"] = recipe_to_json(report.recipe).dump();
    parts.storage = s;
    report.pages = MultiVectorSet(std::move(parts), "compress");
    return report;
}

CompressPagesReport compress_pages(const MultiVectorSet& set, const Model* model, const CompressPagesOptions& options) {
    if (set.has_owner())
        fail(ErrorCode::invalid_argument, "documents: are already compressed; compress the original vectors");
    std::vector<VectorsView> pages(set.size());
    CompressPagesOptions own = options;
    for (std::size_t p = 0; p < set.size(); ++p) pages[p] = set.vectors(p);
    if (own.ids.empty())
        for (std::size_t p = 0; p < set.size(); ++p) own.ids.push_back(set.id(p));
    if (own.grids.empty() && set.has_grid())
        for (std::size_t p = 0; p < set.size(); ++p) own.grids.push_back(set.grid(p));
    return compress_pages(pages, model, own);
}

}  // namespace marginmerge
