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
    double total = 0;  // of w u over the u above a
    double held = 0;   // of w over the same
    double size = 0;   // number of nodes
};

// The largest Real that is not above a: u > a and u > floor_to<Real>(a) say the same of every Real u.
template <class Real>
Real floor_to(double a) {
    const Real near = static_cast<Real>(a);
    return static_cast<double>(near) > a ? std::nextafter(near, -std::numeric_limits<Real>::infinity()) : near;
}

// Adds node t's share at the value a. Blocks are short enough that summing in Real loses nothing that matters; the
// block sums are added in double.
template <class Real>
void add_node(const NodeValues<Real>& values, std::int32_t t, double a, Sums& sums) {
    constexpr std::int64_t block = 512;
    const Real above = floor_to<Real>(a);
    const std::int64_t end = values.begin[t + 1];
    for (std::int64_t start = values.begin[t]; start < end; start += block) {
        const std::int64_t size = std::min(block, end - start);
        const Real* u = values.u.data() + start;
        Real total = 0, held = 0;
        if (values.weighted) {
            const Real* w = values.weight.data() + start;
#pragma omp simd reduction(+ : total, held)
            for (std::int64_t i = 0; i < size; ++i) {
                const bool active = u[i] > above && w[i] > 0;
                total += active ? w[i] * u[i] : Real(0);
                held += active ? w[i] : Real(0);
            }
        } else {
#pragma omp simd reduction(+ : total, held)
            for (std::int64_t i = 0; i < size; ++i) {
                total += u[i] > above ? u[i] : Real(0);
                held += u[i] > above ? Real(1) : Real(0);
            }
        }
        sums.total += total;
        sums.held += held;
    }
    sums.size += 1;
}

// Climbs from a, left of the root, to the root of lam size a = total - held a; at most 1.
template <class SumsAbove>
double climb(double lam, double a, const SumsAbove& sums_above) {
    while (true) {
        const Sums sums = sums_above(a);
        const double step = sums.total / (lam * sums.size + sums.held);
        if (step >= 1) return 1;
        // A step back means that rounding carried a onto or past the smallest active u: stay just below it.
        if (step < a) return a * (1 - 4 * std::numeric_limits<double>::epsilon());
        if (!(step > a)) return a;
        a = step;
    }
}

// The root of each node's own phi, capped at 1.
template <class Real>
std::vector<double> own_roots(Tree tree, const NodeValues<Real>& values, double lam, int threads) {
    std::vector<double> roots(tree.nodes(), 1.0);
    if (lam == 0) return roots;
    constexpr std::int32_t chunk = 8;
    parallel(threads, (tree.nodes() + chunk - 1) / chunk, [&](std::int64_t p) {
        const auto first = static_cast<std::int32_t>(p) * chunk;
        for (std::int32_t t = first; t < std::min(first + chunk, tree.nodes()); ++t) {
            roots[t] = climb(lam, 0.0, [&](double a) {
                Sums sums;
                add_node(values, t, a, sums);
                return sums;
            });
        }
    });
    return roots;
}

// Raises each root to that of the node pooled with the descendants that press against it. From the leaves up: when a
// node is raised the roots below it are final, and a child belongs to its group at the value a exactly if the
// child's root exceeds a.
template <class Real>
void pool(Tree tree, const NodeValues<Real>& values, double lam, std::vector<double>& roots) {
    std::vector<std::int32_t> stack;
    for (std::int32_t top = tree.splits - 1; top >= 0; --top) {
        if (std::max(roots[2 * top + 1], roots[2 * top + 2]) <= roots[top]) continue;
        roots[top] = climb(lam, roots[top], [&](double a) {
            Sums sums;
            stack.assign(1, top);
            while (!stack.empty()) {
                const std::int32_t t = stack.back();
                stack.pop_back();
                add_node(values, t, a, sums);
                if (t >= tree.splits) continue;
                for (const std::int32_t child : {2 * t + 1, 2 * t + 2}) {
                    if (roots[child] > a) stack.push_back(child);
                }
            }
            return sums;
        });
    }
}

}  // namespace prunus
