// The loss of a batch and its gradient with respect to all parameters, computed for the nodes that rows reach alone.
//
// Rows are divided into parts, nodes into groups; threads share the parts while they follow rows, and the groups while
// they solve for masses and sum gradients. How many parts there are does not depend on the number of threads, and
// neither do the results.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "../backward.hpp"
#include "../memory.hpp"
#include "../parallel.hpp"
#include "../roots.hpp"
#include "../tree.hpp"
#include "columns.hpp"
#include "examples.hpp"
#include "leaves.hpp"
#include "losses.hpp"
#include "network.hpp"
#include "parameters.hpp"
#include "processes.hpp"
#include "reach.hpp"
#include "squares.hpp"
#include "workers.hpp"

namespace prunus::engine {

// What is minimized.
template <class Real>
struct Objective {
    Loss loss;
    Real parameter;
    double strength;         // of the pruning
    std::int64_t meant_for;  // the number of rows that the strength is meant for, or 0 if it is meant for all numbers

    double lam(std::int64_t n) const {
        return meant_for == 0 ? strength : strength * static_cast<double>(n) / static_cast<double>(meant_for);
    }
};

// The weighted sum of the losses of some rows; writes the gradients of their mean over n rows if `grad` is not null.
template <class Real>
double losses_of(const Batch<Real>& batch, Rows rows, const Objective<Real>& objective, std::int64_t outputs,
                 std::int64_t n, Real* out, Real* grad) {
    double sum = 0;
    Buffer<Real> unused(outputs);
    for (std::int64_t i = rows.begin; i < rows.end; ++i) {
        Real *of_row = out + i * outputs, *to_row = grad == nullptr ? unused.data() : grad + i * outputs;
        if (const Real* offset = batch.offset(i)) {
            for (std::int64_t k = 0; k < outputs; ++k) of_row[k] += offset[k];
        }
        const Compared<Real> with{batch.target(i), outputs, objective.parameter};
        const Real loss = row_loss(objective.loss, of_row, with, to_row), weight = batch.weight(i);
        sum += static_cast<double>(weight) * static_cast<double>(loss);
        const Real share = weight / static_cast<Real>(n);
        for (std::int64_t k = 0; k < outputs; ++k) to_row[k] *= share;
    }
    return sum;
}

template <class Real>
class Gradients {
  public:
    // Computes the mean loss of a batch and adds its gradient to `grad`. Returns the loss, and in `squares` the sum of
    // the squared gradients. If processes share a batch, the gradient is that of the whole batch, and the loss that of
    // the rows of this process.
    double operator()(const Batch<Real>& batch, const View<Real>& theta, Real scale, const Objective<Real>& objective,
                      const Columns<Real>& columns, Workers& workers, const Processes<Real>& processes,
                      const View<Real>& grad, double& squares) {
        const std::int64_t n_parts = number_of_parts(batch, theta.shape);
        parts_.resize(n_parts);
        const Splits<Real> splits(theta, scale);
        workers.run(n_parts, [&](std::int64_t p) {
            parts_[p].rows = Rows::part(batch.n, n_parts, p);
            reach(batch, parts_[p].rows, splits, parts_[p].scratch, parts_[p].reached);
        });
        meet(n_parts);
        const std::int64_t n = processes ? solve_together(batch, theta.shape.tree, objective, n_parts, workers, processes)
                                         : batch.n;
        const double lam = objective.lam(n);
        if (!processes) solve(batch, theta.shape.tree, lam, n_parts, workers);
        const std::int64_t outputs = theta.shape.outputs;
        out_.reserve(batch.n * outputs);
        grad_out_.reserve(batch.n * outputs);
        losses_.resize(n_parts);
        if (theta.shape.has_network()) pass_network(batch, theta, objective, n, n_parts, workers);
        workers.run(n_parts, [&](std::int64_t p) { forward(batch, theta, objective, n, p); });
        if (processes) {
            to_masses_together(lam, n_parts, processes);
        } else {
            to_masses(lam, n_parts);
        }
        workers.run(n_parts, [&](std::int64_t p) { backward(batch, parts_[p]); });
        to_parameters(batch, scale, columns, n_parts, workers, grad);
        squares = shared_squares_;
        for (const Group& group : groups_) squares += group.squares;
        if (processes) squares = sum_gradients(grad, processes);
        double sum = 0;
        for (const double loss : losses_) sum += loss;
        return sum / static_cast<double>(std::max<std::int64_t>(1, batch.n));
    }

  private:
    // Sums over the rows of a visit, see MassGradients.
    struct ToMass {
        double mass_grad = 0, active_weight = 0;
    };

    // Some rows of the batch and what they reach.
    struct Part {
        Rows rows{};
        Reached<Real> reached;
        Routed<Real> routed;
        Buffer<Real> scratch;
        Buffer<Real> to_u, to_score;                   // gradients at the places of `reached`
        std::vector<std::int32_t> meeting;             // of each visit, if there are several parts
        std::vector<ToMass> to_mass;  // of each visit
    };

    // A node that rows of some parts reach.
    struct Meeting {
        std::int32_t node;
        Real sum_grad;
        double root;
    };

    // One part for every two million products, so that threads have enough to do between their meetings.
    static std::int64_t number_of_parts(const Batch<Real>& batch, const Parameters& shape) {
        constexpr std::int64_t nodes = 32, products = std::int64_t{1} << 21, most = 8;
        const std::int64_t of_row = shape.split_width + (shape.leaf_slopes ? shape.outputs * shape.slope_width : 0);
        return std::clamp<std::int64_t>(batch.n * of_row * nodes / products, 1, most);
    }

    static constexpr std::int64_t no_visit = -1;
    static constexpr std::int32_t few = 16;

    // The root of a node that few rows reach: the same Newton steps as in `own_root`, over values that stay in place.
    static double root_of_few(const Real* u, std::int32_t count, double lam) {
        if (count == 1 && u[0] > 0) return std::min(1.0, static_cast<double>(u[0]) / (lam + 1));
        double root = 0;
        while (true) {
            Sums sums;
            sums.size = 1;
            for (std::int32_t i = 0; i < count; ++i) {
                const bool above = static_cast<double>(u[i]) > root;
                sums.total += above ? static_cast<double>(u[i]) : 0.0;
                sums.active_weight += above;
            }
            const double step = newton_step(sums, lam);
            if (step >= 1) return 1;
            if (!(step > root)) return root;
            root = step;
        }
    }

    // Finds for each node the visits of all parts. Visits are ordered by node.
    void meet(std::int64_t n_parts) {
        meetings_.clear();
        visits_.clear();
        if (n_parts == 1) return meet_alone(parts_[0]);
        std::vector<std::size_t> next(n_parts, 0);
        for (std::int64_t p = 0; p < n_parts; ++p) parts_[p].meeting.resize(parts_[p].reached.visits.size());
        while (true) {
            std::int32_t node = std::numeric_limits<std::int32_t>::max();
            for (std::int64_t p = 0; p < n_parts; ++p) {
                const auto& visits = parts_[p].reached.visits;
                if (next[p] < visits.size()) node = std::min(node, visits[next[p]].node);
            }
            if (node == std::numeric_limits<std::int32_t>::max()) return;
            for (std::int64_t p = 0; p < n_parts; ++p) {
                const auto& visits = parts_[p].reached.visits;
                const bool here = next[p] < visits.size() && visits[next[p]].node == node;
                visits_.push_back(here ? static_cast<std::int64_t>(next[p]) : no_visit);
                if (here) parts_[p].meeting[next[p]++] = static_cast<std::int32_t>(meetings_.size());
            }
            meetings_.push_back({node, Real(0), 1.0});
        }
    }

    void meet_alone(const Part& part) {
        const auto& visits = part.reached.visits;
        meetings_.resize(visits.size());
        for (std::size_t v = 0; v < visits.size(); ++v) meetings_[v] = {visits[v].node, Real(0), 1.0};
    }

    // Calls each(part, visit) for the parts whose rows reach the m-th node.
    template <class Each>
    void for_visits(std::int64_t m, std::int64_t n_parts, const Each& each) {
        if (n_parts == 1) return each(parts_[0], parts_[0].reached.visits[m]);
        for (std::int64_t p = 0; p < n_parts; ++p) {
            const std::int64_t v = visits_[m * n_parts + p];
            if (v != no_visit) each(parts_[p], parts_[p].reached.visits[v]);
        }
    }

    // Divides the nodes among threads, and calls work(first, last, group).
    template <class Work>
    void for_groups(std::int64_t n_parts, Workers& workers, const Work& work) {
        const auto nodes = static_cast<std::int64_t>(meetings_.size());
        const std::int64_t groups = n_parts == 1 ? 1 : std::min<std::int64_t>(nodes, 4 * n_parts);
        groups_.resize(groups);
        workers.run(groups, [&](std::int64_t g) {
            const Rows some = Rows::part(nodes, groups, g);
            work(some.begin, some.end, groups_[g]);
        });
    }

    struct Group {
        Buffer<Real> u, weight, factor;
        Buffer<std::int32_t> row;
        double squares = 0;  // of the gradients of its nodes
    };

    // The masses of the nodes that are reached.
    void solve(const Batch<Real>& batch, Tree tree, double lam, std::int64_t n_parts, Workers& workers) {
        mass_.resize(tree.nodes());
        if (lam > 0) {
            for_groups(n_parts, workers, [&](std::int64_t first, std::int64_t last, Group& group) {
                for (std::int64_t m = first; m < last; ++m) meetings_[m].root = root(batch, m, lam, n_parts, group);
            });
        }
        for (const Meeting& meeting : meetings_) {
            const std::int32_t t = meeting.node;
            const Real own = floor_to<Real>(meeting.root);
            mass_[t] = t == 0 ? own : std::min(own, mass_[Tree::parent(t)]);  // by the lemma only rounding is capped
        }
    }

    // The masses of all nodes for a batch that processes share. Returns the number of its rows.
    std::int64_t solve_together(const Batch<Real>& batch, Tree tree, const Objective<Real>& objective,
                                std::int64_t n_parts, Workers& workers, const Processes<Real>& processes) {
        mass_.assign(tree.nodes(), Real(1));
        if (!(objective.strength > 0)) {
            auto rows = static_cast<double>(batch.n);
            processes.sum_doubles(&rows, 1);
            return static_cast<std::int64_t>(rows);
        }
        const auto add = [&](const std::vector<std::int32_t>& nodes, const std::vector<double>& a, double* sums) {
            place_.assign(tree.nodes(), -1);
            for (std::size_t k = 0; k < nodes.size(); ++k) place_[nodes[k]] = static_cast<std::int32_t>(k);
            for_groups(n_parts, workers, [&](std::int64_t first, std::int64_t last, Group&) {
                for (std::int64_t m = first; m < last; ++m) {
                    const std::int32_t t = meetings_[m].node;
                    if (place_[t] >= 0) add_sums(batch, m, a[t], n_parts, sums + 2 * place_[t]);
                }
            });
        };
        shared_.find(tree.nodes(), batch.n, [&](std::int64_t n) { return objective.lam(n); }, processes, add);
        for (std::int32_t t = 0; t < tree.nodes(); ++t) {
            const Real own = floor_to<Real>(shared_.roots[t]);
            mass_[t] = t == 0 ? own : std::min(own, mass_[Tree::parent(t)]);  // by the lemma only rounding is capped
        }
        return shared_.rows;
    }

    // Adds the sums over the values of the m-th node above a.
    void add_sums(const Batch<Real>& batch, std::int64_t m, double a, std::int64_t n_parts, double* sums) {
        for_visits(m, n_parts, [&](const Part& part, const Visit& visit) {
            const Real* u = part.reached.u.data() + visit.begin;
            const std::int32_t* row = part.reached.row.data() + visit.begin;
            const Sums own = batch.weighted()
                                 ? sum_above(u, visit.count, a, [&](std::int64_t i) { return batch.weight(row[i]); })
                                 : sum_above(u, visit.count, a, [](std::int64_t) { return Real(1); });
            sums[0] += own.total;
            sums[1] += own.active_weight;
        });
    }

    double root(const Batch<Real>& batch, std::int64_t m, double lam, std::int64_t n_parts, Group& group) {
        if (n_parts == 1 && !batch.weighted()) {
            const Visit& visit = parts_[0].reached.visits[m];
            if (visit.count <= few) return root_of_few(parts_[0].reached.u.data() + visit.begin, visit.count, lam);
        }
        std::int64_t count = 0;
        for_visits(m, n_parts, [&](Part& part, const Visit& visit) {
            group.u.reserve(count + visit.count);
            std::copy_n(part.reached.u.data() + visit.begin, visit.count, group.u.data() + count);
            if (batch.weighted()) {
                group.weight.reserve(count + visit.count);
                const std::int32_t* row = part.reached.row.data() + visit.begin;
                for (std::int32_t i = 0; i < visit.count; ++i) group.weight[count + i] = batch.weight(row[i]);
            }
            count += visit.count;
        });
        return own_root(group.u.data(), batch.weighted() ? group.weight.data() : nullptr, count, lam);
    }

    // The inputs of a network that are the routes of the nodes of a part's visits.
    RouteColumns columns_of(const Part& part) const { return {parts_.size() == 1 ? nullptr : part.meeting.data()}; }

    // Outputs, losses, and the gradients that go back from a network. Its rows are divided into parts of their own.
    void pass_network(const Batch<Real>& batch, const View<Real>& theta, const Objective<Real>& objective,
                      std::int64_t n, std::int64_t n_parts, Workers& workers) {
        nodes_.clear();
        for (const Meeting& meeting : meetings_) nodes_.push_back(meeting.node);
        network_.start(theta, nodes_, batch.n);
        network_.start_backward(theta);
        workers.run(n_parts, [&](std::int64_t p) {
            network_.read(batch, parts_[p].rows, parts_[p].reached, mass_.data(), columns_of(parts_[p]));
        });
        losses_.resize(network_.parts());
        workers.run(network_.parts(), [&](std::int64_t p) {
            const Rows rows = network_.part(p);
            network_.forward(rows, theta, out_.data());
            losses_[p] = losses_of(batch, rows, objective, theta.shape.outputs, n, out_.data(), grad_out_.data());
            network_.backward(rows, grad_out_.data());
        });
    }

    // Outputs, losses, and the gradients that arrive at routes and masses.
    void forward(const Batch<Real>& batch, const View<Real>& theta, const Objective<Real>& objective, std::int64_t n,
                 std::int64_t p) {
        Part& part = parts_[p];
        const Reached<Real>& reached = part.reached;
        const bool network = theta.shape.has_network();
        if (!network) {
            outputs_of(batch, part.rows, theta, reached, mass_.data(), part.routed, out_.data());
            losses_[p] = losses_of(batch, part.rows, objective, theta.shape.outputs, n, out_.data(), grad_out_.data());
        }
        part.to_u.reserve(reached.size);
        part.to_mass.resize(reached.visits.size());
        for (std::size_t v = 0; v < reached.visits.size(); ++v) {
            const Visit& visit = reached.visits[v];
            Real* to_u = part.to_u.data() + visit.begin;
            if (network) {
                network_.to_routes(reached, v, columns_of(part), to_u);
            } else {
                to_routes(visit, theta, reached, part.routed, grad_out_.data(), to_u);
            }
            part.to_mass[v] = divide(batch, visit, reached, mass_[visit.node], to_u);
        }
    }

    // Divides the gradients of the routes of a visit between u, where u is below the mass, and the mass.
    static ToMass divide(const Batch<Real>& batch, const Visit& visit, const Reached<Real>& reached, Real a,
                         Real* to_u) {
        const Real* u = reached.u.data() + visit.begin;
        const std::int32_t* row = reached.row.data() + visit.begin;
        ToMass sums;
        if (is_free(a)) {
            for (std::int32_t i = 0; i < visit.count; ++i) {
                sums.mass_grad += u[i] >= a ? static_cast<double>(to_u[i]) : 0.0;
                sums.active_weight += u[i] > a ? static_cast<double>(batch.weight(row[i])) : 0.0;
            }
        }
#pragma omp simd
        for (std::int32_t i = 0; i < visit.count; ++i) to_u[i] = u[i] < a ? to_u[i] : Real(0);
        return sums;
    }

    void to_masses(double lam, std::int64_t n_parts) {
        for (std::int64_t m = 0; m < static_cast<std::int64_t>(meetings_.size()); ++m) {
            if (!is_free(mass_[meetings_[m].node])) continue;
            const ToMass sums = to_mass_of(m, n_parts);
            meetings_[m].sum_grad = static_cast<Real>(sums.mass_grad / (lam + sums.active_weight));
        }
    }

    // The same, summed over processes. Nodes that are free have masses of their own, which all processes know.
    void to_masses_together(double lam, std::int64_t n_parts, const Processes<Real>& processes) {
        std::int32_t free = 0;
        place_.assign(mass_.size(), -1);
        for (std::size_t t = 0; t < mass_.size(); ++t) {
            if (is_free(mass_[t])) place_[t] = free++;
        }
        std::vector<double> all(2 * free, 0.0);
        for (std::int64_t m = 0; m < static_cast<std::int64_t>(meetings_.size()); ++m) {
            const std::int32_t place = place_[meetings_[m].node];
            if (place < 0) continue;
            const ToMass sums = to_mass_of(m, n_parts);
            all[2 * place] = sums.mass_grad;
            all[2 * place + 1] = sums.active_weight;
        }
        if (free > 0) processes.sum_doubles(all.data(), 2 * free);
        for (Meeting& meeting : meetings_) {
            const std::int32_t place = place_[meeting.node];
            if (place >= 0) meeting.sum_grad = static_cast<Real>(all[2 * place] / (lam + all[2 * place + 1]));
        }
    }

    // The sums of the m-th node.
    ToMass to_mass_of(std::int64_t m, std::int64_t n_parts) {
        ToMass sums;
        for_visits(m, n_parts, [&](const Part& part, const Visit& visit) {
            const ToMass& own = part.to_mass[&visit - part.reached.visits.data()];
            sums.mass_grad += own.mass_grad;
            sums.active_weight += own.active_weight;
        });
        return sums;
    }

    // Sums all gradients over processes; returns the sum of their squares.
    static double sum_gradients(const View<Real>& grad, const Processes<Real>& processes) {
        constexpr std::int64_t block = 512;
        const std::int64_t size = grad.shape.size();
        Real* const flat = grad.split_weights;  // the first parameters
        processes.sum_reals(flat, size);
        double squares = 0;
        for (std::int64_t begin = 0; begin < size; begin += block) {
            squares += squares_of(flat + begin, std::min(block, size - begin));
        }
        return squares;
    }

    // Adds the gradient of the sum of w u over the active rows of a visit.
    static void add_sum_gradient(const Batch<Real>& batch, const Visit& visit, const Reached<Real>& reached, Real a,
                                 Real sum_grad, Real* to_u) {
        const Real* u = reached.u.data();
        const std::int32_t* row = reached.row.data();
        const std::int32_t end = visit.begin + visit.count;
        if (batch.weighted()) {
            for (std::int32_t i = visit.begin; i < end; ++i) to_u[i] += u[i] > a ? batch.weight(row[i]) * sum_grad : Real(0);
            return;
        }
#pragma omp simd
        for (std::int32_t i = visit.begin; i < end; ++i) to_u[i] += u[i] > a ? sum_grad : Real(0);
    }

    // From the routes back to the scores: the gradient of u goes to the score that it comes from, or to the u above.
    void backward(const Batch<Real>& batch, Part& part) {
        const Reached<Real>& reached = part.reached;
        part.to_score.reserve(reached.size);
        Real *to_u = part.to_u.data(), *to_score = part.to_score.data();
        std::fill_n(to_score, reached.size, Real(0));
        for (std::size_t v = reached.visits.size() - 1; v > 0; --v) {  // the root's u is constant
            const Visit& visit = reached.visits[v];
            const Real sum_grad = meetings_[parts_.size() == 1 ? v : part.meeting[v]].sum_grad;
            if (sum_grad != 0) add_sum_gradient(batch, visit, reached, mass_[visit.node], sum_grad, to_u);
            Real* const to[2] = {to_u, to_score};  // chosen by an index: a branch would often be predicted wrongly
            const Real sign[2] = {Real(1), visit.is_left() ? Real(-1) : Real(1)};
            for (std::int32_t place = visit.begin; place < visit.begin + visit.count; ++place) {
                const int by_score = reached.by_score[place];
                to[by_score][reached.above[place]] += sign[by_score] * to_u[place];
            }
        }
    }

    void to_parameters(const Batch<Real>& batch, Real scale, const Columns<Real>& columns, std::int64_t n_parts,
                       Workers& workers, const View<Real>& grad) {
        const bool network = grad.shape.has_network();
        for_groups(n_parts, workers, [&](std::int64_t first, std::int64_t last, Group& group) {
            group.squares = 0;
            for (std::int64_t m = first; m < last; ++m) {
                const std::int32_t t = meetings_[m].node;
                for_visits(m, n_parts, [&](Part& part, const Visit& visit) {
                    if (!network) to_leaf(batch, visit, part.reached, part.routed, grad_out_.data(), group.factor, grad);
                    if (t < grad.shape.tree.splits) to_split(batch, visit, part, scale, group, grad);
                });
                if (columns.used != nullptr && t < grad.shape.tree.splits) columns.mask(t, grad.split_weight(t));
                group.squares += squares_of_node(t, grad);
            }
        });
        if (network) network_.to_parameters(workers, grad);
        to_shared(batch, grad_out_.data(), grad);
        const std::int64_t outputs = grad.shape.outputs;
        shared_squares_ = squares_of(grad.bias, outputs);
        if (grad.shape.shared_slopes) shared_squares_ += squares_of(grad.shared_slopes, outputs * grad.shape.leaf_width);
        shared_squares_ += squares_of_network(grad);
    }

    // Only rows in the margin of a split have a gradient there.
    void to_split(const Batch<Real>& batch, const Visit& visit, const Part& part, Real scale, Group& group,
                  const View<Real>& grad) {
        const Real* to_score = part.to_score.data() + visit.begin;
        const std::int32_t* row = part.reached.row.data() + visit.begin;
        group.row.reserve(visit.count + 1);
        group.factor.reserve(visit.count + 1);
        std::int32_t count = 0;
        Real sum = 0;
        for (std::int32_t i = 0; i < visit.count; ++i) {
            const Real factor = scale * to_score[i];
            group.row[count] = row[i];
            group.factor[count] = factor;
            count += factor != 0;
            sum += factor;
        }
        if (count == 0) return;
        grad.split_biases[visit.node] += sum;
        add_rows(batch.split_inputs(), {group.row.data(), count}, group.factor.data(), grad.split_weight(visit.node));
    }

    std::vector<Part> parts_;
    std::vector<Meeting> meetings_;
    std::vector<std::int64_t> visits_;  // of each node and part, or no_visit
    std::vector<Group> groups_;
    std::vector<Real> mass_;  // of the nodes that are reached, (nodes,)
    Buffer<Real> out_, grad_out_;
    Network<Real> network_;
    std::vector<std::int32_t> nodes_;  // that are reached
    std::vector<double> losses_;       // of each part
    double shared_squares_ = 0;
    SharedRoots<Real> shared_;
    std::vector<std::int32_t> place_;  // of nodes in an array that processes sum, or -1
};

}  // namespace prunus::engine
