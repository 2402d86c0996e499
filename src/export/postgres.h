#pragma once

#include "export/target.h"

namespace marginmerge {

/// What pgvector and VectorChord share: the table, COPY's text form and the vector literals.
namespace postgres {

/// pages.copy: position, id, metadata, vectors; read by COPY ... FROM.
std::unique_ptr<PageWriter> copy_file(const std::filesystem::path& path);
/// "ARRAY['[…]','[…]']::vector(d)[]"
std::string query_literal(ConstMatrix query);
/// CREATE TABLE with its extension.
std::string table_sql(const ExportPlan& plan, std::string_view extension);
std::string copy_sql(const ExportPlan& plan);

}  // namespace postgres

}  // namespace marginmerge
