// A network on the inputs x and the routes z of rows,
//
//     h[0] = (x, z),    h[l + 1] = elu(h[l] weights[l] + biases[l]),    out = bias + h[last] weights[last],
//
// and the gradients that go back from the outputs to the parameters and to z. A few rows pass through all layers
// together, so that they stay in the cache. The routes of nodes that no row reaches are zero, and are left out.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "../memory.hpp"
#include "../parallel.hpp"
#include "../tree.hpp"
#include "examples.hpp"
#include "parameters.hpp"
#include "products.hpp"
#include "reach.hpp"
#include "units.hpp"
#include "workers.hpp"

namespace prunus::engine {

// Which inputs of the network the nodes of visits are: the v-th visit is that of the column[v]-th of the nodes that rows
// reach, or of the v-th if `column` is null.
struct RouteColumns {
    const std::int32_t* column;
    std::int64_t of(std::size_t v) const { return column == nullptr ? static_cast<std::int64_t>(v) : column[v]; }
};

// Threads may share an object while each has rows of its own.
template <class Real>
class Network {
  public:
    // Reads the weights, to use them for n rows that reach these nodes and no others.
    void start(const View<Real>& theta, const std::vector<std::int32_t>& nodes, std::int64_t n) {
        const Parameters& shape = theta.shape;
        n_ = n;
        columns_ = shape.units[0] - shape.tree.nodes();
        routes_ = static_cast<std::int64_t>(nodes.size());
        place_.resize(columns_ + routes_);
        for (std::int64_t j = 0; j < columns_; ++j) place_[j] = j;
        for (std::int64_t j = 0; j < routes_; ++j) place_[columns_ + j] = columns_ + nodes[j];
        layers_.resize(shape.layers());
        for (int l = 0; l < shape.layers(); ++l) {
            Layer& layer = layers_[l];
            layer.inputs = l == 0 ? columns_ + routes_ : shape.units[l];
            layer.outputs = shape.units[l + 1];
            layer.values.reserve(n * padded(layer.inputs));
            layer.weights.reserve(layer.inputs * layer.width());
            pack<Real>(layer.inputs, layer.width(), [&](std::int64_t i) { return row(theta, l, i); },
                       layer.weights.data());
        }
    }

    // Prepares for `backward` what that needs in addition.
    void start_backward(const View<Real>& theta) {
        to_routes_.reserve(n_ * padded(routes_));
        for (int l = 0; l < static_cast<int>(layers_.size()); ++l) {
            Layer& layer = layers_[l];
            const std::int64_t first = l == 0 ? columns_ : 0;  // x has no gradient
            layer.grad.reserve(n_ * layer.width());
            layer.transposed.reserve(layer.outputs * padded(layer.inputs - first));
            pack_transposed<Real>(layer.outputs, layer.inputs - first,
                                  [&](std::int64_t i) { return row(theta, l, first + i); }, layer.transposed.data());
        }
    }

    // The number of parts that threads share. Rows go through the network and back within their part.
    std::int64_t parts() const {
        constexpr std::int64_t products = std::int64_t{1} << 21, most_parts = 8;
        std::int64_t of_row = 0;
        for (const Layer& layer : layers_) of_row += layer.inputs * layer.width();
        return std::clamp<std::int64_t>(n_ * of_row / products, 1, std::clamp<std::int64_t>(n_, 1, most_parts));
    }
    Rows part(std::int64_t p) const { return Rows::part(n_, parts(), p); }

    // Puts x and z of some rows side by side, given the node masses, (nodes,).
    void read(const Batch<Real>& batch, Rows rows, const Reached<Real>& reached, const Real* mass,
              RouteColumns columns) {
        const std::int64_t width = padded(columns_ + routes_);
        Real* values = layers_[0].values.data();
        const Matrix<Real> x = batch.leaf_inputs();
        for (std::int64_t i = rows.begin; i < rows.end; ++i) {
            std::copy_n(x.row(i), columns_, values + i * width);
            std::fill_n(values + i * width + columns_, width - columns_, Real(0));
        }
        for (std::size_t v = 0; v < reached.visits.size(); ++v) {
            const Visit& visit = reached.visits[v];
            const Chosen here = reached.rows(visit);
            const Real *u = reached.u.data() + visit.begin, a = mass[visit.node];
            Real* z = values + columns_ + columns.of(v);
            for (std::int32_t i = 0; i < visit.count; ++i) z[here.row[i] * width] = route(u[i], a);
        }
    }

    // Writes the outputs of some rows, (n, outputs).
    void forward(Rows rows, const View<Real>& theta, Real* out) {
        const int last = static_cast<int>(layers_.size()) - 1;
        const std::int64_t outputs = layers_[last].outputs, width = layers_[last].width();
        Buffer<Real> before_bias(most * width);
        for_blocks(rows, [&](std::int64_t begin, std::int64_t count) {
            for (int l = 0; l < last; ++l) {
                Real* to = layers_[l + 1].values.data() + begin * layers_[l].width();
                for (std::int64_t i = 0; i < count; ++i) {
                    std::copy_n(theta.biases(l), layers_[l].width(), to + i * layers_[l].width());
                }
                add_outputs(layers_[l], begin, count, to);
                elu(to, count * layers_[l].width());
            }
            std::fill_n(before_bias.data(), count * width, Real(0));
            add_outputs(layers_[last], begin, count, before_bias.data());
            for (std::int64_t i = 0; i < count; ++i) {
                for (std::int64_t k = 0; k < outputs; ++k) {
                    out[(begin + i) * outputs + k] = theta.bias[k] + before_bias[i * width + k];
                }
            }
        });
    }

    // Goes back from the gradients of the outputs of some rows to all layers and to z.
    void backward(Rows rows, const Real* grad_out) {
        const int last = static_cast<int>(layers_.size()) - 1;
        const std::int64_t outputs = layers_[last].outputs, width = layers_[last].width();
        std::int64_t widest = 0;
        for (const Layer& layer : layers_) widest = std::max(widest, layer.width());
        Buffer<Real> one(most * widest), other(most * widest);
        for_blocks(rows, [&](std::int64_t begin, std::int64_t count) {
            Real *here = one.data(), *before = other.data();
            for (std::int64_t i = 0; i < count; ++i) {
                std::copy_n(grad_out + (begin + i) * outputs, outputs, here + i * width);
                std::fill_n(here + i * width + outputs, width - outputs, Real(0));
            }
            for (int l = last; l > 0; --l, std::swap(here, before)) {
                const std::int64_t size = layers_[l].inputs;
                to_inputs(layers_[l], begin, count, here, padded(size), before);
                to_elu(layers_[l].values.data() + begin * padded(size), count * padded(size), before);
            }
            to_inputs(layers_[0], begin, count, here, padded(routes_), to_routes_.data() + begin * padded(routes_));
        });
    }

    // The gradient of the loss with respect to z at the places of the v-th visit.
    void to_routes(const Reached<Real>& reached, std::size_t v, RouteColumns columns, Real* grad_z) const {
        const Visit& visit = reached.visits[v];
        const Chosen here = reached.rows(visit);
        const Real* to = to_routes_.data() + columns.of(v);
        for (std::int32_t i = 0; i < visit.count; ++i) grad_z[i] = to[here.row[i] * padded(routes_)];
    }

    // Adds the gradients of the weights and of all biases but the last.
    void to_parameters(Workers& workers, const View<Real>& grad) {
        const std::int64_t n_parts = parts();
        jobs_.clear();
        for (int l = 0; l < static_cast<int>(layers_.size()); ++l) {
            const std::int64_t inputs = layers_[l].inputs, together = n_parts == 1 ? inputs : inputs_of_job;
            for (std::int64_t first = 0; first < inputs; first += together) {
                jobs_.push_back({l, first, std::min(first + together, inputs)});
            }
        }
        workers.run(static_cast<std::int64_t>(jobs_.size()), [&](std::int64_t j) {
            for (std::int64_t p = 0; p < n_parts; ++p) add_job(jobs_[j], part(p), grad);
        });
    }

  private:
    static constexpr std::int64_t most = 64;  // rows of a block
    static constexpr std::int64_t inputs_of_job = 48;

    struct Layer {
        std::int64_t inputs, outputs;
        Buffer<Real> values;               // of its inputs, (n, padded inputs)
        Buffer<Real> weights, transposed;  // panels
        Buffer<Real> grad;                 // of its outputs before the units, panels for each block of rows
        std::int64_t width() const { return padded(outputs); }
    };

    // Some inputs of a layer.
    struct Job {
        int layer;
        std::int64_t first, last;
    };

    template <class Work>
    static void for_blocks(Rows rows, const Work& work) {
        for (std::int64_t begin = rows.begin; begin < rows.end; begin += most) {
            work(begin, std::min(most, rows.end - begin));
        }
    }

    // Adds the products of the inputs of some rows with the weights of a layer.
    static void add_outputs(const Layer& layer, std::int64_t begin, std::int64_t count, Real* out) {
        const std::int64_t stride = padded(layer.inputs);
        add_product({layer.values.data() + begin * stride, stride, 1}, count,
                    {layer.weights.data(), layer.inputs, layer.width()}, {out, layer.width(), nullptr});
    }

    // Keeps the gradients `here` of the outputs of a layer for its weights, and goes back to its inputs, (count, width).
    static void to_inputs(Layer& layer, std::int64_t begin, std::int64_t count, const Real* here, std::int64_t width,
                          Real* to) {
        const std::int64_t stride = layer.width();
        pack<Real>(count, stride, [&](std::int64_t i) { return here + i * stride; }, layer.grad.data() + begin * stride);
        std::fill_n(to, count * width, Real(0));
        add_product({here, stride, 1}, count, {layer.transposed.data(), layer.outputs, width}, {to, width, nullptr});
    }

    const Real* row(const View<Real>& theta, int l, std::int64_t i) const {
        return theta.weights[l] + (l == 0 ? place_[i] : i) * layers_[l].width();
    }

    void add_job(const Job& job, Rows rows, const View<Real>& grad) const {
        const Layer& layer = layers_[job.layer];
        const std::int64_t width = layer.width(), stride = padded(layer.inputs);
        const bool biases = job.first == 0 && job.layer + 1 < static_cast<int>(layers_.size());
        const Real one = 1;  // the input that a bias is the weight of
        Real* weights = grad.weights[job.layer] + (job.layer == 0 ? 0 : job.first * width);
        for_blocks(rows, [&](std::int64_t begin, std::int64_t count) {
            const Panels<Real> of_outputs{layer.grad.data() + begin * width, count, width};
            add_product({layer.values.data() + begin * stride + job.first, 1, stride}, job.last - job.first, of_outputs,
                        {weights, width, job.layer == 0 ? place_.data() + job.first : nullptr});
            if (biases) add_product({&one, 0, 0}, 1, of_outputs, {grad.biases(job.layer), width, nullptr});
        });
    }

    std::vector<Layer> layers_;
    std::vector<std::int64_t> place_;  // of the weights of each input of the first layer
    std::vector<Job> jobs_;
    std::int64_t n_ = 0, columns_ = 0, routes_ = 0;
    Buffer<Real> to_routes_;  // gradients of z, (n, padded routes)
};

}  // namespace prunus::engine
