// tree_traverse: from split scores to routes and node masses without storing the rewards, and its gradient.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "descend.hpp"
#include "memory.hpp"
#include "parallel.hpp"
#include "roots.hpp"
#include "backward.hpp"
#include "tree.hpp"

namespace prunus {

// The pairs of sample and node that one part of the rows reaches, in the order of the descent.
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
    std::vector<std::int64_t> count;  // of each node; `lay_out` turns it into the place of the node's next value
};

template <class Real>
void collect(const Samples<Real>& scores, Rows rows, Reached<Real>& reached) {
    reached.count.assign(scores.tree.nodes(), 0);
    for_blocks<Real>(scores, rows, nullptr, [&](Descent<Real>& descent, Rows block) {
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
    const std::int32_t* row = reached.row.data();
    const Real* u = reached.u.data();
    for (const auto [first_row, node, count] : reached.visits) {
        Real* block = z + first_row * nodes;
        if (node == 0) std::memset(block, 0, count * nodes * sizeof(Real));  // all rows reach the root
        const Real mass = a[node];
        for (std::int32_t k = 0; k < count; ++k) block[row[k] * nodes + node] = route(u[k], mass);
        row += count;
        u += count;
    }
}

template <class Real>
void traverse_forward(const Samples<Real>& scores, double lam, int threads, Real* z, Real* a) {
    const Tree tree = scores.tree;
    const std::int64_t n_parts = number_of_parts(scores.pairs());
    std::vector<Reached<Real>> parts(n_parts);
    parallel(threads, n_parts, [&](std::int64_t p) { collect(scores, Rows::part(scores.n, n_parts, p), parts[p]); });
    NodeValues<Real> values = lay_out<Real>(tree, scores.weight != nullptr, parts);
    parallel(threads, n_parts, [&](std::int64_t p) { gather(scores, parts[p], values); });

    const std::vector<double> roots = own_roots(tree, values, lam, n_parts > 1 ? threads : 1);
    for (std::int32_t t = 0; t < tree.nodes(); ++t) {
        const Real own = floor_to<Real>(roots[t]);
        a[t] = t == 0 ? own : std::min(own, a[Tree::parent(t)]);  // by the lemma only rounding is capped
    }
    prefer_huge_pages(z, scores.pairs() * sizeof(Real));
    parallel(threads, n_parts, [&](std::int64_t p) { write_routes(tree, parts[p], a, z); });
}

// x if the condition holds, else 0, without a branch. Compilers would turn a conditional expression into a branch that
// is hard to predict. Unlike a product with 0 or 1 this does not pass on NaN.
template <class Real>
Real select(bool condition, Real x) {
    using Bits = std::conditional_t<sizeof(Real) == sizeof(std::uint32_t), std::uint32_t, std::uint64_t>;
    static_assert(sizeof(Bits) == sizeof(Real));
    Bits bits;
    std::memcpy(&bits, &x, sizeof x);
    bits &= -static_cast<Bits>(condition);
    std::memcpy(&x, &bits, sizeof x);
    return x;
}

template <class Real>
void sum_mass_gradients(const Samples<Real>& scores, Rows rows, const OutputGradients<Real>& grad, const Real* a,
                        MassGradients& sums) {
    const std::int64_t nodes = scores.tree.nodes();
    Buffer<std::int32_t> bounded(Descent<Real>::block_rows(scores.tree));  // rows whose z equals the mass
    for_blocks<Real>(scores, rows, nullptr, [&](Descent<Real>& descent, Rows block) {
        const Real* grad_z = grad.z + block.begin * nodes;
        descent.template operator()<false>(block, [&](std::int32_t t, const Arrivals<Real>& here) {
            const Real mass = a[t];
            if (!is_free(mass)) return;
            const auto [arrived, row, u, from] = here;
            std::int32_t* bound = bounded.data();
            double mass_grad = 0, active_weight = 0;
            std::int32_t count = 0;
            for (std::int32_t k = 0; k < arrived; ++k) {
                bound[count] = row[k];
                count += u[k] >= mass;
                active_weight += select(u[k] > mass, scores.weight_of(block.begin + row[k]));
            }
            for (std::int32_t k = 0; k < count; ++k) mass_grad += grad_z[bound[k] * nodes + t];
            sums.mass_grad[t] += mass_grad;
            sums.active_weight[t] += active_weight;
        });
    });
}

// Adds the gradients of one node's arrivals to the splits that their rewards come from. `grad_s` has one more column
// than there are splits, for the gradient of the root's constant reward.
template <class Real>
void add_to_scores(const Samples<Real>& scores, std::int64_t first_row, std::int32_t t, const Arrivals<Real>& here,
                   Real mass, Real sum_grad, const Real* grad_z, Real* grad_s) {
    const std::int64_t nodes = scores.tree.nodes(), columns = scores.tree.splits + 1;
    const Real* weight = scores.weight == nullptr ? nullptr : scores.weight + first_row;
    const auto [count, rows, us, froms] = here;
    for (std::int32_t k = 0; k < count; ++k) {
        const std::int64_t row = rows[k];
        const std::int32_t from = froms[k];
        const Real u = us[k], active = weight == nullptr ? sum_grad : sum_grad * weight[row];
        const Real to_u = select(u < mass, grad_z[row * nodes + t]) + select(u > mass, active);
        grad_s[row * columns + (from >> 1)] += select(from & 1, to_u) - select(!(from & 1), to_u);
    }
}

template <class Real>
void add_to_weights(const Arrivals<Real>& here, Real mass, Real sum_grad, Real* grad_weight) {
    for (std::int32_t k = 0; k < here.count; ++k) {
        grad_weight[here.row[k]] += here.u[k] > mass ? sum_grad * (here.u[k] - mass) : Real(0);
    }
}

template <class Real>
void write_gradients(const Samples<Real>& scores, Rows rows, const OutputGradients<Real>& grad, const Real* a,
                     const std::vector<Real>& sum_grad, Real* grad_s, Real* grad_weight) {
    const std::int64_t splits = scores.tree.splits;
    Buffer<Real> to_s(Descent<Real>::block_rows(scores.tree) * (splits + 1));
    std::fill(grad_weight + rows.begin, grad_weight + rows.end, Real(0));
    for_blocks(scores, rows, grad.z, [&](Descent<Real>& descent, Rows block) {
        const Real* grad_z = grad.z + block.begin * scores.tree.nodes();
        std::fill_n(to_s.data(), (block.end - block.begin) * (splits + 1), Real(0));
        descent.template operator()<true>(block, [&](std::int32_t t, const Arrivals<Real>& here) {
            if (scores.weight != nullptr) add_to_weights(here, a[t], sum_grad[t], grad_weight + block.begin);
            if (t == 0) return;  // the root's reward is constant
            add_to_scores(scores, block.begin, t, here, a[t], sum_grad[t], grad_z, to_s.data());
        });
        for (std::int64_t i = block.begin; i < block.end; ++i) {
            std::copy_n(to_s.data() + (i - block.begin) * (splits + 1), splits, grad_s + i * splits);
        }
    });
}

template <class Real>
void traverse_backward(const Samples<Real>& scores, const OutputGradients<Real>& grad, const Real* a, double lam,
                       int threads, Real* grad_s, Real* grad_lam, Real* grad_weight) {
    const std::int32_t nodes = scores.tree.nodes();
    const std::int64_t n_parts = number_of_parts(scores.pairs());
    std::vector<MassGradients> sums(n_parts, MassGradients(nodes));
    if (any_free(a, nodes)) {
        parallel(threads, n_parts, [&](std::int64_t p) {
            sum_mass_gradients(scores, Rows::part(scores.n, n_parts, p), grad, a, sums[p]);
        });
    }
    const std::vector<Real> sum_grad = sum_gradients(sums, grad.a, a, nullptr, lam, nodes, grad_lam);
    prefer_huge_pages(grad_s, scores.n * scores.tree.splits * sizeof(Real));
    parallel(threads, n_parts, [&](std::int64_t p) {
        write_gradients(scores, Rows::part(scores.n, n_parts, p), grad, a, sum_grad, grad_s, grad_weight);
    });
}

}  // namespace prunus
