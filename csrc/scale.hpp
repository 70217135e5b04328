// Columns of numbers, each centered, scaled and clipped: out = clip((x - center) / scale, low, high).
#pragma once

#include <atomic>
#include <cstdint>

#include "clones.hpp"
#include "parallel.hpp"

namespace prunus {

// How each column is scaled: arrays of as many doubles as there are columns.
struct Scaling {
    const double *center, *scale, *low, *high;
};

// Scales a row. Returns 0 if all its values are finite, else NaN.
template <class Real>
PRUNUS_INLINE Real scale_row(const Real* x, std::int64_t columns, const Scaling& scaling, float* out) {
    const double *center = scaling.center, *scale = scaling.scale, *low = scaling.low, *high = scaling.high;
    Real nan_or_zero = 0;
#pragma omp simd reduction(+ : nan_or_zero)
    for (std::int64_t j = 0; j < columns; ++j) {
        const double scaled = (x[j] - center[j]) / scale[j];
        const double raised = scaled < low[j] ? low[j] : scaled;
        out[j] = static_cast<float>(raised > high[j] ? high[j] : raised);
        nan_or_zero += x[j] - x[j];
    }
    return nan_or_zero;
}

PRUNUS_CLONES inline float scale_rows(const float* x, Rows rows, std::int64_t columns, const Scaling& scaling,
                                      float* out) {
    float nan_or_zero = 0;
    for (std::int64_t i = rows.begin; i < rows.end; ++i) {
        nan_or_zero += scale_row(x + i * columns, columns, scaling, out + i * columns);
    }
    return nan_or_zero;
}

PRUNUS_CLONES inline double scale_rows(const double* x, Rows rows, std::int64_t columns, const Scaling& scaling,
                                       float* out) {
    double nan_or_zero = 0;
    for (std::int64_t i = rows.begin; i < rows.end; ++i) {
        nan_or_zero += scale_row(x + i * columns, columns, scaling, out + i * columns);
    }
    return nan_or_zero;
}

// Scales n rows. Returns whether all values are finite; if not, the output is meaningless.
template <class Real>
bool scale_columns(const Real* x, std::int64_t n, std::int64_t columns, const Scaling& scaling, int threads,
                   float* out) {
    if (columns == 0) return true;
    const std::int64_t n_parts = number_of_parts(n * columns);
    std::atomic<bool> finite{true};
    parallel(threads, n_parts, [&](std::int64_t p) {
        if (!(scale_rows(x, Rows::part(n, n_parts, p), columns, scaling, out) == 0)) finite = false;
    });
    return finite;
}

}  // namespace prunus
