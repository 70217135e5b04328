// Sums of squared gradients, by which gradients are clipped.
#pragma once

#include <cstdint>

#include "parameters.hpp"

namespace prunus::engine {

template <class Real>
double squares_of(const Real* x, std::int64_t size) {
    Real sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = 0; i < size; ++i) sum += x[i] * x[i];
    return static_cast<double>(sum);
}

template <class Real>
double squares_of_node(std::int32_t t, const View<Real>& grad) {
    const Parameters& shape = grad.shape;
    double sum = shape.has_network() ? 0.0 : squares_of(grad.constant(t), shape.outputs);
    if (shape.leaf_slopes) sum += squares_of(grad.slope(t, 0), shape.outputs * shape.slope_width);
    if (t < shape.tree.splits && grad.split_biases[t] != 0) {
        sum += squares_of(grad.split_weight(t), shape.split_width) + squares_of(grad.split_biases + t, 1);
    }
    return sum;
}

// Of all layers, but not of the bias of the outputs.
template <class Real>
double squares_of_network(const View<Real>& grad) {
    const Parameters& shape = grad.shape;
    double sum = 0;
    for (int layer = 0; layer < shape.layers(); ++layer) {
        const std::int64_t width = shape.layer_width(layer);
        const std::int64_t rows = shape.units[layer] + (layer + 1 < shape.layers());  // the biases are a row more
        for (std::int64_t i = 0; i < rows; ++i) sum += squares_of(grad.weights[layer] + i * width, width);
    }
    return sum;
}

}  // namespace prunus::engine
