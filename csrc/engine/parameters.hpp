// Where the parameters of a tree lie in one flat array. Gradients and the moments of the optimizer have the same
// places.
//
//     split weights (splits, split width), split biases (splits,), constants (nodes, outputs), slopes of the leaves
//     (nodes, outputs, slope width), shared slopes (outputs, leaf width), bias (outputs,), and for each layer of a
//     network its weights (inputs, width) and, unless it is the last one, its biases (width,)
//
// Rows of weights and slopes are padded to whole lanes; the padding stays zero. The slopes of leaves are for the first
// inputs of the leaves, shared slopes for all of them. A network has all inputs of the leaves and then the routes of all
// nodes as inputs; there are no constants then.
#pragma once

#include <cstdint>
#include <numeric>
#include <vector>

#include "../tree.hpp"
#include "vectors.hpp"

namespace prunus::engine {

struct Parameters {
    Tree tree;
    std::int64_t outputs;
    std::int64_t split_width, slope_width, leaf_width;  // padded
    bool leaf_slopes, shared_slopes;

    std::vector<std::int64_t> units;  // of a network, from its inputs to its outputs; none if there is no network

    static constexpr int first_layer = 6;  // the number of parts before those of the network
    bool has_network() const { return !units.empty(); }
    int layers() const { return has_network() ? static_cast<int>(units.size()) - 1 : 0; }
    std::int64_t layer_width(int layer) const { return padded(units[layer + 1]); }

    // The size of each part.
    std::vector<std::int64_t> sizes() const {
        const std::int64_t splits = tree.splits, nodes = tree.nodes();
        std::vector<std::int64_t> all{splits * split_width,
                                      splits,
                                      has_network() ? 0 : nodes * outputs,
                                      leaf_slopes ? nodes * outputs * slope_width : 0,
                                      shared_slopes ? outputs * leaf_width : 0,
                                      outputs};
        for (int layer = 0; layer < layers(); ++layer) {
            all.push_back(units[layer] * layer_width(layer));
            if (layer + 1 < layers()) all.push_back(layer_width(layer));
        }
        return all;
    }
    std::int64_t begin(int part) const {
        const auto all = sizes();
        return std::accumulate(all.begin(), all.begin() + part, std::int64_t{0});
    }
    std::int64_t size() const {
        const auto all = sizes();
        return std::accumulate(all.begin(), all.end(), std::int64_t{0});
    }
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
          bias(flat + shape.begin(5)) {
        for (int layer = 0; layer < shape.layers(); ++layer) {
            weights.push_back(flat + shape.begin(Parameters::first_layer + 2 * layer));
        }
    }

    Real* split_weight(std::int64_t t) const { return split_weights + t * shape.split_width; }
    Real* constant(std::int64_t t) const { return constants + t * shape.outputs; }
    Real* slope(std::int64_t t, std::int64_t k) const {
        return slopes + (t * shape.outputs + k) * shape.slope_width;
    }
    Real* shared_slope(std::int64_t k) const { return shared_slopes + k * shape.leaf_width; }
    Real* biases(int layer) const { return weights[layer] + shape.units[layer] * shape.layer_width(layer); }

    Parameters shape;
    Real *split_weights, *split_biases, *constants, *slopes, *shared_slopes, *bias;
    std::vector<Real*> weights;  // of each layer
};

}  // namespace prunus::engine
