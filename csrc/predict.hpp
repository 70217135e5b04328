// Predictions of trees with linear splits whose nodes have values, or linear models, of k outputs:
//
//     out[i] = sum over nodes t of  z[i,t] (values[t] x[i] + constants[t]),    z[i] = clip(u[i], 0, a)
//
// A split's score is computed only for the rows that reach it. Each row is worked on alone and in a fixed order: its
// result does not depend on the rows beside it.
#pragma once

#include <array>
#include <cstdint>

#include "parallel.hpp"
#include "routes.hpp"
#include "tree.hpp"

namespace prunus {

// All arrays are in C order. `models` is null where nodes have constants only.
template <class Real>
struct LinearTree {
    Tree tree;
    std::int64_t columns, outputs;
    const Real* weight;     // (splits, columns)
    const Real* bias;       // (splits,)
    const Real* a;          // (nodes,)
    const Real* models;     // (nodes, outputs, columns), or null
    const Real* constants;  // (nodes, outputs)
};

template <class Real>
void predict_row(const LinearTree<Real>& model, const Real* x, Real* out) {
    struct Visit {
        std::int32_t node;
        Real u;
    };
    constexpr int deepest = 32;
    std::array<Visit, deepest> stack;
    int size = 0;
    stack[size++] = {0, Real(1.5)};
    while (size > 0) {
        const auto [t, u] = stack[--size];
        const Real z = route(u, model.a[t]);
        if (!(z > 0)) continue;  // nor is it below
        const Real* constants = model.constants + t * model.outputs;
        for (std::int64_t k = 0; k < model.outputs; ++k) {
            Real value = constants[k];
            if (model.models != nullptr) value += dot(x, model.models + (t * model.outputs + k) * model.columns, model.columns);
            out[k] += z * value;
        }
        if (t >= model.tree.splits) continue;
        const Real score = dot(x, model.weight + t * model.columns, model.columns) + model.bias[t];
        const Real low = Real(0.5) - score, high = Real(0.5) + score;
        const Real left = u < low ? u : low, right = u < high ? u : high;  // NaN goes nowhere
        if (right > 0) stack[size++] = {2 * t + 2, right};
        if (left > 0) stack[size++] = {2 * t + 1, left};
    }
}

// Adds the predictions of n rows to out, (n, outputs).
template <class Real>
void predict(const LinearTree<Real>& model, const Real* x, std::int64_t n, int threads, Real* out) {
    const std::int64_t cut = parts_of(n * model.columns);
    parallel(threads, cut, [&](std::int64_t p) {
        const Rows rows = Rows::part(n, cut, p);
        for (std::int64_t i = rows.begin; i < rows.end; ++i) {
            predict_row(model, x + i * model.columns, out + i * model.outputs);
        }
    });
}

}  // namespace prunus
