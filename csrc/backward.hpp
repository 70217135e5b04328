// What the backward passes of tree_traverse and tree_argmin share: the gradients that arrive at the node masses.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace prunus {

// Gradients of the loss with respect to the outputs.
template <class Real>
struct OutputGradients {
    const Real* z;  // (n, nodes)
    const Real* a;  // (nodes,)
};

// Sums over samples for each node: mass_grad sums the gradients of the z that equal the mass, active_weight the weights
// of the active samples.
struct MassGradients {
    std::vector<double> mass_grad, active_weight;
    explicit MassGradients(std::int32_t nodes) : mass_grad(nodes, 0.0), active_weight(nodes, 0.0) {}
};

template <class Real>
bool is_free(Real mass) {
    return mass > 0 && mass < 1;
}

template <class Real>
bool any_free(const Real* a, std::int32_t nodes) {
    return std::any_of(a, a + nodes, is_free<Real>);
}

// For each node the gradient of the sum of w u over the active samples of its group; it is zero if the mass is not
// free. `group` holds the topmost node of each node's group; it is null if no nodes share a mass. Also writes the
// gradient of lam.
template <class Real>
std::vector<Real> sum_gradients(const std::vector<MassGradients>& parts, const Real* grad_a, const Real* a,
                                const std::int64_t* group, double lam, std::int32_t nodes, Real* grad_lam) {
    std::vector<double> mass_grad(nodes, 0.0), active_weight(nodes, 0.0), size(nodes, 0.0);
    for (std::int32_t t = 0; t < nodes; ++t) {
        const std::int64_t g = group == nullptr ? t : group[t];
        mass_grad[g] += grad_a[t];
        size[g] += 1;
        for (const auto& part : parts) {
            mass_grad[g] += part.mass_grad[t];
            active_weight[g] += part.active_weight[t];
        }
    }
    std::vector<Real> sum_grad(nodes, Real(0));
    double to_lam = 0;
    for (std::int32_t t = 0; t < nodes; ++t) {
        if (!is_free(a[t])) continue;
        const std::int64_t g = group == nullptr ? t : group[t];
        const double value = mass_grad[g] / (lam * size[g] + active_weight[g]);
        sum_grad[t] = static_cast<Real>(value);
        to_lam -= value * a[t];
    }
    *grad_lam = static_cast<Real>(to_lam);
    return sum_grad;
}

}  // namespace prunus
