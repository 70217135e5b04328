// From a table of numbers to the leaf at the end of each row's path in one pass. A few rows at a time are scaled, in
// memory that stays in the cache, and only the splits on their paths are computed.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "clones.hpp"
#include "parallel.hpp"
#include "scale.hpp"
#include "tree.hpp"

namespace prunus {

constexpr std::int64_t lanes = 8;

// Linear splits whose weights are padded with zeros to a whole number of lanes.
struct PaddedSplits {
    std::int32_t splits;
    std::int64_t width;  // of a row of weights, a multiple of `lanes`
    std::vector<float> weight, bias;

    PaddedSplits(const float* weights, const float* biases, std::int32_t count, std::int64_t columns)
        : splits(count),
          width((columns + lanes - 1) / lanes * lanes),
          weight(count * width),
          bias(biases, biases + count) {
        for (std::int32_t t = 0; t < count; ++t) std::copy_n(weights + t * columns, columns, weight.data() + t * width);
    }
};

// The scalar product over a whole number of lanes, summed in a fixed order.
PRUNUS_INLINE float padded_dot(const float* x, const float* y, std::int64_t size) {
    float sum[lanes] = {};
    for (std::int64_t j = 0; j < size; j += lanes) {
        for (int l = 0; l < lanes; ++l) sum[l] += x[j + l] * y[j + l];
    }
    for (std::int64_t half = lanes / 2; half > 0; half /= 2) {
        for (std::int64_t l = 0; l < half; ++l) sum[l] += sum[l + half];
    }
    return sum[0];
}

// Leaves of a few rows; `buffer` has room for the padded rows. Returns whether all their values are finite. All rows go
// down one level before any goes down the next, so the processor can work on several rows at once: on a single path
// each split waits for the one before.
template <class Real>
PRUNUS_INLINE bool leaves_of_block(const Real* x, std::int64_t count, std::int64_t columns, const Scaling& scaling,
                                   const PaddedSplits& splits, float* buffer, std::int32_t* leaf) {
    Real nan_or_zero = 0;
    for (std::int64_t i = 0; i < count; ++i) {
        nan_or_zero += scale_row(x + i * columns, columns, scaling, buffer + i * splits.width);
    }
    std::fill_n(leaf, count, 0);
    for (std::int64_t first = 0; first < splits.splits; first = 2 * first + 1) {
        for (std::int64_t i = 0; i < count; ++i) {
            const std::int32_t t = leaf[i];
            const float* weight = splits.weight.data() + t * splits.width;
            const float score = padded_dot(buffer + i * splits.width, weight, splits.width) + splits.bias[t];
            leaf[i] = 2 * t + 1 + !(score < 0);
        }
    }
    return nan_or_zero == 0;
}

PRUNUS_CLONES inline bool block_leaves(const float* x, std::int64_t count, std::int64_t columns, const Scaling& scaling,
                                       const PaddedSplits& splits, float* buffer, std::int32_t* leaf) {
    return leaves_of_block(x, count, columns, scaling, splits, buffer, leaf);
}

PRUNUS_CLONES inline bool block_leaves(const double* x, std::int64_t count, std::int64_t columns,
                                       const Scaling& scaling, const PaddedSplits& splits, float* buffer,
                                       std::int32_t* leaf) {
    return leaves_of_block(x, count, columns, scaling, splits, buffer, leaf);
}

// Leaves of n rows. Returns whether all values are finite; if not, the leaves are meaningless.
template <class Real>
bool table_leaves(const Real* x, std::int64_t n, std::int64_t columns, const Scaling& scaling,
                  const PaddedSplits& splits, int threads, std::int32_t* leaf) {
    constexpr std::int64_t rows_of_block = 128;
    const std::int64_t n_parts = number_of_parts(n * columns);
    std::atomic<bool> finite{true};
    parallel(threads, n_parts, [&](std::int64_t p) {
        const Rows rows = Rows::part(n, n_parts, p);
        std::vector<float> buffer(rows_of_block * splits.width);  // the padding stays zero
        for (std::int64_t begin = rows.begin; begin < rows.end; begin += rows_of_block) {
            const std::int64_t count = std::min(rows_of_block, rows.end - begin);
            const Real* block = x + begin * columns;
            if (!block_leaves(block, count, columns, scaling, splits, buffer.data(), leaf + begin)) finite = false;
        }
    });
    return finite;
}

}  // namespace prunus
