#pragma once

#include <span>
#include <string>
#include <string_view>

#include "export/plan.h"
#include "marginmerge/core/matrix.h"

namespace marginmerge {

/// The number in the fewest digits that read back as the same float.
void append_number(std::string& out, float value);
/// "[1,0.5,…]"
void append_row(std::string& out, std::span<const float> row);
/// "[[…],[…]]": JSON, and an array literal in ClickHouse and DuckDB.
void append_rows(std::string& out, ConstMatrix rows);
std::string rows_text(ConstMatrix rows);

/// A JSON string with its quotes.
std::string json_text(std::string_view text);
/// JSON texts as one array.
std::string json_list(std::span<const std::string> elements);
/// An SQL string literal with its quotes.
std::string sql_text(std::string_view text);

/// A UUID that depends on the page's id only (RFC 9562 version 8, from its SHA-256), so that a second export
/// of the same page replaces the first.
std::string page_uuid(std::string_view id);

/// The name with its first letter in upper case.
std::string capitalised(std::string name);

/// Replaces every {{key}} of a template by its value.
std::string fill(std::string_view text, std::initializer_list<std::pair<std::string_view, std::string>> values);

/// README.md of an export: what it is, how to load it, how to ask, and what to expect.
struct Readme {
    std::string title;   ///< name of the engine as its makers write it
    std::string load;    ///< shell lines
    std::string query;   ///< shell lines
    std::string notes;   ///< markdown
    bool tried = false;  ///< whether the project's tests load exports into this engine
};
std::string readme_text(const ExportPlan& plan, const Readme& readme);

/// expected.tsv: rank, id and score of our own answer to the example query.
std::string expected_text(const ExportPlan& plan);

}  // namespace marginmerge
