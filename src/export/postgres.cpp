#include "export/postgres.h"

#include "export/text.h"
#include "io/atomic_file.h"

namespace marginmerge::postgres {

namespace {

// COPY's text form: tabs between columns, \N for null, backslashes before what would end a column.
void append_escaped(std::string& out, std::string_view text) {
    for (const char c : text) {
        switch (c) {
            case '\\': out += "\\\\"; break;
            case '\t': out += "\\t"; break;
            case '\n': out += "\\n"; break;
            case '\r': out += "\\r"; break;
            default: out += c;
        }
    }
}

class CopyFile : public PageWriter {
public:
    explicit CopyFile(const std::filesystem::path& path) : file_(path) {}

    std::string encode(const ExportPage& page) const override {
        std::string line = std::to_string(page.position) + '\t';
        append_escaped(line, page.id);
        line += '\t';
        if (page.metadata.empty())
            line += "\\N";
        else
            append_escaped(line, page.metadata);
        line += "\t{";
        for (std::size_t i = 0; i < page.vectors.rows(); ++i) {
            line += i > 0 ? ",\"" : "\"";
            append_row(line, page.vectors.view().row_span(i));
            line += '"';
        }
        return line + "}\n";
    }
    void add(const ExportPage&, std::string encoded) override {
        file_.append(encoded);
        bytes_ += encoded.size();
    }
    std::uint64_t finish() override {
        file_.commit();
        return bytes_;
    }

private:
    AtomicFile file_;
    std::uint64_t bytes_ = 0;
};

}  // namespace

std::unique_ptr<PageWriter> copy_file(const std::filesystem::path& path) { return std::make_unique<CopyFile>(path); }

std::string query_literal(ConstMatrix query) {
    std::string text = "ARRAY[";
    for (std::size_t i = 0; i < query.rows; ++i) {
        text += i > 0 ? ",'" : "'";
        append_row(text, query.row_span(i));
        text += "'";
    }
    return text + "]::vector(" + std::to_string(query.cols) + ")[]";
}

std::string table_sql(const ExportPlan& plan, std::string_view extension) {
    return fill(
        "CREATE EXTENSION IF NOT EXISTS {{extension}};\n\n"
        "CREATE TABLE {{name}} (\n"
        "    position bigint PRIMARY KEY,\n"
        "    id text NOT NULL UNIQUE,\n"
        "    metadata jsonb,\n"
        "    vectors vector({{dim}})[] NOT NULL\n"
        ");\n",
        {{"extension", std::string(extension)}, {"name", plan.name}, {"dim", std::to_string(plan.dim)}});
}

std::string copy_sql(const ExportPlan& plan) {
    return "\\copy " + plan.name + " (position, id, metadata, vectors) FROM 'pages.copy'\n";
}

}  // namespace marginmerge::postgres
