#include <algorithm>
#include <cstdio>

#include "core/clock.h"
#include "core/fail.h"
#include "io/multi_vector_file.h"
#include "jobs/compressed_file.h"
#include "jobs/recipe_json.h"
#include "kernels/maxsim.h"
#include "marginmerge/jobs/compress.h"

namespace marginmerge {

namespace {

struct Part {
    std::string path;
    MultiVectorSet set;
    Shard shard;
};

Part open_part(const std::filesystem::path& path) {
    Part part{path.string(), read_multi_vectors(path), {}};
    const auto found = part.set.metadata().find("shard");
    unsigned long index = 0, count = 0;
    if (found == part.set.metadata().end() || std::sscanf(found->second.c_str(), "%lu/%lu", &index, &count) != 2 ||
        index < 1 || index > count || !part.set.has_owner())
        fail(ErrorCode::invalid_argument, "{}: expected a shard written by 'compress --shard I/N'", part.path);
    part.shard = {index, count};
    return part;
}

std::map<std::string, std::string> common_metadata(const Part& part) {
    auto metadata = part.set.metadata();
    metadata.erase("shard");
    return metadata;
}

void check_parts(const std::vector<Part>& parts) {
    const Part& first = parts.front();
    if (parts.size() != first.shard.count)
        fail(ErrorCode::invalid_argument, "expected all {} shards, found {}", first.shard.count, parts.size());
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const Part& part = parts[i];
        if (part.shard.count != first.shard.count || part.shard.index != i + 1)
            fail(ErrorCode::invalid_argument, "{}: expected shard {}/{}, found {}/{}", part.path, i + 1,
                 first.shard.count, part.shard.index, part.shard.count);
        if (common_metadata(part) != common_metadata(first) || part.set.dim() != first.set.dim() ||
            part.set.type() != first.set.type())
            fail(ErrorCode::invalid_argument, "{}: expected the same source, model and recipe as {}", part.path,
                 first.path);
    }
}

}  // namespace

CompressReport join_shards(const std::vector<std::filesystem::path>& shards, const std::filesystem::path& output) {
    const auto started = Clock::now();
    if (shards.empty()) fail(ErrorCode::invalid_argument, "expected at least one shard to join");
    std::vector<Part> parts;
    parts.reserve(shards.size());
    for (const auto& path : shards) parts.push_back(open_part(path));
    std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.shard.index < b.shard.index; });
    check_parts(parts);

    CompressedLayout layout;
    layout.dim = parts.front().set.dim();
    layout.type = parts.front().set.type();
    layout.metadata = common_metadata(parts.front());
    for (const Part& part : parts)
        for (std::size_t p = 0; p < part.set.size(); ++p) {
            layout.offsets.push_back(layout.offsets.back() + static_cast<std::int64_t>(part.set.vectors_of(p)));
            layout.source_offsets.push_back(layout.source_offsets.back() +
                                            static_cast<std::int64_t>(part.set.source_vectors_of(p)));
            layout.add_id(part.set.id(p));
            if (part.set.has_grid())
                layout.grid.insert(layout.grid.end(), {part.set.grid(p).columns, part.set.grid(p).rows});
        }
    CompressedWriter writer(output, layout);
    std::size_t first = 0;
    for (const Part& part : parts) {
        for (std::size_t p = 0; p < part.set.size(); ++p, ++first) {
            const VectorsView v = part.set.vectors(p);
            writer.write_pages(first, {static_cast<const std::byte*>(v.data), v.bytes()},
                               std::as_bytes(part.set.owner(p)));
        }
    }
    writer.commit();

    CompressReport report;
    report.pages = layout.pages();
    report.vectors_in = static_cast<std::size_t>(layout.source_offsets.back());
    report.vectors_out = static_cast<std::size_t>(layout.offsets.back());
    report.bytes_out = report.vectors_out * layout.dim * scalar_size(layout.type);
    report.kernel = kernel_name();
    if (const auto recipe = layout.metadata.find("recipe"); recipe != layout.metadata.end())
        report.recipe = recipe_from_json(recipe->second, {}, parts.front().path);
    report.seconds = seconds_since(started);
    return report;
}

}  // namespace marginmerge
