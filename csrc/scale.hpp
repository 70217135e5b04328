// Columns of numbers, each centered, scaled and cut: out = clip((x - center) / scale, low, high).
#pragma once

#include <atomic>
#include <cstdint>

#include "clones.hpp"
#include "parallel.hpp"

namespace prunus {

// What to do with each column; arrays of as many doubles as there are columns.
struct Limits {
    const double *center, *scale, *low, *high;
};

// Scales a row. Returns zero if all its values are finite, else NaN.
template <class Real>
PRUNUS_INLINE Real scale_row(const Real* x, std::int64_t columns, const Limits& limits, float* out) {
    const double *center = limits.center, *scale = limits.scale, *low = limits.low, *high = limits.high;
    Real rest = 0;
#pragma omp simd reduction(+ : rest)
    for (std::int64_t j = 0; j < columns; ++j) {
        const double scaled = (x[j] - center[j]) / scale[j];
        const double raised = scaled < low[j] ? low[j] : scaled;
        out[j] = static_cast<float>(raised > high[j] ? high[j] : raised);
        rest += x[j] - x[j];
    }
    return rest;
}

PRUNUS_CLONES inline float scale_rows(const float* x, Rows rows, std::int64_t columns, const Limits& limits, float* out) {
    float rest = 0;
    for (std::int64_t i = rows.begin; i < rows.end; ++i) rest += scale_row(x + i * columns, columns, limits, out + i * columns);
    return rest;
}

PRUNUS_CLONES inline double scale_rows(const double* x, Rows rows, std::int64_t columns, const Limits& limits, float* out) {
    double rest = 0;
    for (std::int64_t i = rows.begin; i < rows.end; ++i) rest += scale_row(x + i * columns, columns, limits, out + i * columns);
    return rest;
}

// Whether all values are finite; if not, what was written means nothing.
template <class Real>
bool scale_columns(const Real* x, std::int64_t n, std::int64_t columns, const Limits& limits, int threads, float* out) {
    const std::int64_t cut = parts_of(n * columns);
    std::atomic<bool> finite{true};
    parallel(threads, cut, [&](std::int64_t p) {
        if (!(scale_rows(x, Rows::part(n, cut, p), columns, limits, out) == 0)) finite = false;
    });
    return finite;
}

}  // namespace prunus
