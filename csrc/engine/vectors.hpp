// Products of chosen rows with a vector, and sums of chosen rows. Rows are padded with zeros to whole lanes, so that no
// loop has a rest.
#pragma once

#include <cstdint>

#include "../clones.hpp"

namespace prunus::engine {

constexpr std::int64_t lanes = 8;

inline std::int64_t padded(std::int64_t columns) { return (columns + lanes - 1) / lanes * lanes; }

// Rows of the same padded width, one after another.
template <class Real>
struct Matrix {
    const Real* data;
    std::int64_t width;
    const Real* row(std::int64_t i) const { return data + i * width; }
};

// Some rows of a matrix.
struct Chosen {
    const std::int32_t* row;
    std::int32_t count;
};

template <class Real>
PRUNUS_INLINE void products_of(const Matrix<Real>& x, Chosen chosen, const Real* vector, Real* out) {
    for (std::int32_t k = 0; k < chosen.count; ++k) {
        const Real* row = x.row(chosen.row[k]);
        Real sum[lanes] = {};
        for (std::int64_t j = 0; j < x.width; j += lanes) {
            for (std::int64_t l = 0; l < lanes; ++l) sum[l] += row[j + l] * vector[j + l];
        }
        for (std::int64_t half = lanes / 2; half > 0; half /= 2) {
            for (std::int64_t l = 0; l < half; ++l) sum[l] += sum[l + half];
        }
        out[k] = sum[0];
    }
}

// Adds columns [first, first + Width) of the rows, each multiplied by its factor.
template <std::int64_t Width, class Real>
PRUNUS_INLINE void add_columns(const Matrix<Real>& x, Chosen chosen, const Real* factor, std::int64_t first,
                               Real* out) {
    Real sum[Width];
    for (std::int64_t l = 0; l < Width; ++l) sum[l] = out[first + l];
    for (std::int32_t k = 0; k < chosen.count; ++k) {
        const Real* row = x.row(chosen.row[k]) + first;
        for (std::int64_t l = 0; l < Width; ++l) sum[l] += factor[k] * row[l];
    }
    for (std::int64_t l = 0; l < Width; ++l) out[first + l] = sum[l];
}

template <class Real>
PRUNUS_INLINE void add_rows_of(const Matrix<Real>& x, Chosen chosen, const Real* factor, Real* out) {
    constexpr std::int64_t wide = 4 * lanes;
    std::int64_t j = 0;
    for (; j + wide <= x.width; j += wide) add_columns<wide>(x, chosen, factor, j, out);
    for (; j < x.width; j += lanes) add_columns<lanes>(x, chosen, factor, j, out);
}

// out[k] = the product of the k-th chosen row with the vector.
PRUNUS_FUSED_CLONES inline void products(const Matrix<float>& x, Chosen chosen, const float* vector, float* out) {
    products_of(x, chosen, vector, out);
}
inline void products(const Matrix<double>& x, Chosen chosen, const double* vector, double* out) {
    products_of(x, chosen, vector, out);
}

// Adds the chosen rows, each multiplied by its factor, to out.
PRUNUS_FUSED_CLONES inline void add_rows(const Matrix<float>& x, Chosen chosen, const float* factor, float* out) {
    add_rows_of(x, chosen, factor, out);
}
inline void add_rows(const Matrix<double>& x, Chosen chosen, const double* factor, double* out) {
    add_rows_of(x, chosen, factor, out);
}

}  // namespace prunus::engine
