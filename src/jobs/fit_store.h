#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "learn/mining.h"
#include "learn/trainer.h"

namespace marginmerge {

/// What a fit leaves on disk while it runs, so that a killed one continues: the state of each scan
/// for negatives and the last checkpoint of training. Every file carries the key of the work it
/// belongs to; one with another key is ignored, as is one that cannot be read.
class FitStore {
public:
    /// `folder` is made when the first file is written. `temporary`: removed by finish().
    FitStore(std::filesystem::path folder, bool temporary) : folder_(std::move(folder)), temporary_(temporary) {}

    std::optional<MiningState> load_mining(const std::string& key) const;
    void save_mining(const std::string& key, const MiningState& state) const;
    std::optional<TrainerState> load_training(const std::string& key) const;
    void save_training(const std::string& key, const TrainerState& state) const;
    /// The work is done: removes the checkpoint, and everything when temporary.
    void finish() const;
    bool temporary() const { return temporary_; }

private:
    std::filesystem::path mining_file(const std::string& key) const;
    std::filesystem::path training_file() const { return folder_ / "checkpoint.safetensors"; }
    void make_folder() const;

    std::filesystem::path folder_;
    bool temporary_;
};

}  // namespace marginmerge
