// Predictions of trees with linear splits whose nodes hold constants, or linear functions of the inputs:
//
//     out[i] = sum over nodes t of  z[i,t] (slope[t] x[i] + constant[t]),    z[i] = clip(u[i], 0, a)
//
// The masses a must not grow along a path. A split's score is computed only for the rows that reach it. Each row is
// computed alone and in a fixed order, so its result does not depend on the other rows.
#pragma once

#include <array>
#include <cstdint>

#include "parallel.hpp"
#include "routes.hpp"
#include "tree.hpp"

namespace prunus {

// All arrays are in C order.
template <class Real>
struct LinearTree {
    Tree tree;
    std::int64_t columns, outputs;
    const Real* weight;    // (splits, columns)
    const Real* bias;      // (splits,)
    const Real* a;         // (nodes,)
    const Real* slope;     // (nodes, outputs, columns), or null if nodes hold constants only
    const Real* constant;  // (nodes, outputs)
};

template <class Real>
void predict_row(const LinearTree<Real>& model, const Real* x, Real* out) {
    struct Visit {
        std::int32_t node;
        Real u;
    };
    constexpr int max_depth = 32;
    std::array<Visit, max_depth> stack;
    int size = 0;
    stack[size++] = {0, Real(1.5)};
    while (size > 0) {
        const auto [t, u] = stack[--size];
        const Real z = route(u, model.a[t]);
        if (!(z > 0)) continue;  // then z is zero in all nodes below as well
        const Real* constant = model.constant + t * model.outputs;
        for (std::int64_t k = 0; k < model.outputs; ++k) {
            Real value = constant[k];
            if (model.slope != nullptr) {
                value += dot(x, model.slope + (t * model.outputs + k) * model.columns, model.columns);
            }
            out[k] += z * value;
        }
        if (t >= model.tree.splits) continue;
        const Real score = dot(x, model.weight + t * model.columns, model.columns) + model.bias[t];
        const Real low = Real(0.5) - score, high = Real(0.5) + score;
        const Real left = u < low ? u : low, right = u < high ? u : high;  // a NaN reaches neither
        if (right > 0) stack[size++] = {2 * t + 2, right};
        if (left > 0) stack[size++] = {2 * t + 1, left};
    }
}

// Adds the predictions of n rows to out, (n, outputs).
template <class Real>
void predict(const LinearTree<Real>& model, const Real* x, std::int64_t n, int threads, Real* out) {
    const std::int64_t n_parts = number_of_parts(n * model.columns);
    parallel(threads, n_parts, [&](std::int64_t p) {
        const Rows rows = Rows::part(n, n_parts, p);
        for (std::int64_t i = rows.begin; i < rows.end; ++i) {
            predict_row(model, x + i * model.columns, out + i * model.outputs);
        }
    });
}

}  // namespace prunus
