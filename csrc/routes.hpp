// Routes through a tree whose node masses are known, and the leaves at the end of single paths, as prediction needs
// them. Each row is computed alone and in a fixed order, so its result does not depend on the other rows.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "descend.hpp"
#include "parallel.hpp"
#include "tree.hpp"

namespace prunus {

template <class Real>
void routes(const Samples<Real>& scores, const Real* a, int threads, Real* z) {
    const std::int64_t n_parts = number_of_parts(scores.pairs()), nodes = scores.tree.nodes();
    parallel(threads, n_parts, [&](std::int64_t p) {
        for_blocks<Real>(scores, Rows::part(scores.n, n_parts, p), nullptr, [&](Descent<Real>& descent, Rows block) {
            Real* rows = z + block.begin * nodes;
            std::memset(rows, 0, (block.end - block.begin) * nodes * sizeof(Real));
            descent.template operator()<false>(block, [&](std::int32_t t, const Arrivals<Real>& here) {
                const Real mass = a[t];
                for (std::int32_t k = 0; k < here.count; ++k) rows[here.row[k] * nodes + t] = route(here.u[k], mass);
            });
        });
    });
}

// The scalar product in eight lanes, which the compiler may keep in vector registers without reordering a sum.
template <class Real>
Real dot(const Real* x, const Real* y, std::int64_t size) {
    constexpr int lanes = 8;
    Real sum[lanes] = {};
    std::int64_t j = 0;
    for (; j + lanes <= size; j += lanes) {
        for (int l = 0; l < lanes; ++l) sum[l] += x[j + l] * y[j + l];
    }
    Real rest = 0;
    for (; j < size; ++j) rest += x[j] * y[j];
    for (int half = lanes / 2; half > 0; half /= 2) {
        for (int l = 0; l < half; ++l) sum[l] += sum[l + half];
    }
    return sum[0] + rest;
}

// Leaves of linear splits with weight, (splits, columns), and bias, (splits,). Only the splits on a row's path are
// computed. Rows are padded with zeros to a whole number of lanes, so that their scores, and thus their leaves, are
// those of table_leaves.hpp to the last bit.
template <class Real>
void linear_leaves(const Real* x, std::int64_t n, std::int64_t columns, const Real* weight, const Real* bias,
                   Tree tree, int threads, std::int64_t* leaf) {
    const std::int64_t n_parts = number_of_parts(n * columns), width = (columns + 7) / 8 * 8;
    std::vector<Real> weights(tree.splits * width);
    for (std::int64_t t = 0; t < tree.splits; ++t) {
        std::copy_n(weight + t * columns, columns, weights.data() + t * width);
    }
    parallel(threads, n_parts, [&](std::int64_t p) {
        constexpr std::int64_t rows_of_block = 128;
        const Rows rows = Rows::part(n, n_parts, p);
        std::vector<Real> buffer(rows_of_block * width);  // the padding stays zero
        for (std::int64_t begin = rows.begin; begin < rows.end; begin += rows_of_block) {
            const std::int64_t count = std::min(rows_of_block, rows.end - begin);
            for (std::int64_t i = 0; i < count; ++i) {
                for (std::int64_t j = 0; j < columns; ++j) buffer[i * width + j] = x[(begin + i) * columns + j];
            }
            for (std::int64_t i = 0; i < count; ++i) {
                std::int64_t t = 0;
                while (t < tree.splits) {
                    const Real score = dot(buffer.data() + i * width, weights.data() + t * width, width) + bias[t];
                    t = 2 * t + 1 + !(score < 0);
                }
                leaf[begin + i] = t;
            }
        }
    });
}

}  // namespace prunus
