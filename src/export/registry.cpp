#include <array>

#include "core/fail.h"
#include "export/target.h"

namespace marginmerge {

std::span<const ExportTarget* const> export_targets() {
    static const std::array<const ExportTarget*, 11> targets{
        &lancedb_target(),    &pgvector_target(),   &vectorchord_target(), &qdrant_target(),
        &vespa_target(),      &milvus_target(),     &weaviate_target(),    &elasticsearch_target(),
        &opensearch_target(), &clickhouse_target(), &parquet_target()};
    return targets;
}

const ExportTarget& export_target(std::string_view name) {
    std::string known;
    for (const ExportTarget* target : export_targets()) {
        if (target->name() == name) return *target;
        known += (known.empty() ? "" : ", ") + std::string(target->name());
    }
    fail(ErrorCode::invalid_argument, "--to: expected one of {}, found '{}'", known, name);
}

}  // namespace marginmerge
