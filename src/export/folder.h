#pragma once

#include <filesystem>
#include <string>

#include "export/target.h"

namespace marginmerge {

/// A folder that appears whole or not at all: filled beside its final name, then renamed. An earlier export of
/// the same name is replaced at that instant; any other folder with something in it is refused.
class OutputFolder {
public:
    explicit OutputFolder(const std::filesystem::path& final_path);
    ~OutputFolder();
    OutputFolder(const OutputFolder&) = delete;
    OutputFolder& operator=(const OutputFolder&) = delete;

    const std::filesystem::path& path() const { return temporary_; }
    void write(const TextFiles& files) const;
    void commit();

private:
    std::filesystem::path final_;
    std::filesystem::path temporary_;
    bool committed_ = false;
};

/// The file by which an export is known again.
inline constexpr const char* export_marker = "export.json";

}  // namespace marginmerge
