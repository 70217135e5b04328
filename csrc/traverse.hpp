// tree_traverse: from split scores to routes and node masses without storing the rewards, and its gradient.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "descend.hpp"
#include "memory.hpp"
#include "parallel.hpp"
#include "roots.hpp"
#include "slopes.hpp"
#include "tree.hpp"

namespace prunus {

// What the samples of one thread reach, in the order of the descent.
template <class Real>
struct Reached {
    struct Visit {
        std::int64_t first_row;  // of the block
        std::int32_t node;
        std::int32_t count;
    };
    std::vector<Visit> visits;
    Buffer<std::int32_t> row;  // within the block
    Buffer<Real> u;
    std::int64_t size = 0;
    std::vector<std::int64_t> count;  // of each node; `lay_out` turns it into where the node's values go
};

template <class Real>
void collect(const Samples<Real>& scores, Rows rows, Reached<Real>& reached) {
    reached.count.assign(scores.tree.nodes(), 0);
    for_blocks(scores, rows, [&](Descent<Real>& descent, Rows block) {
        descent.template operator()<false>(block, [&](std::int32_t t, const Arrivals<Real>& here) {
            reached.row.reserve(reached.size + here.count);
            reached.u.reserve(reached.size + here.count);
            std::copy_n(here.row, here.count, reached.row.data() + reached.size);
            std::copy_n(here.u, here.count, reached.u.data() + reached.size);
            reached.visits.push_back({block.begin, t, here.count});
            reached.size += here.count;
            reached.count[t] += here.count;
        });
    });
}

template <class Real>
void gather(const Samples<Real>& scores, Reached<Real>& reached, NodeValues<Real>& values) {
    std::int64_t next = 0;
    for (const auto& visit : reached.visits) {
        const std::int64_t place = reached.count[visit.node];
        std::copy_n(reached.u.data() + next, visit.count, values.u.data() + place);
        if (values.weighted) {
            for (std::int32_t k = 0; k < visit.count; ++k) {
                values.weight[place + k] = scores.weight_of(visit.first_row + reached.row[next + k]);
            }
        }
        reached.count[visit.node] += visit.count;
        next += visit.count;
    }
}

template <class Real>
void write_routes(Tree tree, const Reached<Real>& reached, const Real* a, Real* z) {
    const std::int64_t nodes = tree.nodes();
    std::int64_t next = 0;
    for (const auto& visit : reached.visits) {
        Real* block = z + visit.first_row * nodes;
        if (visit.node == 0) std::memset(block, 0, visit.count * nodes * sizeof(Real));  // all rows reach the root
        const Real mass = a[visit.node];
        for (std::int32_t k = 0; k < visit.count; ++k, ++next) {
            block[reached.row[next] * nodes + visit.node] = route(reached.u[next], mass);
        }
    }
}

template <class Real>
void traverse_forward(const Samples<Real>& scores, double lam, int threads, Real* z, Real* a) {
    const Tree tree = scores.tree;
    threads = worthwhile(threads, scores.pairs());
    std::vector<Reached<Real>> parts(threads);
    parallel(threads, threads, [&](std::int64_t p) { collect(scores, Rows::part(scores.n, threads, p), parts[p]); });
    NodeValues<Real> values = lay_out<Real>(tree, scores.weight != nullptr, parts);
    parallel(threads, threads, [&](std::int64_t p) { gather(scores, parts[p], values); });

    const std::vector<double> roots = own_roots(tree, values, lam, threads);
    for (std::int32_t t = 0; t < tree.nodes(); ++t) {
        const Real own = floor_to<Real>(roots[t]);
        a[t] = t == 0 ? own : std::min(own, a[Tree::parent(t)]);  // equal up to rounding, by the lemma
    }
    prefer_huge_pages(z, scores.pairs() * sizeof(Real));
    parallel(threads, threads, [&](std::int64_t p) { write_routes(tree, parts[p], a, z); });
}

// The arrivals of one node with what belongs to them, side by side: the loops over these have no branch that depends
// on the data and are vectorised.
template <class Real>
struct Gathered {
    Buffer<Real> grad_z, weight, to_score;
    explicit Gathered(std::size_t size) : grad_z(size), weight(size), to_score(size) {}

    void fill(const Samples<Real>& scores, Rows block, std::int32_t t, const Arrivals<Real>& here, const Real* all_grad_z) {
        const std::int64_t nodes = scores.tree.nodes();
        const Real* from = all_grad_z + block.begin * nodes + t;
        for (std::int32_t k = 0; k < here.count; ++k) grad_z[k] = from[here.row[k] * nodes];
        for (std::int32_t k = 0; k < here.count; ++k) weight[k] = scores.weight_of(block.begin + here.row[k]);
    }
};

template <class Real>
void sum_pull(const Samples<Real>& scores, Rows rows, const Gradients<Real>& grad, const Real* a, Pull& sums) {
    Gathered<Real> gathered(Descent<Real>::block_rows(scores.tree));
    for_blocks(scores, rows, [&](Descent<Real>& descent, Rows block) {
        descent.template operator()<false>(block, [&](std::int32_t t, const Arrivals<Real>& here) {
            const Real mass = a[t];
            if (!is_free(mass)) return;
            gathered.fill(scores, block, t, here, grad.z);
            const Real *u = here.u, *from_z = gathered.grad_z.data(), *weight = gathered.weight.data();
            Real pull = 0, held = 0;
#pragma omp simd reduction(+ : pull, held)
            for (std::int32_t k = 0; k < here.count; ++k) {
                pull += u[k] >= mass ? from_z[k] : Real(0);
                held += u[k] > mass ? weight[k] : Real(0);
            }
            sums.pull[t] += pull;
            sums.held[t] += held;
        });
    });
}

// Adds the gradient of one node's arrivals to the splits that their rewards come from. `grad_s` has one more column
// than there are splits: it takes what goes to the root's constant reward.
template <class Real>
void add_to_scores(const Arrivals<Real>& here, Real mass, Real slope, Tree tree, Gathered<Real>& gathered, Real* grad_s) {
    const Real *u = here.u, *from_z = gathered.grad_z.data(), *weight = gathered.weight.data();
    Real* to_score = gathered.to_score.data();
#pragma omp simd
    for (std::int32_t k = 0; k < here.count; ++k) {
        const Real to_u = (u[k] < mass ? from_z[k] : Real(0)) + (u[k] > mass ? slope * weight[k] : Real(0));
        to_score[k] = here.from[k] & 1 ? to_u : -to_u;
    }
    const std::int64_t columns = tree.splits + 1;
    for (std::int32_t k = 0; k < here.count; ++k) grad_s[here.row[k] * columns + (here.from[k] >> 1)] += to_score[k];
}

template <class Real>
void add_to_weights(const Arrivals<Real>& here, Real mass, Real slope, Real* grad_weight) {
    for (std::int32_t k = 0; k < here.count; ++k) {
        grad_weight[here.row[k]] += here.u[k] > mass ? slope * (here.u[k] - mass) : Real(0);
    }
}

template <class Real>
void write_gradients(const Samples<Real>& scores, Rows rows, const Gradients<Real>& grad, const Real* a,
                     const std::vector<Real>& slope, Real* grad_s, Real* grad_weight) {
    const std::int64_t splits = scores.tree.splits, room = Descent<Real>::block_rows(scores.tree);
    Gathered<Real> gathered(room);
    Buffer<Real> to_s(room * (splits + 1));
    std::fill(grad_weight + rows.begin, grad_weight + rows.end, Real(0));
    for_blocks(scores, rows, [&](Descent<Real>& descent, Rows block) {
        std::fill_n(to_s.data(), (block.end - block.begin) * (splits + 1), Real(0));
        descent.template operator()<true>(block, [&](std::int32_t t, const Arrivals<Real>& here) {
            if (scores.weight != nullptr) add_to_weights(here, a[t], slope[t], grad_weight + block.begin);
            if (t == 0) return;  // a constant reward
            gathered.fill(scores, block, t, here, grad.z);
            add_to_scores(here, a[t], slope[t], scores.tree, gathered, to_s.data());
        });
        for (std::int64_t i = block.begin; i < block.end; ++i) {
            std::copy_n(to_s.data() + (i - block.begin) * (splits + 1), splits, grad_s + i * splits);
        }
    });
}

template <class Real>
void traverse_backward(const Samples<Real>& scores, const Gradients<Real>& grad, const Real* a, double lam, int threads,
                       Real* grad_s, Real* grad_lam, Real* grad_weight) {
    const std::int32_t nodes = scores.tree.nodes();
    threads = worthwhile(threads, scores.pairs());
    std::vector<Pull> sums(threads, Pull(nodes));
    if (any_free(a, nodes)) {
        parallel(threads, threads,
                 [&](std::int64_t p) { sum_pull(scores, Rows::part(scores.n, threads, p), grad, a, sums[p]); });
    }
    const std::vector<Real> slope = slopes(sums, grad.a, a, nullptr, lam, nodes, grad_lam);
    prefer_huge_pages(grad_s, scores.n * scores.tree.splits * sizeof(Real));
    parallel(threads, threads, [&](std::int64_t p) {
        write_gradients(scores, Rows::part(scores.n, threads, p), grad, a, slope, grad_s, grad_weight);
    });
}

}  // namespace prunus
