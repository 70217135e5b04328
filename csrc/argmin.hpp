// tree_argmin: routes and node masses for arbitrary rewards, where nodes may share a mass, and its gradient.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "memory.hpp"
#include "parallel.hpp"
#include "roots.hpp"
#include "backward.hpp"
#include "tree.hpp"

namespace prunus {

// u = q + 1/2 of one pair of sample and node. It is NaN for every node of a sample whose weight is invalid.
template <class Real>
Real shifted(Real q, bool invalid) {
    return invalid ? std::numeric_limits<Real>::quiet_NaN() : q + Real(0.5);
}

// What one part of the rows holds: how many u > 0 each node has, and whether some sample prefers the node to its
// parent.
struct NodeCounts {
    std::vector<std::int64_t> count;  // `lay_out` turns it into the place of the node's next value
    std::vector<char> preferred;
};

template <class Real>
void count_rewards(const Samples<Real>& rewards, Rows rows, NodeCounts& counts) {
    const std::int32_t nodes = rewards.tree.nodes();
    counts.count.assign(nodes, 0);
    counts.preferred.assign(nodes, 0);
    for (std::int64_t i = rows.begin; i < rows.end; ++i) {
        if (rewards.has_invalid_weight(i)) continue;
        const Real* q = rewards.row(i);
        for (std::int32_t t = 0; t < nodes; ++t) counts.count[t] += q[t] + Real(0.5) > 0;
        for (std::int32_t t = 1; t < nodes; ++t) {
            // A sample whose reward at the parent is NaN takes no part there, so it prefers the child.
            counts.preferred[t] |= !(q[t] <= q[Tree::parent(t)]) && !std::isnan(q[t]);
        }
    }
}

template <class Real>
void gather_rewards(const Samples<Real>& rewards, Rows rows, NodeCounts& counts, NodeValues<Real>& values) {
    const std::int32_t nodes = rewards.tree.nodes();
    for (std::int64_t i = rows.begin; i < rows.end; ++i) {
        if (rewards.has_invalid_weight(i)) continue;
        const Real* q = rewards.row(i);
        const Real weight = rewards.weight_of(i);
        for (std::int32_t t = 0; t < nodes; ++t) {
            const Real u = q[t] + Real(0.5);
            if (!(u > 0)) continue;
            const std::int64_t place = counts.count[t]++;
            values.u[place] = u;
            if (values.weighted) values.weight[place] = weight;
        }
    }
}

// Where no sample prefers a child to its parent, the child's root is at most its parent's by the lemma of the README.
// This function undoes rounding there, so that such nodes are never pooled. It returns whether some child's root still
// exceeds its parent's.
inline bool order_monotone_edges(Tree tree, const std::vector<NodeCounts>& parts, std::vector<double>& roots) {
    bool violated = false;
    for (std::int32_t t = 1; t < tree.nodes(); ++t) {
        const double parent = roots[Tree::parent(t)];
        const auto prefers = [t](const NodeCounts& counts) { return counts.preferred[t] != 0; };
        if (std::none_of(parts.begin(), parts.end(), prefers)) roots[t] = std::min(roots[t], parent);
        violated = violated || roots[t] > parent;
    }
    return violated;
}

template <class Real>
std::vector<double> node_roots(const Samples<Real>& rewards, double lam, int threads) {
    const std::int64_t n_parts = number_of_parts(rewards.pairs());
    std::vector<NodeCounts> parts(n_parts);
    parallel(threads, n_parts,
             [&](std::int64_t p) { count_rewards(rewards, Rows::part(rewards.n, n_parts, p), parts[p]); });
    NodeValues<Real> values = lay_out<Real>(rewards.tree, rewards.weight != nullptr, parts);
    parallel(threads, n_parts,
             [&](std::int64_t p) { gather_rewards(rewards, Rows::part(rewards.n, n_parts, p), parts[p], values); });
    std::vector<double> roots = own_roots(rewards.tree, values, lam, n_parts > 1 ? threads : 1);
    if (order_monotone_edges(rewards.tree, parts, roots)) pool(rewards.tree, values, lam, roots);
    return roots;
}

template <class Real>
void argmin_forward(const Samples<Real>& rewards, double lam, int threads, Real* z, Real* a, std::int64_t* group) {
    const Tree tree = rewards.tree;
    const std::int64_t n_parts = number_of_parts(rewards.pairs());
    std::vector<double> mass = node_roots(rewards, lam, threads);
    for (std::int32_t t = 0; t < tree.nodes(); ++t) {
        const double above = t == 0 ? 1.0 : mass[Tree::parent(t)];
        group[t] = mass[t] > above ? group[Tree::parent(t)] : t;  // a node with a larger root joins its parent
        mass[t] = std::min(mass[t], above);
        a[t] = floor_to<Real>(mass[t]);
    }
    prefer_huge_pages(z, rewards.pairs() * sizeof(Real));
    parallel(threads, n_parts, [&](std::int64_t p) {
        const Rows rows = Rows::part(rewards.n, n_parts, p);
        for (std::int64_t i = rows.begin; i < rows.end; ++i) {
            const Real* q = rewards.row(i);
            Real* row = z + i * tree.nodes();
            const bool invalid = rewards.has_invalid_weight(i);
            for (std::int32_t t = 0; t < tree.nodes(); ++t) row[t] = route(shifted(q[t], invalid), a[t]);
        }
    });
}

template <class Real>
void sum_mass_gradients_of_rewards(const Samples<Real>& rewards, Rows rows, const OutputGradients<Real>& grad,
                                   const Real* a, MassGradients& sums) {
    const std::int32_t nodes = rewards.tree.nodes();
    for (std::int64_t i = rows.begin; i < rows.end; ++i) {
        if (rewards.has_invalid_weight(i)) continue;
        const Real* q = rewards.row(i);
        const Real* grad_z = grad.z + i * nodes;
        const double weight = rewards.weight_of(i);
        for (std::int32_t t = 0; t < nodes; ++t) {
            const Real u = q[t] + Real(0.5);
            sums.mass_grad[t] += u >= a[t] ? static_cast<double>(grad_z[t]) : 0.0;
            sums.active_weight[t] += u > a[t] ? weight : 0.0;
        }
    }
}

template <class Real>
void write_reward_gradients(const Samples<Real>& rewards, Rows rows, const OutputGradients<Real>& grad, const Real* a,
                            const std::vector<Real>& sum_grad, Real* grad_q, Real* grad_weight) {
    const std::int32_t nodes = rewards.tree.nodes();
    for (std::int64_t i = rows.begin; i < rows.end; ++i) {
        const Real* q = rewards.row(i);
        const Real* grad_z = grad.z + i * nodes;
        const Real weight = rewards.weight_of(i);
        const bool invalid = rewards.has_invalid_weight(i);
        Real to_weight = 0;
        for (std::int32_t t = 0; t < nodes; ++t) {
            const Real u = shifted(q[t], invalid);
            const bool active = u > a[t];
            const Real from_z = u > 0 && u < a[t] ? grad_z[t] : Real(0);
            grad_q[i * nodes + t] = from_z + (active ? weight * sum_grad[t] : Real(0));
            to_weight += active && sum_grad[t] != 0 ? (u - a[t]) * sum_grad[t] : Real(0);
        }
        grad_weight[i] = to_weight;
    }
}

template <class Real>
void argmin_backward(const Samples<Real>& rewards, const OutputGradients<Real>& grad, const Real* a,
                     const std::int64_t* group, double lam, int threads, Real* grad_q, Real* grad_lam,
                     Real* grad_weight) {
    const std::int32_t nodes = rewards.tree.nodes();
    const std::int64_t n_parts = number_of_parts(rewards.pairs());
    std::vector<MassGradients> sums(n_parts, MassGradients(nodes));
    if (any_free(a, nodes)) {
        parallel(threads, n_parts, [&](std::int64_t p) {
            sum_mass_gradients_of_rewards(rewards, Rows::part(rewards.n, n_parts, p), grad, a, sums[p]);
        });
    }
    const std::vector<Real> sum_grad = sum_gradients(sums, grad.a, a, group, lam, nodes, grad_lam);
    prefer_huge_pages(grad_q, rewards.pairs() * sizeof(Real));
    parallel(threads, n_parts, [&](std::int64_t p) {
        write_reward_gradients(rewards, Rows::part(rewards.n, n_parts, p), grad, a, sum_grad, grad_q, grad_weight);
    });
}

}  // namespace prunus
