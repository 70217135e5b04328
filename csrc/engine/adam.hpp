// A step of AdamW in one sweep over all parameters, together with their moving average.
//
//     m <- b1 m + (1 - b1) g,   v <- b2 v + (1 - b2) g^2,   theta <- (1 - decay) theta - rate m' / (sqrt(v') + eps)
//
// Here m' and v' are m and v, corrected for the bias of their start at zero. The sweep also clears the gradients.
#pragma once

#include <cmath>
#include <cstdint>

#include "../clones.hpp"

namespace prunus::engine {

constexpr double beta1 = 0.9, beta2 = 0.99, epsilon = 1e-8;

template <class Real>
struct Moments {
    Real *theta, *average, *m, *v, *grad;  // `average` is null if there is none
};

// The numbers of a step.
template <class Real>
struct Update {
    Real factor;   // on the gradients, 1 unless they are clipped
    Real keep;     // what weight decay leaves of a parameter
    Real rate;     // corrected for the bias of m
    Real root;     // factor on the square root of v
    Real ema_weight;  // share of the newest parameters in their average
};

template <bool Averages, class Real>
PRUNUS_INLINE void sweep_of(const Moments<Real>& all, std::int64_t begin, std::int64_t end, const Update<Real>& update) {
    Real *theta = all.theta, *average = all.average, *m = all.m, *v = all.v, *grad = all.grad;
    const Update<Real> u = update;
    const Real b1 = static_cast<Real>(beta1), b2 = static_cast<Real>(beta2), eps = static_cast<Real>(epsilon);
#pragma omp simd
    for (std::int64_t i = begin; i < end; ++i) {
        const Real g = u.factor * grad[i];
        const Real first = m[i] + (1 - b1) * (g - m[i]), second = b2 * v[i] + (1 - b2) * g * g;
        const Real next = u.keep * theta[i] - u.rate * first / (std::sqrt(second) * u.root + eps);
        m[i] = first;
        v[i] = second;
        theta[i] = next;
        grad[i] = 0;
        if constexpr (Averages) average[i] += u.ema_weight * (next - average[i]);
    }
}

template <class Real>
PRUNUS_INLINE void sweep_any(const Moments<Real>& all, std::int64_t begin, std::int64_t end,
                             const Update<Real>& update) {
    if (all.average == nullptr) {
        sweep_of<false>(all, begin, end, update);
    } else {
        sweep_of<true>(all, begin, end, update);
    }
}

PRUNUS_FUSED_CLONES inline void sweep(const Moments<float>& all, std::int64_t begin, std::int64_t end,
                                      const Update<float>& update) {
    sweep_any(all, begin, end, update);
}
inline void sweep(const Moments<double>& all, std::int64_t begin, std::int64_t end, const Update<double>& update) {
    sweep_any(all, begin, end, update);
}

}  // namespace prunus::engine
