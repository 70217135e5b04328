// tree_traverse: from split scores to routes and node masses without storing the rewards, and its gradient.
//
// Only the pairs (sample, node) with u > 0 are ever visited: about one path a sample once the splits have a margin.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "memory.hpp"
#include "parallel.hpp"
#include "roots.hpp"
#include "slopes.hpp"
#include "tree.hpp"

namespace prunus {

// What the samples of one thread reach, sample by sample: the entries of sample begin + k are [end[k - 1], end[k]).
template <class Real>
struct Reached {
    Buffer<std::int32_t> node;
    Buffer<Real> u;
    std::vector<std::int64_t> end;
    std::vector<std::int64_t> count;  // entries of each node; after `gather` has begun, where its next one goes
};

template <class Real>
void collect(const Samples<Real>& scores, Rows rows, Reached<Real>& reached) {
    const std::int32_t nodes = scores.tree.nodes();
    reached.count.assign(nodes, 0);
    reached.end.reserve(rows.end - rows.begin);
    std::int64_t used = 0;
    for (std::int64_t i = rows.begin; i < rows.end; ++i) {
        reached.node.reserve(used + nodes + 1);
        reached.u.reserve(used + nodes + 1);
        const std::int32_t* node = reached.node.data() + used;
        const std::int32_t count = reach<false, Real>(
            scores.tree, scores.row(i), scores.poisoned(i), reached.node.data() + used, reached.u.data() + used, nullptr);
        for (std::int32_t k = 0; k < count; ++k) ++reached.count[node[k]];
        used += count;
        reached.end.push_back(used);
    }
}

template <class Real>
void gather(const Samples<Real>& scores, Rows rows, Reached<Real>& reached, NodeValues<Real>& values) {
    std::int64_t k = 0;
    for (std::int64_t i = rows.begin; i < rows.end; ++i) {
        const std::int64_t end = reached.end[i - rows.begin];
        const Real weight = scores.weight_of(i);
        for (; k < end; ++k) {
            const std::int64_t place = reached.count[reached.node[k]]++;
            values.u[place] = reached.u[k];
            if (values.weighted) values.weight[place] = weight;
        }
    }
}

template <class Real>
void write_routes(const Samples<Real>& scores, Rows rows, const Reached<Real>& reached, const Real* a, Real* z) {
    const std::int32_t nodes = scores.tree.nodes();
    std::int64_t k = 0;
    for (std::int64_t i = rows.begin; i < rows.end; ++i) {
        Real* row = z + i * nodes;
        std::memset(row, 0, nodes * sizeof(Real));
        for (const std::int64_t end = reached.end[i - rows.begin]; k < end; ++k) {
            row[reached.node[k]] = route(reached.u[k], a[reached.node[k]]);
        }
    }
}

template <class Real>
void traverse_forward(const Samples<Real>& scores, double lam, int threads, Real* z, Real* a) {
    const Tree tree = scores.tree;
    threads = worthwhile(threads, scores.pairs());
    std::vector<Reached<Real>> parts(threads);
    parallel(threads, threads, [&](std::int64_t p) { collect(scores, Rows(scores.n, threads, p), parts[p]); });
    NodeValues<Real> values = lay_out<Real>(tree, scores.weight != nullptr, parts);
    parallel(threads, threads, [&](std::int64_t p) { gather(scores, Rows(scores.n, threads, p), parts[p], values); });

    const std::vector<double> roots = own_roots(tree, values, lam, threads);
    for (std::int32_t t = 0; t < tree.nodes(); ++t) {
        const Real own = floor_to<Real>(roots[t]);
        a[t] = t == 0 ? own : std::min(own, a[Tree::parent(t)]);  // equal up to rounding, by the lemma
    }
    prefer_huge_pages(z, scores.pairs() * sizeof(Real));
    parallel(threads, threads, [&](std::int64_t p) { write_routes(scores, Rows(scores.n, threads, p), parts[p], a, z); });
}

template <class Real>
void sum_pull(const Samples<Real>& scores, Rows rows, const Gradients<Real>& grad, const Real* a, Pull& sums) {
    const std::int32_t nodes = scores.tree.nodes();
    Buffer<std::int32_t> node(nodes + 1);
    Buffer<Real> u(nodes + 1);
    for (std::int64_t i = rows.begin; i < rows.end; ++i) {
        const std::int32_t count =
            reach<false, Real>(scores.tree, scores.row(i), scores.poisoned(i), node.data(), u.data(), nullptr);
        const Real* grad_z = grad.z + i * nodes;
        const double weight = scores.weight_of(i);
        for (std::int32_t k = 0; k < count; ++k) {
            const std::int32_t t = node[k];
            sums.pull[t] += u[k] >= a[t] ? static_cast<double>(grad_z[t]) : 0.0;
            sums.held[t] += u[k] > a[t] ? weight : 0.0;
        }
    }
}

template <class Real>
void write_gradients(const Samples<Real>& scores, Rows rows, const Gradients<Real>& grad, const Real* a,
                     const std::vector<Real>& slope, Real* grad_s, Real* grad_weight) {
    const std::int32_t nodes = scores.tree.nodes(), splits = scores.tree.splits;
    Buffer<std::int32_t> node(nodes + 1), from(nodes + 1);
    Buffer<Real> u(nodes + 1), row(splits + 1);  // the last of row takes what goes to the root's constant
    for (std::int64_t i = rows.begin; i < rows.end; ++i) {
        const std::int32_t count =
            reach<true, Real>(scores.tree, scores.row(i), scores.poisoned(i), node.data(), u.data(), from.data());
        const Real* grad_z = grad.z + i * nodes;
        const Real weight = scores.weight_of(i);
        Real to_weight = 0;
        std::memset(row.data(), 0, splits * sizeof(Real));
        for (std::int32_t k = 0; k < count; ++k) {
            const std::int32_t t = node[k];
            const bool active = u[k] > a[t];
            const Real to_u = (u[k] < a[t] ? grad_z[t] : Real(0)) + (active ? weight * slope[t] : Real(0));
            row[from[k] >> 1] += from[k] & 1 ? to_u : -to_u;
            to_weight += active ? (u[k] - a[t]) * slope[t] : Real(0);
        }
        std::memcpy(grad_s + i * splits, row.data(), splits * sizeof(Real));
        grad_weight[i] = to_weight;
    }
}

template <class Real>
void traverse_backward(const Samples<Real>& scores, const Gradients<Real>& grad, const Real* a, double lam, int threads,
                       Real* grad_s, Real* grad_lam, Real* grad_weight) {
    const std::int32_t nodes = scores.tree.nodes();
    threads = worthwhile(threads, scores.pairs());
    std::vector<Pull> sums(threads, Pull(nodes));
    if (any_free(a, nodes)) {
        parallel(threads, threads,
                 [&](std::int64_t p) { sum_pull(scores, Rows(scores.n, threads, p), grad, a, sums[p]); });
    }
    const std::vector<Real> slope = slopes(sums, grad.a, a, nullptr, lam, nodes, grad_lam);
    prefer_huge_pages(grad_s, scores.n * scores.tree.splits * sizeof(Real));
    parallel(threads, threads, [&](std::int64_t p) {
        write_gradients(scores, Rows(scores.n, threads, p), grad, a, slope, grad_s, grad_weight);
    });
}

}  // namespace prunus
