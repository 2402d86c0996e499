#include <fmt/core.h>

#include <algorithm>

#include "export/rest.h"
#include "io/atomic_file.h"

namespace marginmerge {

namespace {

/// Collects pages until a request is full.
class Batches : public PageWriter {
public:
    Batches(const RestDialect& dialect, const ExportPlan& plan) : dialect_(dialect), plan_(plan) {}

    std::string encode(const ExportPage& page) const override { return dialect_.encode(plan_, page); }

    void add(const ExportPage& page, std::string encoded) override {
        const std::size_t size = std::max(encoded.size(), page.vectors.size() * sizeof(float));
        if (!pages_.empty() && bytes_ + size > plan_.batch_bytes) flush();
        bytes_ += size;
        pages_.push_back(page);
        encoded_.push_back(std::move(encoded));
    }

    std::uint64_t finish() override {
        if (!pages_.empty()) flush();
        close();
        return total_;
    }

protected:
    virtual void write(const std::string& body) = 0;
    virtual void close() {}

private:
    void flush() {
        for (const HttpRequest& request : dialect_.requests(plan_, pages_, encoded_, {})) {
            write(request.body);
            total_ += request.body.size();
        }
        pages_.clear();
        encoded_.clear();
        bytes_ = 0;
    }

    const RestDialect& dialect_;
    const ExportPlan& plan_;
    std::vector<ExportPage> pages_;
    std::vector<std::string> encoded_;
    std::size_t bytes_ = 0;
    std::uint64_t total_ = 0;
};

class BatchFiles : public Batches {
public:
    BatchFiles(const RestDialect& dialect, const ExportPlan& plan, const std::filesystem::path& folder,
               std::string prefix, std::string extension)
        : Batches(dialect, plan), folder_(folder), prefix_(std::move(prefix)), extension_(std::move(extension)) {
        std::filesystem::create_directories(folder_);
    }

protected:
    void write(const std::string& body) override {
        write_text_file(folder_ / fmt::format("{}-{:05}.{}", prefix_, count_++, extension_), body);
    }

private:
    std::filesystem::path folder_;
    std::string prefix_, extension_;
    std::size_t count_ = 0;
};

class JoinedFile : public Batches {
public:
    JoinedFile(const RestDialect& dialect, const ExportPlan& plan, const std::filesystem::path& path)
        : Batches(dialect, plan), file_(path) {}

protected:
    void write(const std::string& body) override { file_.append(body); }
    void close() override { file_.commit(); }

private:
    AtomicFile file_;
};

}  // namespace

std::unique_ptr<PageWriter> batch_files(const RestDialect& dialect, const ExportPlan& plan,
                                        const std::filesystem::path& folder, const std::string& prefix,
                                        const std::string& extension) {
    return std::make_unique<BatchFiles>(dialect, plan, folder, prefix, extension);
}

std::unique_ptr<PageWriter> joined_file(const RestDialect& dialect, const ExportPlan& plan,
                                        const std::filesystem::path& path) {
    return std::make_unique<JoinedFile>(dialect, plan, path);
}

}  // namespace marginmerge
