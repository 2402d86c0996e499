#include "encode/projection.h"

#include <Eigen/Eigenvalues>
#include <algorithm>

#include "core/fail.h"
#include "io/safetensors.h"
#include "kernels/products.h"

namespace marginmerge {

namespace {
constexpr const char* schema = "marginmerge.projection";
using RowMatrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
}  // namespace

Matrix Projection::apply(ConstMatrix rows) const {
    if (rows.cols != components.cols())
        fail(ErrorCode::corrupt, "projection: expected {} dimensions, found {}", components.cols(), rows.cols);
    Matrix centred(rows);
    for (std::size_t i = 0; i < rows.rows && !mean.empty(); ++i) {
        for (std::size_t j = 0; j < rows.cols; ++j) centred(i, j) -= mean[j];
    }
    Matrix out(rows.rows, components.rows());
    product(centred, components, out);
    return out;
}

Projection read_projection(const std::filesystem::path& path) {
    const SafetensorsFile file(path);
    const TensorInfo& info = file.require("components", DType::f32, 2);
    const auto values = file.require_span<float>("components", DType::f32, 2);
    Projection p;
    p.components = Matrix(ConstMatrix{values.data(), info.shape[0], info.shape[1]});
    if (p.components.empty()) fail(ErrorCode::corrupt, "{}: components: expected rows, found none", path.string());
    if (file.find("mean") != nullptr) {
        const auto mean = file.require_span<float>("mean", DType::f32, 1);
        if (mean.size() != p.components.cols())
            fail(ErrorCode::corrupt, "{}: mean: expected {} entries, found {}", path.string(), p.components.cols(),
                 mean.size());
        p.mean.assign(mean.begin(), mean.end());
    }
    return p;
}

void write_projection(const std::filesystem::path& path, const Projection& p) {
    SafetensorsWriter writer(path, {{"schema", schema}, {"version", "1"}});
    writer.declare("components", DType::f32, {p.components.rows(), p.components.cols()});
    if (!p.mean.empty()) writer.declare("mean", DType::f32, {p.mean.size()});
    writer.write("components", 0, p.components.flat());
    if (!p.mean.empty()) writer.write("mean", 0, std::span<const float>(p.mean));
    writer.commit();
}

void PcaFitter::add(ConstMatrix rows) {
    if (rows.rows == 0) return;
    const Eigen::Map<const RowMatrix> x(rows.data, static_cast<Eigen::Index>(rows.rows),
                                        static_cast<Eigen::Index>(rows.cols));
    const RowMatrix part = x.transpose() * x;
    for (std::size_t i = 0; i < moment_.size(); ++i) moment_[i] += part.data()[i];
}

Projection PcaFitter::fit(std::size_t count, double* kept) const {
    if (count == 0 || count > dim_) fail(ErrorCode::invalid_argument, "--pca: expected 1 to {}, found {}", dim_, count);
    const auto d = static_cast<Eigen::Index>(dim_);
    const Eigen::Map<const Eigen::MatrixXd> moment(moment_.data(), d, d);
    const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(moment);
    Projection p;
    p.components = Matrix(count, dim_);
    double sum = 0;
    for (std::size_t k = 0; k < count; ++k) {
        const Eigen::Index column = d - 1 - static_cast<Eigen::Index>(k);  // eigenvalues ascend
        Eigen::VectorXd v = solver.eigenvectors().col(column);
        Eigen::Index largest = 0;
        v.cwiseAbs().maxCoeff(&largest);
        if (v[largest] < 0) v = -v;  // a sign of its own, so that the file is the same every time
        for (std::size_t j = 0; j < dim_; ++j) p.components(k, j) = static_cast<float>(v[static_cast<Eigen::Index>(j)]);
        sum += solver.eigenvalues()[column];
    }
    if (kept != nullptr) *kept = moment.trace() > 0 ? sum / moment.trace() : 0;
    return p;
}

}  // namespace marginmerge
