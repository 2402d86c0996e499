#include "learn/adamw.h"

#include <algorithm>
#include <cmath>

namespace marginmerge {

double adamw_step(const AdamWOptions& o, const Gradient& gradient, AdamWState& state, Parameters& parameters) {
    const std::size_t trained = o.base_rate > 0 ? Parameters::count : Network::parameter_count;
    double squared = 0;
    for (std::size_t i = 0; i < trained; ++i) squared += static_cast<double>(gradient[i]) * gradient[i];
    const double norm = std::sqrt(squared);
    const double scale = std::min(1.0, o.clip / (norm + 1e-6));
    ++state.steps;
    const double correction1 = 1 - std::pow(o.beta1, static_cast<double>(state.steps));
    const double correction2 = 1 - std::pow(o.beta2, static_cast<double>(state.steps));
    for (std::size_t i = 0; i < trained; ++i) {
        const double g = gradient[i] * scale;
        state.first[i] = o.beta1 * state.first[i] + (1 - o.beta1) * g;
        state.second[i] = o.beta2 * state.second[i] + (1 - o.beta2) * g * g;
        const bool base = i >= Network::parameter_count;
        const double rate = base ? o.base_rate : o.learning_rate;
        double value = parameters.get(i);
        if (!base) value *= 1 - rate * o.weight_decay;
        value -= rate * (state.first[i] / correction1) / (std::sqrt(state.second[i] / correction2) + o.epsilon);
        parameters.at(i) = static_cast<float>(value);
    }
    // Temperatures and exponents of the base stay positive.
    for (float& b : parameters.base) b = std::max(b, Parameters::least_base);
    return norm;
}

}  // namespace marginmerge
