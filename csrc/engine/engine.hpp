// Trains a tree with linear splits: whole epochs of steps, node masses, and losses of other examples.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <vector>

#include "../parallel.hpp"
#include "../roots.hpp"
#include "../tree.hpp"
#include "adam.hpp"
#include "columns.hpp"
#include "examples.hpp"
#include "gradients.hpp"
#include "leaves.hpp"
#include "parameters.hpp"
#include "reach.hpp"
#include "workers.hpp"

namespace prunus::engine {

// What changes from step to step, with an entry for each step of the epoch.
struct Plan {
    const double* rate;              // the learning rate
    const double* scale;             // of the scores
    const double* forget;            // share of the newest parameters in their average
    const std::int64_t* most_columns;  // in each split; not read if all inputs are used
};

struct Optimizer {
    double weight_decay;
    double clip;                      // the largest norm of a gradient, or 0 if any is allowed
    const unsigned char* has_decay;  // for each part of the parameters
};

// How far a call to `train` has come.
struct Progress {
    std::int64_t row;  // the next one of the order
    double loss;       // the sum over the rows before
};

template <class Real>
class Engine {
  public:
    Engine(const Parameters& shape, const Objective<Real>& objective, int threads)
        : shape_(shape), objective_(objective), workers_(threads) {}

    // Takes steps until the order ends or the time is over, at least one.
    Progress train(const Examples<Real>& examples, const std::int64_t* order, std::int64_t n, std::int64_t batch_size,
                   std::int64_t first, std::int64_t steps_before, const Plan& plan, const Optimizer& optimizer,
                   const Columns<Real>& columns, const Moments<Real>& all, double seconds) {
        const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
        Progress progress{first, 0.0};
        do {
            const std::int64_t count = std::min(batch_size, n - progress.row), step = progress.row / batch_size;
            if (columns.used != nullptr && plan.most_columns[step] < columns.count) {
                columns.leave(plan.most_columns[step], shape_, all);
            }
            batch_.gather(examples, order + progress.row, 0, 1, count);
            double squares;
            const double loss = gradients_(batch_, View<Real>(shape_, all.theta), static_cast<Real>(plan.scale[step]),
                                           objective_, columns, workers_, View<Real>(shape_, all.grad), squares);
            update(all, optimizer, plan.rate[step], plan.forget[step], steps_before + step + 1, squares);
            progress.loss += loss * static_cast<double>(count);
            progress.row += count;
        } while (progress.row < n && std::chrono::steady_clock::now() < end);
        return progress;
    }

    // The mean loss of a batch; adds its gradient to `grad`.
    double gradient(const Examples<Real>& examples, const std::int64_t* order, std::int64_t n, double scale,
                    const Columns<Real>& columns, Real* theta, Real* grad) {
        batch_.gather(examples, order, 0, 1, n);
        double squares;
        return gradients_(batch_, View<Real>(shape_, theta), static_cast<Real>(scale), objective_, columns, workers_,
                          View<Real>(shape_, grad), squares);
    }

    // Solves for the masses of every step-th example, or of fewer if these reach too many nodes.
    void masses(const Examples<Real>& examples, std::int64_t step, double scale, Real* theta, Real* mass) {
        const Splits<Real> splits(View<Real>(shape_, theta), static_cast<Real>(scale));
        std::int64_t rows = 0;
        while (true) {
            rows = (examples.n + step - 1) / step;
            if (collect(examples, step, rows, splits)) break;
            step *= 2;
        }
        const std::int64_t nodes = shape_.tree.nodes(), groups = std::min<std::int64_t>(nodes, 16);
        const double lam = objective_.lam(rows);
        std::vector<double> roots(nodes, 1.0);
        workers_.run(lam > 0 ? groups : 0, [&](std::int64_t g) {
            const Rows some = Rows::part(nodes, groups, g);
            for (std::int64_t t = some.begin; t < some.end; ++t) roots[t] = root(t, examples.weight != nullptr, lam);
        });
        for (std::int64_t t = 0; t < nodes; ++t) {
            const Real own = floor_to<Real>(roots[t]);
            mass[t] = t == 0 ? own : std::min(own, mass[Tree::parent(static_cast<std::int32_t>(t))]);
        }
    }

    // The mean loss of examples, with these masses.
    double evaluate(const Examples<Real>& examples, double scale, Real* theta, const Real* mass) {
        const View<Real> view(shape_, theta);
        const Splits<Real> splits(view, static_cast<Real>(scale));
        std::vector<double> sums(n_scans(examples.n), 0.0);
        scan(examples, 1, examples.n, [&](Scan& own, std::int64_t p, Rows rows) {
            reach(own.batch, rows, splits, own.scratch, own.reached);
            own.out.reserve(own.batch.n * shape_.outputs);
            outputs_of(own.batch, rows, view, own.reached, mass, own.routed, own.out.data());
            sums[p] += losses_of<Real>(own.batch, rows, objective_, shape_.outputs, examples.n, own.out.data(), nullptr);
            return true;
        });
        double sum = 0;
        for (const double part : sums) sum += part;
        return sum / static_cast<double>(examples.n);
    }

  private:
    static constexpr std::int64_t scan_rows = 512;

    // Memory for one of the threads that go through all examples.
    struct Scan {
        Batch<Real> batch;
        Reached<Real> reached;
        Routed<Real> routed;
        Buffer<Real> scratch, out;
        std::vector<std::vector<Real>> u, weight;  // of each node
    };

    static std::int64_t n_scans(std::int64_t rows) { return std::clamp<std::int64_t>(rows / (4 * scan_rows), 1, 8); }

    // Calls visit(scan, p, rows of the batch) for all blocks of every step-th example; p is the part that they are in.
    // A part ends when a visit returns false.
    template <class Visit>
    void scan(const Examples<Real>& examples, std::int64_t step, std::int64_t rows, const Visit& visit) {
        const std::int64_t parts = n_scans(rows);
        if (static_cast<std::int64_t>(scans_.size()) < parts) scans_.resize(parts);
        workers_.run(parts, [&](std::int64_t p) {
            const Rows all = Rows::part(rows, parts, p);
            for (std::int64_t begin = all.begin; begin < all.end; begin += scan_rows) {
                const std::int64_t count = std::min(scan_rows, all.end - begin);
                scans_[p].batch.gather(examples, nullptr, begin * step, step, count);
                if (!visit(scans_[p], p, Rows{0, count})) return;
            }
        });
    }

    // Collects for each node the u of the rows that reach it; false if there are too many.
    bool collect(const Examples<Real>& examples, std::int64_t step, std::int64_t rows, const Splits<Real>& splits) {
        constexpr std::int64_t most = std::int64_t{1} << 24;
        const std::int64_t parts = n_scans(rows), nodes = shape_.tree.nodes();
        if (static_cast<std::int64_t>(scans_.size()) < parts) scans_.resize(parts);
        std::vector<std::int64_t> size(parts, 0);
        for (auto& own : scans_) {
            for (auto* lists : {&own.u, &own.weight}) {
                lists->resize(nodes);
                for (auto& list : *lists) list.clear();
            }
        }
        scan(examples, step, rows, [&](Scan& own, std::int64_t p, Rows block) {
            reach(own.batch, block, splits, own.scratch, own.reached);
            for (const auto& visit : own.reached.visits) {
                const Real* u = own.reached.u.data() + visit.begin;
                own.u[visit.node].insert(own.u[visit.node].end(), u, u + visit.count);
                if (!own.batch.weighted()) continue;
                const std::int32_t* row = own.reached.row.data() + visit.begin;
                for (std::int32_t i = 0; i < visit.count; ++i) own.weight[visit.node].push_back(own.batch.weight(row[i]));
            }
            size[p] += own.reached.size;
            return size[p] <= most / parts || rows <= scan_rows;
        });
        return rows <= scan_rows || std::all_of(size.begin(), size.end(), [&](auto s) { return s <= most / parts; });
    }

    double root(std::int64_t t, bool weighted, double lam) {
        std::vector<Real> &u = scans_[0].u[t], &weight = scans_[0].weight[t];
        for (std::size_t p = 1; p < scans_.size(); ++p) {
            u.insert(u.end(), scans_[p].u[t].begin(), scans_[p].u[t].end());
            weight.insert(weight.end(), scans_[p].weight[t].begin(), scans_[p].weight[t].end());
        }
        return own_root(u.data(), weighted ? weight.data() : nullptr, static_cast<std::int64_t>(u.size()), lam);
    }

    void update(const Moments<Real>& all, const Optimizer& optimizer, double rate, double forget, std::int64_t steps,
                double squares) {
        const double norm = std::sqrt(squares);
        const double factor = optimizer.clip > 0 ? std::min(1.0, optimizer.clip / (norm + 1e-6)) : 1.0;
        const double to_m = 1 - std::pow(beta1, static_cast<double>(steps));
        const double to_v = 1 - std::pow(beta2, static_cast<double>(steps));
        const auto sizes = shape_.sizes();
        std::int64_t begin = 0;
        for (int part = 0; part < Parameters::parts; ++part) {
            const double decay = optimizer.has_decay[part] != 0 ? rate * optimizer.weight_decay : 0.0;
            const Update<Real> update{static_cast<Real>(factor), static_cast<Real>(1 - decay),
                                      static_cast<Real>(rate / to_m), static_cast<Real>(1 / std::sqrt(to_v)),
                                      static_cast<Real>(forget)};
            constexpr std::int64_t block = std::int64_t{1} << 16;  // the sweep of a smaller one is not worth a thread
            workers_.run((sizes[part] + block - 1) / block, [&](std::int64_t p) {
                const std::int64_t first = begin + p * block;
                sweep(all, first, std::min(first + block, begin + sizes[part]), update);
            });
            begin += sizes[part];
        }
    }

    Parameters shape_;
    Objective<Real> objective_;
    Workers workers_;
    Batch<Real> batch_;
    Gradients<Real> gradients_;
    std::vector<Scan> scans_;
};

}  // namespace prunus::engine
