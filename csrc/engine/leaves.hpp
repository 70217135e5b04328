// Outputs of rows from the nodes that they reach,
//
//     out[i] = bias + shared x[i] + sum over nodes t of  z[i,t] (constant[t] + slope[t] x[i]),    z[i,t] = clip(u, 0, a)
//
// and the gradients that go back from the outputs to the parameters and to z.
#pragma once

#include <algorithm>
#include <cstdint>

#include "../memory.hpp"
#include "../parallel.hpp"
#include "../tree.hpp"
#include "examples.hpp"
#include "parameters.hpp"
#include "reach.hpp"

namespace prunus::engine {

// For each place of `Reached` the route z and, for leaves with slopes, the values of the node's functions. Those of the
// k-th output of a visit begin at outputs * visit.begin + k * visit.count.
template <class Real>
struct Routed {
    Buffer<Real> z, value;
};

// A few rows, one after another.
struct Block {
    static constexpr std::int32_t most = 64;

    Block(std::int64_t begin, std::int64_t end)
        : count(static_cast<std::int32_t>(std::min<std::int64_t>(most, end - begin))) {
        for (std::int32_t i = 0; i < count; ++i) row_[i] = static_cast<std::int32_t>(begin) + i;
    }
    Chosen rows() const { return {row_, count}; }

    std::int32_t count;

  private:
    std::int32_t row_[most];
};

template <class Real>
void add_shared(const Batch<Real>& batch, Rows rows, const View<Real>& view, Real* out) {
    const std::int64_t outputs = view.shape.outputs;
    for (std::int64_t i = rows.begin; i < rows.end; ++i) std::copy_n(view.bias, outputs, out + i * outputs);
    if (!view.shape.shared_slopes) return;
    Real product[Block::most];
    for (std::int64_t begin = rows.begin; begin < rows.end; begin += Block::most) {
        const Block block(begin, rows.end);
        for (std::int64_t k = 0; k < outputs; ++k) {
            products(batch.leaf_inputs(), block.rows(), view.shared_slope(k), product);
            for (std::int32_t i = 0; i < block.count; ++i) out[(begin + i) * outputs + k] += product[i];
        }
    }
}

// The values of a node's linear functions for the rows that reach it.
template <class Real>
void leaf_values(const Batch<Real>& batch, Chosen rows, std::int32_t t, const View<Real>& view, Real* value) {
    const Matrix<Real> x = batch.leaf_inputs().first(view.shape.slope_width);
    for (std::int64_t k = 0; k < view.shape.outputs; ++k, value += rows.count) {
        products(x, rows, view.slope(t, k), value);
        const Real constant = view.constant(t)[k];
        for (std::int32_t i = 0; i < rows.count; ++i) value[i] += constant;
    }
}

// Writes the outputs of some rows, (n, outputs), given the node masses, (nodes,).
template <class Real>
void outputs_of(const Batch<Real>& batch, Rows rows, const View<Real>& view, const Reached<Real>& reached,
                const Real* mass, Routed<Real>& routed, Real* out) {
    const std::int64_t outputs = view.shape.outputs;
    const bool slopes = view.shape.leaf_slopes;
    routed.z.reserve(reached.size);
    if (slopes) routed.value.reserve(reached.size * outputs);
    add_shared(batch, rows, view, out);
    for (const Visit& visit : reached.visits) {
        const Chosen here = reached.rows(visit);
        const Real *u = reached.u.data() + visit.begin, a = mass[visit.node];
        Real* z = routed.z.data() + visit.begin;
        for (std::int32_t i = 0; i < visit.count; ++i) z[i] = route(u[i], a);
        if (!slopes) {
            const Real* constant = view.constant(visit.node);
            for (std::int32_t i = 0; i < visit.count; ++i) {
                Real* of_row = out + here.row[i] * outputs;
                for (std::int64_t k = 0; k < outputs; ++k) of_row[k] += z[i] * constant[k];
            }
            continue;
        }
        Real* value = routed.value.data() + outputs * visit.begin;
        leaf_values(batch, here, visit.node, view, value);
        for (std::int64_t k = 0; k < outputs; ++k, value += visit.count) {
            for (std::int32_t i = 0; i < visit.count; ++i) out[here.row[i] * outputs + k] += z[i] * value[i];
        }
    }
}

// The gradient of the loss with respect to z at the places of a visit, given that of the outputs.
template <class Real>
void to_routes(const Visit& visit, const View<Real>& view, const Reached<Real>& reached, const Routed<Real>& routed,
               const Real* grad_out, Real* grad_z) {
    const std::int64_t outputs = view.shape.outputs;
    const std::int32_t* row = reached.row.data() + visit.begin;
    if (!view.shape.leaf_slopes) {
        const Real* constant = view.constant(visit.node);
        if (outputs == 1) {
            for (std::int32_t i = 0; i < visit.count; ++i) grad_z[i] = grad_out[row[i]] * constant[0];
            return;
        }
        for (std::int32_t i = 0; i < visit.count; ++i) {
            const Real* grad = grad_out + row[i] * outputs;
            Real sum = 0;
            for (std::int64_t k = 0; k < outputs; ++k) sum += grad[k] * constant[k];
            grad_z[i] = sum;
        }
        return;
    }
    std::fill_n(grad_z, visit.count, Real(0));
    const Real* value = routed.value.data() + outputs * visit.begin;
    for (std::int64_t k = 0; k < outputs; ++k, value += visit.count) {
        for (std::int32_t i = 0; i < visit.count; ++i) grad_z[i] += grad_out[row[i] * outputs + k] * value[i];
    }
}

// Adds the gradients of the functions of a visited node. `factor` is scratch memory.
template <class Real>
void to_leaf(const Batch<Real>& batch, const Visit& visit, const Reached<Real>& reached, const Routed<Real>& routed,
             const Real* grad_out, Buffer<Real>& factor, const View<Real>& grad) {
    const std::int64_t outputs = grad.shape.outputs;
    const Chosen here = reached.rows(visit);
    const Real* z = routed.z.data() + visit.begin;
    Real* constant = grad.constant(visit.node);
    if (!grad.shape.leaf_slopes && outputs == 1) {
        Real sum = 0;
        for (std::int32_t i = 0; i < visit.count; ++i) sum += z[i] * grad_out[here.row[i]];
        constant[0] += sum;
        return;
    }
    if (!grad.shape.leaf_slopes) {
        for (std::int32_t i = 0; i < visit.count; ++i) {
            const Real* of_row = grad_out + here.row[i] * outputs;
            for (std::int64_t k = 0; k < outputs; ++k) constant[k] += z[i] * of_row[k];
        }
        return;
    }
    factor.reserve(visit.count);
    const Matrix<Real> x = batch.leaf_inputs().first(grad.shape.slope_width);
    for (std::int64_t k = 0; k < outputs; ++k) {
        for (std::int32_t i = 0; i < visit.count; ++i) {
            factor[i] = z[i] * grad_out[here.row[i] * outputs + k];
            constant[k] += factor[i];
        }
        add_rows(x, here, factor.data(), grad.slope(visit.node, k));
    }
}

// Adds the gradients of the bias and of the shared slopes.
template <class Real>
void to_shared(const Batch<Real>& batch, const Real* grad_out, const View<Real>& grad) {
    const std::int64_t outputs = grad.shape.outputs;
    Real factor[Block::most];
    for (std::int64_t begin = 0; begin < batch.n; begin += Block::most) {
        const Block block(begin, batch.n);
        for (std::int64_t k = 0; k < outputs; ++k) {
            for (std::int32_t i = 0; i < block.count; ++i) {
                factor[i] = grad_out[(begin + i) * outputs + k];
                grad.bias[k] += factor[i];
            }
            if (grad.shape.shared_slopes) add_rows(batch.leaf_inputs(), block.rows(), factor, grad.shared_slope(k));
        }
    }
}

}  // namespace prunus::engine
