// The nonlinear units of networks: elu(x) = x if x > 0, else exp(x) - 1.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "../clones.hpp"

namespace prunus::engine {

// exp(x) - 1 for x <= 0, with a relative error of about 1e-7 and without a branch: x = n log 2 + r with a whole n, and
// exp(x) - 1 = 2^n (exp(r) - 1) + (2^n - 1).
PRUNUS_INLINE float exp_minus_one(float x) {
    constexpr float smallest = -20.0f;                // exp(x) - 1 rounds to -1 from here on
    constexpr float whole = 12582912.0f;              // 1.5 * 2^23: the sum with it has no digits after the point
    constexpr float log_two_high = 0.693145751953125f;   // has so few digits that n times it is exact
    constexpr float log_two_low = 1.42860682e-6f;        // log(2) - log_two_high
    const float limited = x < smallest ? smallest : x;
    const float shifted = limited * 1.44269504f + whole, n = shifted - whole;
    const float r = (limited - n * log_two_high) - n * log_two_low;
    const float beyond = 0.5f + r * (1.0f / 6 + r * (1.0f / 24 + r * (1.0f / 120 + r * (1.0f / 720 + r / 5040))));
    std::uint32_t bits;
    std::memcpy(&bits, &shifted, sizeof bits);
    bits = (bits << 23) + 0x3f800000u;  // the last bits of `shifted` are n; as an exponent they make 2^n
    float power;
    std::memcpy(&power, &bits, sizeof power);
    return power * (r + r * r * beyond) + (power - 1);
}

// Replaces each number by its elu. A NaN stays one.
PRUNUS_FUSED_CLONES inline void elu(float* x, std::int64_t size) {
#pragma omp simd
    for (std::int64_t i = 0; i < size; ++i) {
        const float below = exp_minus_one(x[i]);
        x[i] = x[i] <= 0 ? below : x[i];
    }
}
inline void elu(double* x, std::int64_t size) {
    for (std::int64_t i = 0; i < size; ++i) x[i] = x[i] <= 0 ? std::expm1(x[i]) : x[i];
}

template <class Real>
PRUNUS_INLINE void to_elu_of(const Real* value, std::int64_t size, Real* grad) {
#pragma omp simd
    for (std::int64_t i = 0; i < size; ++i) {
        const Real slope = value[i] + 1;
        grad[i] *= slope > 1 ? Real(1) : slope;
    }
}

// Goes back from the gradients of the units to those of their inputs, given the values of the units.
PRUNUS_FUSED_CLONES inline void to_elu(const float* value, std::int64_t size, float* grad) {
    to_elu_of(value, size, grad);
}
inline void to_elu(const double* value, std::int64_t size, double* grad) { to_elu_of(value, size, grad); }

}  // namespace prunus::engine
