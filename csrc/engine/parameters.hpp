// Where the parameters of a tree lie in one flat array. Gradients and the moments of the optimizer have the same
// places.
//
//     split weights (splits, split width), split biases (splits,), constants (nodes, outputs), slopes of the leaves
//     (nodes, outputs, slope width), shared slopes (outputs, leaf width), bias (outputs,)
//
// Rows of weights and slopes are padded to whole lanes; the padding stays zero. The slopes of leaves are for the first
// inputs of the leaves, shared slopes for all of them.
#pragma once

#include <array>
#include <cstdint>

#include "../tree.hpp"
#include "vectors.hpp"

namespace prunus::engine {

struct Parameters {
    Tree tree;
    std::int64_t outputs;
    std::int64_t split_width, slope_width, leaf_width;  // padded
    bool leaf_slopes, shared_slopes;

    static constexpr int parts = 6;
    std::array<std::int64_t, parts> sizes() const {
        const std::int64_t splits = tree.splits, nodes = tree.nodes();
        return {splits * split_width,
                splits,
                nodes * outputs,
                leaf_slopes ? nodes * outputs * slope_width : 0,
                shared_slopes ? outputs * leaf_width : 0,
                outputs};
    }
    std::int64_t begin(int part) const {
        const auto all = sizes();
        std::int64_t sum = 0;
        for (int p = 0; p < part; ++p) sum += all[p];
        return sum;
    }
    std::int64_t size() const { return begin(parts); }
};

// One flat array seen as the parameters of a tree.
template <class Real>
struct View {
    View(const Parameters& shape, Real* flat)
        : shape(shape),
          split_weights(flat),
          split_biases(flat + shape.begin(1)),
          constants(flat + shape.begin(2)),
          slopes(flat + shape.begin(3)),
          shared_slopes(flat + shape.begin(4)),
          bias(flat + shape.begin(5)) {}

    Real* split_weight(std::int64_t t) const { return split_weights + t * shape.split_width; }
    Real* constant(std::int64_t t) const { return constants + t * shape.outputs; }
    Real* slope(std::int64_t t, std::int64_t k) const {
        return slopes + (t * shape.outputs + k) * shape.slope_width;
    }
    Real* shared_slope(std::int64_t k) const { return shared_slopes + k * shape.leaf_width; }

    Parameters shape;
    Real *split_weights, *split_biases, *constants, *slopes, *shared_slopes, *bias;
};

}  // namespace prunus::engine
