// From a table of numbers to the leaves at the end of its rows' paths in one pass: rows are scaled, a few at a time,
// where they stay in the cache, and only the splits on their paths are computed.
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
        : splits(count), width((columns + lanes - 1) / lanes * lanes), weight(count * width), bias(biases, biases + count) {
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

// Leaves of a few rows; `buffer` has room for them, padded. Whether all their values are finite. The order, level by
// level, lets the processor work on several rows at once: on a path each split waits for the one before.
template <class Real>
PRUNUS_INLINE bool leaves_of_block(const Real* x, std::int64_t count, std::int64_t columns, const Limits& limits,
                                   const PaddedSplits& splits, float* buffer, std::int32_t* leaf) {
    Real rest = 0;
    for (std::int64_t i = 0; i < count; ++i) rest += scale_row(x + i * columns, columns, limits, buffer + i * splits.width);
    std::fill_n(leaf, count, 0);
    for (std::int64_t first = 0; first < splits.splits; first = 2 * first + 1) {
        for (std::int64_t i = 0; i < count; ++i) {
            const std::int32_t t = leaf[i];
            const float score = padded_dot(buffer + i * splits.width, splits.weight.data() + t * splits.width, splits.width);
            leaf[i] = 2 * t + 1 + !(score + splits.bias[t] < 0);
        }
    }
    return rest == 0;
}

PRUNUS_CLONES inline bool block_leaves(const float* x, std::int64_t count, std::int64_t columns, const Limits& limits,
                                       const PaddedSplits& splits, float* buffer, std::int32_t* leaf) {
    return leaves_of_block(x, count, columns, limits, splits, buffer, leaf);
}

PRUNUS_CLONES inline bool block_leaves(const double* x, std::int64_t count, std::int64_t columns, const Limits& limits,
                                       const PaddedSplits& splits, float* buffer, std::int32_t* leaf) {
    return leaves_of_block(x, count, columns, limits, splits, buffer, leaf);
}

// Whether all values are finite; if not, the leaves mean nothing.
template <class Real>
bool table_leaves(const Real* x, std::int64_t n, std::int64_t columns, const Limits& limits, const PaddedSplits& splits,
                  int threads, std::int32_t* leaf) {
    constexpr std::int64_t rows_of_block = 128;
    const std::int64_t cut = parts_of(n * columns);
    std::atomic<bool> finite{true};
    parallel(threads, cut, [&](std::int64_t p) {
        const Rows rows = Rows::part(n, cut, p);
        std::vector<float> buffer(rows_of_block * splits.width);  // the padding stays zero
        for (std::int64_t begin = rows.begin; begin < rows.end; begin += rows_of_block) {
            const std::int64_t count = std::min(rows_of_block, rows.end - begin);
            if (!block_leaves(x + begin * columns, count, columns, limits, splits, buffer.data(), leaf + begin)) finite = false;
        }
    });
    return finite;
}

}  // namespace prunus
