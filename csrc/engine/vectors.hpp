// Products of chosen rows with a vector, and sums of chosen rows. Rows are padded with zeros to whole lanes, so that no
// loop has a rest.
#pragma once

#include <cstdint>
#include <cstring>

#include "../clones.hpp"

namespace prunus::engine {

constexpr std::int64_t lanes = 8;

inline std::int64_t padded(std::int64_t columns) { return (columns + lanes - 1) / lanes * lanes; }

// As many numbers as there are lanes. Compilers keep them in vector registers, unlike arrays, of which they do so only
// in simple loops.
template <class Real>
struct PackOf {
#if defined(__GNUC__)
    typedef Real type __attribute__((vector_size(lanes * sizeof(Real))));
#else
    struct type {
        Real value[lanes];
        Real operator[](std::int64_t l) const { return value[l]; }
        type& operator+=(const type& other) {
            for (std::int64_t l = 0; l < lanes; ++l) value[l] += other.value[l];
            return *this;
        }
        friend type operator*(const type& x, const type& y) {
            type product;
            for (std::int64_t l = 0; l < lanes; ++l) product.value[l] = x.value[l] * y.value[l];
            return product;
        }
        friend type operator*(Real factor, const type& x) {
            type product;
            for (std::int64_t l = 0; l < lanes; ++l) product.value[l] = factor * x.value[l];
            return product;
        }
    };
#endif
};

template <class Real>
using Pack = typename PackOf<Real>::type;

// Packs are passed by reference: how they are passed by value depends on the instruction set.
template <class Real>
PRUNUS_INLINE void load(const Real* from, Pack<Real>& to) {
    std::memcpy(&to, from, sizeof to);
}

template <class Real>
PRUNUS_INLINE Real sum_of(const Pack<Real>& pack) {
    return ((pack[0] + pack[4]) + (pack[2] + pack[6])) + ((pack[1] + pack[5]) + (pack[3] + pack[7]));
}

// Rows of the same padded width. Each begins `stride` numbers after the one before.
template <class Real>
struct Matrix {
    const Real* data;
    std::int64_t width, stride;
    const Real* row(std::int64_t i) const { return data + i * stride; }

    // The first columns of the same rows.
    Matrix first(std::int64_t columns) const { return {data, columns, stride}; }
};

// Some rows of a matrix.
struct Chosen {
    const std::int32_t* row;
    std::int32_t count;
};

// Products of `Rows` chosen rows, from the first on, with the vector.
template <int Rows, class Real>
PRUNUS_INLINE void some_products(const Matrix<Real>& x, const std::int32_t* row, const Real* vector, Real* out) {
    const Real* of_row[Rows];
    Pack<Real> sum[Rows] = {}, part, factor;
    for (int r = 0; r < Rows; ++r) of_row[r] = x.row(row[r]);
    for (std::int64_t j = 0; j < x.width; j += lanes) {
        load<Real>(vector + j, factor);
        for (int r = 0; r < Rows; ++r) {
            load<Real>(of_row[r] + j, part);
            sum[r] += part * factor;
        }
    }
    for (int r = 0; r < Rows; ++r) out[r] = sum_of<Real>(sum[r]);
}

template <class Real>
PRUNUS_INLINE void products_of(const Matrix<Real>& x, Chosen chosen, const Real* vector, Real* out) {
    constexpr int together = 4;
    std::int32_t k = 0;
    for (; k + together <= chosen.count; k += together) some_products<together>(x, chosen.row + k, vector, out + k);
    for (; k < chosen.count; ++k) some_products<1>(x, chosen.row + k, vector, out + k);
}

// Adds `Packs` packs of columns of the rows, from the first column on, each row multiplied by its factor.
template <int Packs, class Real>
PRUNUS_INLINE void add_columns(const Matrix<Real>& x, Chosen chosen, const Real* factor, std::int64_t first,
                               Real* out) {
    Pack<Real> sum[Packs], part;
    for (int p = 0; p < Packs; ++p) load<Real>(out + first + p * lanes, sum[p]);
    for (std::int32_t k = 0; k < chosen.count; ++k) {
        const Real *row = x.row(chosen.row[k]) + first, own = factor[k];
        for (int p = 0; p < Packs; ++p) {
            load<Real>(row + p * lanes, part);
            sum[p] += own * part;
        }
    }
    for (int p = 0; p < Packs; ++p) std::memcpy(out + first + p * lanes, &sum[p], sizeof sum[p]);
}

template <class Real>
PRUNUS_INLINE void add_rows_of(const Matrix<Real>& x, Chosen chosen, const Real* factor, Real* out) {
    std::int64_t j = 0;
    for (; j + 8 * lanes <= x.width; j += 8 * lanes) add_columns<8>(x, chosen, factor, j, out);
    for (; j + 2 * lanes <= x.width; j += 2 * lanes) add_columns<2>(x, chosen, factor, j, out);
    for (; j < x.width; j += lanes) add_columns<1>(x, chosen, factor, j, out);
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
