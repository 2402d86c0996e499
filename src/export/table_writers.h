#pragma once

#include "export/target.h"
#include "io/table_row.h"

namespace marginmerge {

/// A PageWriter over one of io's table writers.
template <class Writer>
class TablePageWriter : public PageWriter {
public:
    TablePageWriter(const std::filesystem::path& path, std::size_t dim) : writer_(path, dim) {}
    void add(const ExportPage& page, std::string) override {
        writer_.add({static_cast<std::int64_t>(page.position), page.id, page.metadata, page.vectors.view()});
    }
    std::uint64_t finish() override { return writer_.commit(); }

private:
    Writer writer_;
};

}  // namespace marginmerge
