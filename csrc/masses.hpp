// What one chunk of samples adds to a Newton step for the node masses: sums over its values above the present masses.
#pragma once

#include <cstdint>
#include <vector>

#include "descend.hpp"
#include "parallel.hpp"
#include "tree.hpp"

namespace prunus {

// Adds for each node the sum of w u over the samples with u above its mass to `total`, and their weight to
// `active_weight`.
template <class Real>
void sums_above(const Samples<Real>& scores, const Real* a, int threads, double* total, double* active_weight) {
    const std::int64_t n_parts = number_of_parts(scores.pairs()), nodes = scores.tree.nodes();
    std::vector<std::vector<double>> sums(n_parts, std::vector<double>(2 * nodes));
    parallel(threads, n_parts, [&](std::int64_t p) {
        double *part_total = sums[p].data(), *part_active_weight = part_total + nodes;
        for_blocks<Real>(scores, Rows::part(scores.n, n_parts, p), nullptr, [&](Descent<Real>& descent, Rows block) {
            descent.template operator()<false>(block, [&](std::int32_t t, const Arrivals<Real>& here) {
                double sum = 0, weights = 0;
                for (std::int32_t k = 0; k < here.count; ++k) {
                    const bool above = here.u[k] > a[t];
                    const double weight = above ? scores.weight_of(block.begin + here.row[k]) : Real(0);
                    weights += weight;
                    sum += above ? weight * here.u[k] : 0.0;
                }
                part_total[t] += sum;
                part_active_weight[t] += weights;
            });
        });
    });
    for (const auto& part : sums) {
        for (std::int64_t t = 0; t < nodes; ++t) {
            total[t] += part[t];
            active_weight[t] += part[nodes + t];
        }
    }
}

}  // namespace prunus
