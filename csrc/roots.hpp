// Node masses: the roots of phi by Newton's method, and pooling where a node's root exceeds its parent's.
//
//     phi_t(a) = lam a - sum_i w_i max(u[i,t] - a, 0)
//
// is increasing and concave, so a Newton step lands left of the root from anywhere and then only climbs.
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

// The u > 0 of all samples, node by node: those of node t are [begin[t], begin[t + 1]).
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

// Lays out the values of each node one after the other, and each thread's part of them in thread order, so that the
// result does not depend on how the threads run. Turns part.count[t] from how many values the part has for node t
// into the place of the first.
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
    double total = 0;  // of w u over the active values, those above a
    double held = 0;   // of w over the same
    double size = 0;   // number of nodes
};

// The largest Real that is not above a: u > a and u > floor_to<Real>(a) say the same of every Real u.
template <class Real>
Real floor_to(double a) {
    const Real near = static_cast<Real>(a);
    return static_cast<double>(near) > a ? std::nextafter(near, -std::numeric_limits<Real>::infinity()) : near;
}

// Sum of w u, and of w, over values of one node that are all active. Blocks are short enough that summing in Real loses nothing
// that matters; the block sums are added in double.
template <class Real>
Sums sum_all(const Real* u, const Real* w, std::int64_t count) {
    constexpr std::int64_t block = 512;
    Sums sums;
    sums.size = 1;
    for (std::int64_t start = 0; start < count; start += block) {
        const std::int64_t end = std::min(start + block, count);
        Real total = 0, held = 0;
        if (w == nullptr) {
#pragma omp simd reduction(+ : total)
            for (std::int64_t i = start; i < end; ++i) total += u[i];
            held = static_cast<Real>(end - start);
        } else {
#pragma omp simd reduction(+ : total, held)
            for (std::int64_t i = start; i < end; ++i) {
                total += w[i] > 0 ? w[i] * u[i] : Real(0);
                held += w[i];
            }
        }
        sums.total += total;
        sums.held += held;
    }
    return sums;
}

// Moves the values above a to the front, without a branch on the data, and returns how many they are.
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

// A Newton step for a node or a group of nodes. No number where both lam and a reward are infinite.
inline double newton_step(const Sums& sums, double lam) { return sums.total / (lam * sums.size + sums.held); }

// Rounding may carry a root onto or past values that the exact one lies below: values of one column that are all equal,
// say, if lam is too small to be seen beside their number. They then do not count as active, and the next step falls
// back. Goes back until none does, by as many last places of a Real as it takes.
template <class Real, class StepFrom>
double settle(double root, double step, const StepFrom& step_from) {
    for (double back = std::numeric_limits<Real>::epsilon(); step < root; back *= 2) {
        root -= back * root;
        step = step_from(root);
    }
    return root;
}

// The root of one node's phi, capped at 1: each step takes the active values' tangent, then drops the values that its
// root has left behind, until none is. Most steps drop half or more, so that all of them together cost about two
// passes over the values.
template <class Real>
double own_root(Real* u, Real* w, std::int64_t count, double lam) {
    std::int64_t active = partition_above(u, w, count, 0.0);  // leaves NaN behind
    double root = 0;
    while (true) {
        const double step = newton_step(sum_all<Real>(u, w, active), lam);
        if (step >= 1) return 1;
        if (!(step > root)) {
            return settle<Real>(root, step, [=](double a) {
                return newton_step(sum_all<Real>(u, w, partition_above(u, w, count, a)), lam);
            });
        }
        root = step;
        const std::int64_t kept = partition_above(u, w, active, root);
        if (kept == active) return root;
        active = kept;
    }
}

// The own root of each node. Reorders the values within each node.
template <class Real>
std::vector<double> own_roots(Tree tree, NodeValues<Real>& values, double lam, int threads) {
    std::vector<double> roots(tree.nodes(), 1.0);
    if (lam == 0) return roots;
    constexpr std::int32_t chunk = 8;
    parallel(threads, (tree.nodes() + chunk - 1) / chunk, [&](std::int64_t p) {
        const auto first = static_cast<std::int32_t>(p) * chunk;
        for (std::int32_t t = first; t < std::min(first + chunk, tree.nodes()); ++t) {
            roots[t] = own_root(values.u_of(t), values.weight_of(t), values.count(t), lam);
        }
    });
    return roots;
}

// Sums over a node and the descendants that belong to its group at the value a: a child does exactly if its root,
// that of its own group, exceeds a. Reorders the values within each node.
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
        sums.held += own.held;
        sums.size += own.size;
        if (t >= tree.splits) continue;
        for (const std::int32_t child : {2 * t + 1, 2 * t + 2}) {
            if (roots[child] > a) stack.push_back(child);
        }
    }
    return sums;
}

// Raises each root to that of the node pooled with the descendants that press against it, from the leaves up: when a
// node is raised the roots below it are final.
template <class Real>
void pool(Tree tree, NodeValues<Real>& values, double lam, std::vector<double>& roots) {
    for (std::int32_t top = tree.splits - 1; top >= 0; --top) {
        if (std::max(roots[2 * top + 1], roots[2 * top + 2]) <= roots[top]) continue;
        const auto step_from = [&](double a) { return newton_step(sum_group(tree, values, roots, top, a), lam); };
        while (roots[top] < 1) {
            const double step = step_from(roots[top]);
            if (!(step > roots[top])) {
                roots[top] = settle<Real>(roots[top], step, step_from);
                break;
            }
            roots[top] = std::min(step, 1.0);
        }
    }
}

}  // namespace prunus
