#pragma once

#include <array>
#include <cstdint>

#include "learn/page_pass.h"

namespace marginmerge {

struct AdamWOptions {
    double learning_rate = 3e-4;
    double weight_decay = 1e-4;  ///< decoupled; of the network only
    double beta1 = 0.9;
    double beta2 = 0.999;
    double epsilon = 1e-8;
    double clip = 1.0;     ///< of the gradient's norm over all trained parameters
    double base_rate = 0;  ///< learning rate of the base's three constants; 0 keeps them
};

/// The optimiser's memory, plain numbers so that a checkpoint can hold it.
struct AdamWState {
    std::array<double, Parameters::count> first{};
    std::array<double, Parameters::count> second{};
    std::uint64_t steps = 0;
};

/// One AdamW update with the gradient clipped to norm `clip` first. Returns the norm before clipping.
double adamw_step(const AdamWOptions& options, const Gradient& gradient, AdamWState& state, Parameters& parameters);

}  // namespace marginmerge
