#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "export/plan.h"

namespace marginmerge {

class RestDialect;

/// What a target can take. Zero means no limit of its own.
struct TargetLimits {
    std::size_t dim = 0;
    std::size_t page_vectors = 0;  ///< vectors a page
    std::size_t page_floats = 0;   ///< numbers a page
    std::size_t id_bytes = 0;      ///< of a page's id
    bool empty_pages = true;       ///< takes pages without vectors
};

/// Writes the pages of an export, in order.
class PageWriter {
public:
    virtual ~PageWriter() = default;
    /// The page in the target's form; called from many threads. Empty for writers that need none.
    virtual std::string encode(const ExportPage&) const { return {}; }
    virtual void add(const ExportPage& page, std::string encoded) = 0;
    /// Finishes the files; returns their size.
    virtual std::uint64_t finish() = 0;
};

/// Small text files of an export by name; those that end in .sh are made executable.
using TextFiles = std::map<std::string, std::string>;

/// One database or file format. Stateless; the registry holds one object of each.
class ExportTarget {
public:
    virtual ~ExportTarget() = default;
    virtual std::string_view name() const = 0;
    virtual std::string_view summary() const = 0;  ///< one line for --help
    virtual TargetLimits limits() const { return {}; }
    /// Whether --ann chooses between an exact scan and the engine's own index.
    virtual bool offers_ann() const { return false; }
    /// Why norms other than 1 would be lost, for an exact scan or (`ann`) with the engine's own index; empty: they are
    /// not.
    virtual std::string_view cosine_only(bool ann) const {
        (void)ann;
        return {};
    }
    /// Files of vectors in the form the target loads fastest.
    virtual std::unique_ptr<PageWriter> open(const ExportPlan& plan, const std::filesystem::path& folder) const = 0;
    /// Settings, loader, example query and README.
    virtual TextFiles texts(const ExportPlan& plan) const = 0;
    /// How to upload over HTTP; null when the target has no REST API.
    virtual const RestDialect* rest() const { return nullptr; }
};

/// All targets, in the order of the documentation.
std::span<const ExportTarget* const> export_targets();
/// The target of that name; Error(invalid_argument) lists the names there are.
const ExportTarget& export_target(std::string_view name);

// One function per target, defined in a file of its name.
const ExportTarget& clickhouse_target();
const ExportTarget& elasticsearch_target();
const ExportTarget& lancedb_target();
const ExportTarget& milvus_target();
const ExportTarget& opensearch_target();
const ExportTarget& parquet_target();
const ExportTarget& pgvector_target();
const ExportTarget& qdrant_target();
const ExportTarget& vectorchord_target();
const ExportTarget& vespa_target();
const ExportTarget& weaviate_target();

}  // namespace marginmerge
