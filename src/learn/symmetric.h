#pragma once

#include <functional>

#include <Eigen/Dense>

#include "marginmerge/core/matrix.h"

namespace marginmerge {

using Dense = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// f applied to the eigenvalues of a symmetric matrix.
inline Dense symmetric_function(const Dense& c, const std::function<double(double)>& f) {
    const Eigen::SelfAdjointEigenSolver<Dense> solver(c);
    Eigen::VectorXd values = solver.eigenvalues();
    for (Eigen::Index i = 0; i < values.size(); ++i) values[i] = f(values[i]);
    return solver.eigenvectors() * values.asDiagonal() * solver.eigenvectors().transpose();
}

/// In its columns.
inline Dense eigenvectors_of(const Dense& c) { return Eigen::SelfAdjointEigenSolver<Dense>(c).eigenvectors(); }

inline Dense to_dense(ConstMatrix m) {
    return Eigen::Map<const Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>(
               m.data, static_cast<Eigen::Index>(m.rows), static_cast<Eigen::Index>(m.cols))
        .cast<double>();
}

inline Matrix to_matrix(const Dense& m) {
    Matrix out(static_cast<std::size_t>(m.rows()), static_cast<std::size_t>(m.cols()));
    for (Eigen::Index i = 0; i < m.rows(); ++i) {
        for (Eigen::Index j = 0; j < m.cols(); ++j) {
            out(static_cast<std::size_t>(i), static_cast<std::size_t>(j)) = static_cast<float>(m(i, j));
        }
    }
    return out;
}

}  // namespace marginmerge
