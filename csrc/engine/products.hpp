// Products of matrices. The right one is packed: it is read from its begin to its end for every few rows of the left one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "../clones.hpp"
#include "../memory.hpp"
#include "vectors.hpp"

namespace prunus::engine {

constexpr int panel_packs = 2;
constexpr std::int64_t panel_width = panel_packs * lanes;

// A matrix in panels of a few packs of columns: first the first columns of all rows, then the next ones. The last panel
// is one of fewer packs if there are no more columns.
template <class Real>
struct Panels {
    const Real* data;
    std::int64_t rows, width;  // of the matrix; the width is padded
    const Real* panel(std::int64_t first) const { return data + first * rows; }
};

// Packs a matrix whose k-th row is row(k).
template <class Real, class Row>
void pack(std::int64_t rows, std::int64_t width, const Row& row, Real* out) {
    for (std::int64_t first = 0; first < width; first += panel_width) {
        const bool whole = first + panel_width <= width;
        const std::int64_t columns = whole ? panel_width : width - first;
        for (std::int64_t k = 0; k < rows; ++k, out += columns) {
            std::memcpy(out, row(k) + first, lanes * sizeof(Real));
            if (whole) std::memcpy(out + lanes, row(k) + first + lanes, lanes * sizeof(Real));
        }
    }
}

// Packs the transposed of a matrix: its j-th column is the begin of row(j). The padding is zero.
template <class Real, class Row>
void pack_transposed(std::int64_t rows, std::int64_t count, const Row& row, Real* out) {
    for (std::int64_t first = 0; first < padded(count); first += panel_width) {
        const std::int64_t columns = std::min(panel_width, padded(count) - first);
        const std::int64_t given = std::min(columns, count - first);
        const Real* from[panel_width];
        for (std::int64_t j = 0; j < given; ++j) from[j] = row(first + j);
        for (std::int64_t k = 0; k < rows; ++k, out += columns) {
            for (std::int64_t j = 0; j < given; ++j) out[j] = from[j][k];
            for (std::int64_t j = given; j < columns; ++j) out[j] = Real(0);
        }
    }
}

// The left matrix of a product: the number in row i and column k is data[i * row + k * column].
template <class Real>
struct Factor {
    const Real* data;
    std::int64_t row, column;
};

// Rows that a product is added to: those with these places, or all in their order if `place` is null.
template <class Real>
struct Target {
    Real* data;
    std::int64_t stride;
    const std::int64_t* place;
    Real* row(std::int64_t i) const { return data + (place == nullptr ? i : place[i]) * stride; }
};

// Adds the product of `Rows` rows, from row `i` on, with one panel.
template <int Rows, int Packs, class Real>
PRUNUS_INLINE void add_tile(const Factor<Real>& a, std::int64_t i, const Panels<Real>& b, std::int64_t first,
                            const Target<Real>& out) {
    const Real *of_row[Rows], *panel = b.panel(first);
    Real* to[Rows];
    Pack<Real> sum[Rows][Packs], part[Packs];
    for (int r = 0; r < Rows; ++r) {
        of_row[r] = a.data + (i + r) * a.row;
        to[r] = out.row(i + r) + first;
        for (int p = 0; p < Packs; ++p) load<Real>(to[r] + p * lanes, sum[r][p]);
    }
    const std::int64_t depth = b.rows, step = a.column;
    for (std::int64_t k = 0, at = 0; k < depth; ++k, at += step, panel += Packs * lanes) {
        for (int p = 0; p < Packs; ++p) load<Real>(panel + p * lanes, part[p]);
        for (int r = 0; r < Rows; ++r) {
            const Real factor = of_row[r][at];
            for (int p = 0; p < Packs; ++p) sum[r][p] += factor * part[p];
        }
    }
    for (int r = 0; r < Rows; ++r) {
        for (int p = 0; p < Packs; ++p) std::memcpy(to[r] + p * lanes, &sum[r][p], sizeof sum[r][p]);
    }
}

template <int Packs, class Real>
PRUNUS_INLINE void add_panel(const Factor<Real>& a, std::int64_t rows, const Panels<Real>& b, std::int64_t first,
                             const Target<Real>& out) {
    std::int64_t i = 0;
    for (; i + 6 <= rows; i += 6) add_tile<6, Packs>(a, i, b, first, out);  // twelve sums fit into sixteen registers
    for (; i + 4 <= rows; i += 4) add_tile<4, Packs>(a, i, b, first, out);
    for (; i + 2 <= rows; i += 2) add_tile<2, Packs>(a, i, b, first, out);
    for (; i < rows; ++i) add_tile<1, Packs>(a, i, b, first, out);
}

template <class Real>
PRUNUS_INLINE void add_product_of(const Factor<Real>& a, std::int64_t rows, const Panels<Real>& b,
                                  const Target<Real>& out) {
    std::int64_t first = 0;
    for (; first + panel_width <= b.width; first += panel_width) add_panel<panel_packs>(a, rows, b, first, out);
    if (first < b.width) add_panel<1>(a, rows, b, first, out);
}

// Adds the product of `rows` rows of a with b to the same rows of out.
PRUNUS_FUSED_CLONES inline void add_product(const Factor<float>& a, std::int64_t rows, const Panels<float>& b,
                                            const Target<float>& out) {
    add_product_of(a, rows, b, out);
}
PRUNUS_FUSED_CLONES inline void add_product(const Factor<double>& a, std::int64_t rows, const Panels<double>& b,
                                            const Target<double>& out) {
    add_product_of(a, rows, b, out);
}

}  // namespace prunus::engine
