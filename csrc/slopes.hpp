// How the loss pulls at the node masses: what the two backward passes over the samples share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace prunus {

// Gradients of the loss that come from above.
template <class Real>
struct Gradients {
    const Real* z;  // (n, nodes)
    const Real* a;  // (nodes,)
};

// Per node, summed over samples: the gradient of z where a bounds it, and the weight of the active samples.
struct Pull {
    std::vector<double> pull, held;
    explicit Pull(std::int32_t nodes) : pull(nodes, 0.0), held(nodes, 0.0) {}
};

template <class Real>
bool is_free(Real mass) {
    return mass > 0 && mass < 1;
}

template <class Real>
bool any_free(const Real* a, std::int32_t nodes) {
    return std::any_of(a, a + nodes, is_free<Real>);
}

// d loss / d (sum of w u over the active samples of a node's group); zero where the mass is not free to move. Nodes
// are grouped by `group`, which names each group's topmost node, or stand alone if it is null. Also d loss / d lam.
template <class Real>
std::vector<Real> slopes(const std::vector<Pull>& parts, const Real* grad_a, const Real* a, const std::int64_t* group,
                         double lam, std::int32_t nodes, Real* grad_lam) {
    std::vector<double> pull(nodes, 0.0), held(nodes, 0.0), size(nodes, 0.0);
    for (std::int32_t t = 0; t < nodes; ++t) {
        const std::int64_t g = group == nullptr ? t : group[t];
        pull[g] += grad_a[t];
        size[g] += 1;
        for (const auto& part : parts) {
            pull[g] += part.pull[t];
            held[g] += part.held[t];
        }
    }
    std::vector<Real> slope(nodes, Real(0));
    double to_lam = 0;
    for (std::int32_t t = 0; t < nodes; ++t) {
        if (!is_free(a[t])) continue;
        const std::int64_t g = group == nullptr ? t : group[t];
        const double value = pull[g] / (lam * size[g] + held[g]);
        slope[t] = static_cast<Real>(value);
        to_lam -= value * a[t];
    }
    *grad_lam = static_cast<Real>(to_lam);
    return slope;
}

}  // namespace prunus
