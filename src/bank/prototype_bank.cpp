#include "marginmerge/bank/prototype_bank.h"

#include <cmath>

namespace marginmerge {

std::vector<float> PrototypeBank::weights() const {
    std::vector<float> omega(frequencies.size());
    double sum = 0;
    for (const float f : frequencies) sum += std::sqrt(static_cast<double>(f) + 1e-8);
    for (std::size_t t = 0; t < omega.size(); ++t)
        omega[t] = static_cast<float>(std::sqrt(static_cast<double>(frequencies[t]) + 1e-8) / sum);
    return omega;
}

}  // namespace marginmerge
