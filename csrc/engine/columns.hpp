// Splits of few columns: the columns with the smallest weights leave a split one after another, and do not come back.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "adam.hpp"
#include "parameters.hpp"

namespace prunus::engine {

template <class Real>
struct Columns {
    std::int64_t count = 0;               // of the table
    const std::int32_t* owner = nullptr;  // the column of each input, (inputs,)
    std::int64_t inputs = 0;
    Real* used = nullptr;  // 1 where a split uses an input, else 0, (splits, inputs); null if all are used

    // Leaves the `most` columns with the largest weights in each split.
    void leave(std::int64_t most, const Parameters& shape, const Moments<Real>& all) const {
        std::vector<Real> size(count);
        std::vector<std::int64_t> order(count);
        for (std::int64_t t = 0; t < shape.tree.splits; ++t) {
            const Real* weight = all.theta + t * shape.split_width;
            std::fill(size.begin(), size.end(), Real(0));
            for (std::int64_t j = 0; j < inputs; ++j) size[owner[j]] += weight[j] * weight[j];
            for (Real& each : size) each = std::isnan(each) ? std::numeric_limits<Real>::infinity() : each;  // to order
            std::iota(order.begin(), order.end(), std::int64_t{0});
            std::nth_element(order.begin(), order.begin() + most, order.end(), [&](std::int64_t x, std::int64_t y) {
                return size[x] != size[y] ? size[x] > size[y] : x < y;
            });
            for (std::int64_t k = most; k < count; ++k) size[order[k]] = Real(-1);
            for (std::int64_t j = 0; j < inputs; ++j) {
                if (size[owner[j]] < 0) drop(t, j, shape, all);
            }
        }
    }

    // Clears the gradients of the inputs that a split does not use.
    void mask(std::int64_t t, Real* grad) const {
        for (std::int64_t j = 0; j < inputs; ++j) grad[j] *= used[t * inputs + j];
    }

  private:
    void drop(std::int64_t t, std::int64_t j, const Parameters& shape, const Moments<Real>& all) const {
        used[t * inputs + j] = Real(0);
        for (Real* array : {all.theta, all.average, all.m, all.v}) {
            if (array != nullptr) array[t * shape.split_width + j] = Real(0);
        }
    }
};

}  // namespace prunus::engine
