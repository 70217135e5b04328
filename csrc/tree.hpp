// Complete binary trees in heap order, and the nodes that one sample reaches.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

namespace prunus {

struct Tree {
    std::int32_t splits;
    std::int32_t nodes() const { return 2 * splits + 1; }
    static std::int32_t parent(std::int32_t t) { return (t - 1) / 2; }
};

// A weight that is no number: its sample takes part in nothing but its own z, which becomes NaN.
template <class Real>
bool is_weight(Real w) {
    return w >= 0 && w < std::numeric_limits<Real>::infinity();
}

// Rows of split scores (columns = splits) or of rewards (columns = nodes), with the weights of the samples.
template <class Real>
struct Samples {
    const Real* data;    // (n, columns)
    const Real* weight;  // (n,), or null for ones
    std::int64_t n;
    std::int64_t columns;
    Tree tree;

    const Real* row(std::int64_t i) const { return data + i * columns; }
    bool poisoned(std::int64_t i) const { return weight != nullptr && !is_weight(weight[i]); }
    Real weight_of(std::int64_t i) const { return weight == nullptr ? Real(1) : poisoned(i) ? Real(0) : weight[i]; }
    std::int64_t pairs() const { return n * tree.nodes(); }
};

// Lists the nodes t with u[t] = q[t] + 1/2 > 0, or NaN, for a sample with scores s, level by level from the root:
// node[k] and u[k], k in [0, count). Returns count, at most the number of nodes.
//
// Invariant: every node not listed has u <= 0, and so have all nodes below it; its z and all its gradients are zero.
// The lists must have room for nodes + 1 entries: the one after the last is scratch.
//
// With Source, from[k] names the score that u[k] comes from: 2p for -s[p], 2p + 1 for +s[p], 2 * splits for the
// root's constant 1. A tie keeps the ancestor's.
template <bool Source, class Real>
std::int32_t reach(Tree tree, const Real* s, bool poisoned, std::int32_t* node, Real* u, std::int32_t* from) {
    const Real half = Real(0.5);
    node[0] = 0;
    u[0] = poisoned ? std::numeric_limits<Real>::quiet_NaN() : Real(1.5);
    if constexpr (Source) from[0] = 2 * tree.splits;
    std::int32_t count = 1;
    for (std::int32_t k = 0; k < count; ++k) {
        const std::int32_t t = node[k];
        if (t >= tree.splits) break;  // leaves come last
        const Real above = u[k], score = s[t];
        // Appending without a branch: the entry is written in any case and counted if it is reached.
        const auto append = [&](std::int32_t side, Real v) {
            const bool takes = v < above || v != v;
            const Real value = takes ? v : above;
            node[count] = 2 * t + 1 + side;
            u[count] = value;
            if constexpr (Source) from[count] = takes ? 2 * t + side : from[k];
            count += !(value <= 0);
        };
        append(0, half - score);
        append(1, half + score);
    }
    return count;
}

// z = clip(u, 0, a), where NaN stays NaN.
template <class Real>
Real route(Real u, Real a) {
    const Real positive = u < 0 ? Real(0) : u;
    return positive > a ? a : positive;
}

}  // namespace prunus
