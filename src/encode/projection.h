#pragma once

#include <filesystem>
#include <vector>

#include "marginmerge/core/matrix.h"

namespace marginmerge {

/// A linear map to fewer dimensions: x -> C (x - mean). components [k,d]; mean may be empty.
struct Projection {
    Matrix components;
    std::vector<float> mean;

    bool present() const { return components.rows() > 0; }
    Matrix apply(ConstMatrix rows) const;
};

Projection read_projection(const std::filesystem::path& path);
void write_projection(const std::filesystem::path& path, const Projection& projection);

/// The directions that keep the most of the vectors' inner products: the leading eigenvectors of
/// sum x x^T (no centring, so that projected inner products stay close to the original ones).
class PcaFitter {
public:
    explicit PcaFitter(std::size_t dim) : moment_(dim * dim, 0.0), dim_(dim) {}
    void add(ConstMatrix rows);
    /// `kept` receives the share of the squared norm that the projection keeps.
    Projection fit(std::size_t components, double* kept) const;

private:
    std::vector<double> moment_;
    std::size_t dim_;
};

}  // namespace marginmerge
