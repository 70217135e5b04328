// tree_argmin: routes and node masses for arbitrary rewards, pooled where they must be, and its gradient.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "memory.hpp"
#include "parallel.hpp"
#include "roots.hpp"
#include "slopes.hpp"
#include "tree.hpp"

namespace prunus {

// u = q + 1/2 of one pair; NaN for every node of a sample whose weight is no number.
template <class Real>
Real shifted(Real q, bool poisoned) {
    return poisoned ? std::numeric_limits<Real>::quiet_NaN() : q + Real(0.5);
}

// What one thread finds in its rows: how many u > 0 each node has, and whether some sample prefers it to its parent.
struct Census {
    std::vector<std::int64_t> count;  // after `lay_out_rewards`, where the node's next value goes
    std::vector<char> preferred;
};

template <class Real>
void take_census(const Samples<Real>& rewards, Rows rows, Census& census) {
    const std::int32_t nodes = rewards.tree.nodes();
    census.count.assign(nodes, 0);
    census.preferred.assign(nodes, 0);
    for (std::int64_t i = rows.begin; i < rows.end; ++i) {
        if (rewards.poisoned(i)) continue;
        const Real* q = rewards.row(i);
        for (std::int32_t t = 0; t < nodes; ++t) census.count[t] += q[t] + Real(0.5) > 0;
        for (std::int32_t t = 1; t < nodes; ++t) {
            // A sample that the parent lacks, for its reward there is NaN, prefers the child.
            census.preferred[t] |= !(q[t] <= q[Tree::parent(t)]) && !std::isnan(q[t]);
        }
    }
}

template <class Real>
void gather_rewards(const Samples<Real>& rewards, Rows rows, Census& census, NodeValues<Real>& values) {
    const std::int32_t nodes = rewards.tree.nodes();
    for (std::int64_t i = rows.begin; i < rows.end; ++i) {
        if (rewards.poisoned(i)) continue;
        const Real* q = rewards.row(i);
        const Real weight = rewards.weight_of(i);
        for (std::int32_t t = 0; t < nodes; ++t) {
            const Real u = q[t] + Real(0.5);
            if (!(u > 0)) continue;
            const std::int64_t place = census.count[t]++;
            values.u[place] = u;
            if (values.weighted) values.weight[place] = weight;
        }
    }
}

// Where no sample prefers a child to its parent the roots are ordered by the lemma: undoes rounding there, so that
// such nodes are never pooled. Returns whether some child's root still exceeds its parent's.
inline bool order_monotone_edges(Tree tree, const std::vector<Census>& parts, std::vector<double>& roots) {
    bool violated = false;
    for (std::int32_t t = 1; t < tree.nodes(); ++t) {
        const double parent = roots[Tree::parent(t)];
        const auto prefers = [t](const Census& census) { return census.preferred[t] != 0; };
        if (std::none_of(parts.begin(), parts.end(), prefers)) roots[t] = std::min(roots[t], parent);
        violated = violated || roots[t] > parent;
    }
    return violated;
}

template <class Real>
std::vector<double> node_roots(const Samples<Real>& rewards, double lam, int threads) {
    const std::int64_t cut = parts_of(rewards.pairs());
    std::vector<Census> parts(cut);
    parallel(threads, cut, [&](std::int64_t p) { take_census(rewards, Rows::part(rewards.n, cut, p), parts[p]); });
    NodeValues<Real> values = lay_out<Real>(rewards.tree, rewards.weight != nullptr, parts);
    parallel(threads, cut,
             [&](std::int64_t p) { gather_rewards(rewards, Rows::part(rewards.n, cut, p), parts[p], values); });
    std::vector<double> roots = own_roots(rewards.tree, values, lam, cut > 1 ? threads : 1);
    if (order_monotone_edges(rewards.tree, parts, roots)) pool(rewards.tree, values, lam, roots);
    return roots;
}

template <class Real>
void argmin_forward(const Samples<Real>& rewards, double lam, int threads, Real* z, Real* a, std::int64_t* group) {
    const Tree tree = rewards.tree;
    const std::int64_t cut = parts_of(rewards.pairs());
    std::vector<double> mass = node_roots(rewards, lam, threads);
    for (std::int32_t t = 0; t < tree.nodes(); ++t) {
        const double above = t == 0 ? 1.0 : mass[Tree::parent(t)];
        group[t] = mass[t] > above ? group[Tree::parent(t)] : t;  // a node joins its parent where its root lies above
        mass[t] = std::min(mass[t], above);
        a[t] = floor_to<Real>(mass[t]);
    }
    prefer_huge_pages(z, rewards.pairs() * sizeof(Real));
    parallel(threads, cut, [&](std::int64_t p) {
        const Rows rows = Rows::part(rewards.n, cut, p);
        for (std::int64_t i = rows.begin; i < rows.end; ++i) {
            const Real* q = rewards.row(i);
            Real* row = z + i * tree.nodes();
            const bool poisoned = rewards.poisoned(i);
            for (std::int32_t t = 0; t < tree.nodes(); ++t) row[t] = route(shifted(q[t], poisoned), a[t]);
        }
    });
}

template <class Real>
void sum_pull_of_rewards(const Samples<Real>& rewards, Rows rows, const Gradients<Real>& grad, const Real* a,
                         Pull& sums) {
    const std::int32_t nodes = rewards.tree.nodes();
    for (std::int64_t i = rows.begin; i < rows.end; ++i) {
        if (rewards.poisoned(i)) continue;
        const Real* q = rewards.row(i);
        const Real* grad_z = grad.z + i * nodes;
        const double weight = rewards.weight_of(i);
        for (std::int32_t t = 0; t < nodes; ++t) {
            const Real u = q[t] + Real(0.5);
            sums.pull[t] += u >= a[t] ? static_cast<double>(grad_z[t]) : 0.0;
            sums.held[t] += u > a[t] ? weight : 0.0;
        }
    }
}

template <class Real>
void write_reward_gradients(const Samples<Real>& rewards, Rows rows, const Gradients<Real>& grad, const Real* a,
                            const std::vector<Real>& slope, Real* grad_q, Real* grad_weight) {
    const std::int32_t nodes = rewards.tree.nodes();
    for (std::int64_t i = rows.begin; i < rows.end; ++i) {
        const Real* q = rewards.row(i);
        const Real* grad_z = grad.z + i * nodes;
        const Real weight = rewards.weight_of(i);
        const bool poisoned = rewards.poisoned(i);
        Real to_weight = 0;
        for (std::int32_t t = 0; t < nodes; ++t) {
            const Real u = shifted(q[t], poisoned);
            const bool active = u > a[t];
            grad_q[i * nodes + t] = (u > 0 && u < a[t] ? grad_z[t] : Real(0)) + (active ? weight * slope[t] : Real(0));
            to_weight += active && slope[t] != 0 ? (u - a[t]) * slope[t] : Real(0);
        }
        grad_weight[i] = to_weight;
    }
}

template <class Real>
void argmin_backward(const Samples<Real>& rewards, const Gradients<Real>& grad, const Real* a,
                     const std::int64_t* group, double lam, int threads, Real* grad_q, Real* grad_lam,
                     Real* grad_weight) {
    const std::int32_t nodes = rewards.tree.nodes();
    const std::int64_t cut = parts_of(rewards.pairs());
    std::vector<Pull> sums(cut, Pull(nodes));
    if (any_free(a, nodes)) {
        parallel(threads, cut, [&](std::int64_t p) {
            sum_pull_of_rewards(rewards, Rows::part(rewards.n, cut, p), grad, a, sums[p]);
        });
    }
    const std::vector<Real> slope = slopes(sums, grad.a, a, group, lam, nodes, grad_lam);
    prefer_huge_pages(grad_q, rewards.pairs() * sizeof(Real));
    parallel(threads, cut, [&](std::int64_t p) {
        write_reward_gradients(rewards, Rows::part(rewards.n, cut, p), grad, a, slope, grad_q, grad_weight);
    });
}

}  // namespace prunus
