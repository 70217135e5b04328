// Node masses: the roots of phi by Newton's method, and pooling where a node's root exceeds its parent's.
//
//     phi_t(a) = lam a - sum_i w_i max(u[i,t] - a, 0)
//
// is increasing and concave, so the first Newton step lands left of the root from anywhere, and later steps only go up.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "memory.hpp"
#include "parallel.hpp"
#include "tree.hpp"

namespace prunus {

// The u > 0 of all samples, ordered by node: those of node t are at [begin[t], begin[t + 1]).
template <class Real>
struct NodeValues {
    Buffer<Real> u;
    Buffer<Real> weight;  // unused when all weights are 1
    bool weighted = false;
    std::vector<std::int64_t> begin;

    std::int64_t count(std::int32_t t) const { return begin[t + 1] - begin[t]; }
    Real* u_of(std::int32_t t) { return u.data() + begin[t]; }
    Real* weight_of(std::int32_t t) { return weighted ? weight.data() + begin[t] : nullptr; }
};

// Lays out the values of the nodes one after the other, and within a node those of the parts in their order, so that
// the result does not depend on how the threads run. Replaces part.count[t], how many values the part has for node t,
// by the place of the first of them.
template <class Real, class Part>
NodeValues<Real> lay_out(Tree tree, bool weighted, std::vector<Part>& parts) {
    NodeValues<Real> values;
    values.weighted = weighted;
    values.begin.assign(tree.nodes() + 1, 0);
    std::int64_t next = 0;
    for (std::int32_t t = 0; t < tree.nodes(); ++t) {
        values.begin[t] = next;
        for (auto& part : parts) {
            const std::int64_t count = part.count[t];
            part.count[t] = next;
            next += count;
        }
    }
    values.begin[tree.nodes()] = next;
    values.u.reserve(next);
    if (weighted) values.weight.reserve(next);
    return values;
}

struct Sums {
    double total = 0;          // of w u over the active values, those above a
    double active_weight = 0;  // of w over the same values
    double size = 0;           // number of nodes
};

// The largest Real that is not above a. For every Real u, u > a exactly if u > floor_to<Real>(a).
template <class Real>
Real floor_to(double a) {
    const Real near = static_cast<Real>(a);
    return static_cast<double>(near) > a ? std::nextafter(near, -std::numeric_limits<Real>::infinity()) : near;
}

// Sums of w u and of w over values of one node that are all active. Blocks are so short that summing them in Real is
// accurate enough; the sums of the blocks are added in double.
template <class Real>
Sums sum_all(const Real* u, const Real* w, std::int64_t count) {
    constexpr std::int64_t block = 512;
    Sums sums;
    sums.size = 1;
    for (std::int64_t start = 0; start < count; start += block) {
        const std::int64_t end = std::min(start + block, count);
        Real total = 0, active_weight = 0;
        if (w == nullptr) {
#pragma omp simd reduction(+ : total)
            for (std::int64_t i = start; i < end; ++i) total += u[i];
            active_weight = static_cast<Real>(end - start);
        } else {
#pragma omp simd reduction(+ : total, active_weight)
            for (std::int64_t i = start; i < end; ++i) {
                total += w[i] > 0 ? w[i] * u[i] : Real(0);
                active_weight += w[i];
            }
        }
        sums.total += total;
        sums.active_weight += active_weight;
    }
    return sums;
}

// Moves the values above a to the front and returns their number. No branch depends on the data.
template <class Real>
std::int64_t partition_above(Real* u, Real* w, std::int64_t count, double a) {
    const Real above = floor_to<Real>(a);
    std::int64_t kept = 0;
    for (std::int64_t i = 0; i < count; ++i) {
        const Real value = u[i];
        u[i] = u[kept];
        u[kept] = value;
        if (w != nullptr) std::swap(w[i], w[kept]);
        kept += value > above;
    }
    return kept;
}

// A Newton step for a node or a group of nodes. It is NaN if both lam and a reward are infinite.
inline double newton_step(const Sums& sums, double lam) { return sums.total / (lam * sums.size + sums.active_weight); }

// Rounding may put a root on or above values that are above the exact root, for example if all values of a node are
// equal and lam is far smaller than their number. These values are then not active, and the next step is below the
// root. This function lowers the root until that is no longer so, at first by one unit in the last place of a Real and
// then by twice as much each time.
template <class Real, class StepFrom>
double step_back(double root, double step, const StepFrom& step_from) {
    for (double back = std::numeric_limits<Real>::epsilon(); step < root; back *= 2) {
        root -= back * root;
        step = step_from(root);
    }
    return root;
}

// The root of one node's phi, at most 1. Each step finds the root of the tangent that the active values make up, then
// drops the values that are not above it, until there is none to drop. Most steps drop half of the values or more, so
// all steps together cost about two passes over the values.
template <class Real>
double own_root(Real* u, Real* w, std::int64_t count, double lam) {
    std::int64_t active = partition_above(u, w, count, 0.0);  // without NaN
    double root = 0;
    while (true) {
        const double step = newton_step(sum_all<Real>(u, w, active), lam);
        if (step >= 1) return 1;
        if (!(step > root)) {
            return step_back<Real>(root, step, [=](double a) {
                return newton_step(sum_all<Real>(u, w, partition_above(u, w, count, a)), lam);
            });
        }
        root = step;
        const std::int64_t kept = partition_above(u, w, active, root);
        if (kept == active) return root;
        active = kept;
    }
}

// The root of each node's own phi. Reorders the values within each node.
template <class Real>
std::vector<double> own_roots(Tree tree, NodeValues<Real>& values, double lam, int threads) {
    std::vector<double> roots(tree.nodes(), 1.0);
    if (lam == 0) return roots;
    constexpr std::int32_t step = 8;  // nodes of one part
    parallel(threads, (tree.nodes() + step - 1) / step, [&](std::int64_t p) {
        const auto first = static_cast<std::int32_t>(p) * step;
        for (std::int32_t t = first; t < std::min(first + step, tree.nodes()); ++t) {
            roots[t] = own_root(values.u_of(t), values.weight_of(t), values.count(t), lam);
        }
    });
    return roots;
}

// Sums over a node and the descendants that belong to its group at the value a. A child belongs to its parent's group
// exactly if its root, pooled with its own descendants, exceeds a. Reorders the values within each node.
template <class Real>
Sums sum_group(Tree tree, NodeValues<Real>& values, const std::vector<double>& roots, std::int32_t top, double a) {
    Sums sums;
    std::vector<std::int32_t> stack(1, top);
    while (!stack.empty()) {
        const std::int32_t t = stack.back();
        stack.pop_back();
        const std::int64_t active = partition_above(values.u_of(t), values.weight_of(t), values.count(t), a);
        const Sums own = sum_all<Real>(values.u_of(t), values.weight_of(t), active);
        sums.total += own.total;
        sums.active_weight += own.active_weight;
        sums.size += own.size;
        if (t >= tree.splits) continue;
        for (const std::int32_t child : {2 * t + 1, 2 * t + 2}) {
            if (roots[child] > a) stack.push_back(child);
        }
    }
    return sums;
}

// Raises each root to that of the node pooled with the descendants whose roots exceed it. It works from the leaves up,
// so the roots below a node are final when the node is raised.
template <class Real>
void pool(Tree tree, NodeValues<Real>& values, double lam, std::vector<double>& roots) {
    for (std::int32_t top = tree.splits - 1; top >= 0; --top) {
        if (std::max(roots[2 * top + 1], roots[2 * top + 2]) <= roots[top]) continue;
        const auto step_from = [&](double a) { return newton_step(sum_group(tree, values, roots, top, a), lam); };
        while (roots[top] < 1) {
            const double step = step_from(roots[top]);
            if (!(step > roots[top])) {
                roots[top] = step_back<Real>(roots[top], step, step_from);
                break;
            }
            roots[top] = std::min(step, 1.0);
        }
    }
}

}  // namespace prunus
