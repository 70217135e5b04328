// Trains a tree with linear splits: whole epochs of steps, node masses, and losses of other examples.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "../parallel.hpp"
#include "../tree.hpp"
#include "adam.hpp"
#include "columns.hpp"
#include "examples.hpp"
#include "gradients.hpp"
#include "leaves.hpp"
#include "masses.hpp"
#include "parameters.hpp"
#include "processes.hpp"
#include "reach.hpp"
#include "scans.hpp"
#include "workers.hpp"

namespace prunus::engine {

// What changes from step to step, with an entry for each step of the epoch.
struct Plan {
    std::int64_t steps;
    const double* rate;              // the learning rate
    const double* scale;             // of the scores
    const double* ema_weight;        // share of the newest parameters in their average
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
    Engine(const Parameters& shape, const Objective<Real>& objective, int threads, Processes<Real> processes)
        : shape_(shape), objective_(objective), workers_(threads), processes_(std::move(processes)) {}

    // Takes steps until the order ends or the time is over, at least one. `before` is how far earlier calls have come, so
    // that the sum of the losses does not depend on how many calls an epoch takes. If processes share the batches, the
    // order is that of own rows, all steps of the plan are taken, and those after the order's end have no own rows.
    Progress train(const Examples<Real>& examples, const std::int64_t* order, std::int64_t n, std::int64_t batch_size,
                   Progress before, std::int64_t steps_before, const Plan& plan, const Optimizer& optimizer,
                   const Columns<Real>& columns, const Moments<Real>& all, double seconds) {
        const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
        const std::int64_t last = processes_ ? plan.steps * batch_size : n;
        Progress progress = before;
        do {
            const std::int64_t first = std::min(progress.row, n), step = progress.row / batch_size;
            const std::int64_t count = std::min(batch_size, n - first);
            if (columns.used != nullptr && plan.most_columns[step] < columns.count) {
                columns.leave(plan.most_columns[step], shape_, all);
            }
            batch_.gather(examples, order + first, 0, 1, count);
            double squares;
            const double loss = gradients_(batch_, View<Real>(shape_, all.theta), static_cast<Real>(plan.scale[step]),
                                           objective_, columns, workers_, processes_, View<Real>(shape_, all.grad), squares);
            update(all, optimizer, plan.rate[step], plan.ema_weight[step], steps_before + step + 1, squares);
            progress.loss += loss * static_cast<double>(count);
            progress.row += processes_ ? batch_size : count;
        } while (progress.row < last && std::chrono::steady_clock::now() < end);
        return progress;
    }

    // The mean loss of a batch; adds its gradient to `grad`.
    double gradient(const Examples<Real>& examples, const std::int64_t* order, std::int64_t n, double scale,
                    const Columns<Real>& columns, Real* theta, Real* grad) {
        batch_.gather(examples, order, 0, 1, n);
        double squares;
        return gradients_(batch_, View<Real>(shape_, theta), static_cast<Real>(scale), objective_, columns, workers_,
                          processes_, View<Real>(shape_, grad), squares);
    }

    // Solves for the masses of every step-th example, or of fewer if these reach too many nodes. The examples are those
    // of all processes if these are `shared`.
    void masses(const Examples<Real>& examples, std::int64_t step, double scale, Real* theta, bool shared, Real* mass) {
        const Splits<Real> splits(View<Real>(shape_, theta), static_cast<Real>(scale));
        if (shared && processes_) {
            const auto lam = [&](std::int64_t rows) { return objective_.lam(rows); };
            return solver_.together(examples, step, splits, lam, processes_, workers_, mass);
        }
        const std::int64_t rows = (examples.n + step - 1) / step;
        solver_(examples, step, splits, objective_.lam(rows) / static_cast<double>(rows), workers_, mass);
    }

    // The mean loss of examples, with these masses.
    double evaluate(const Examples<Real>& examples, double scale, Real* theta, const Real* mass) {
        const View<Real> view(shape_, theta);
        std::vector<double> sums(Scans<Real>::parts(examples.n), 0.0);
        const Splits<Real> splits(view, static_cast<Real>(scale));
        scans_(examples, 1, splits, workers_, [&](Scan<Real>& scan, std::int64_t p) {
            const Rows rows{0, scan.batch.n};
            outputs(scan, view, mass);
            sums[p] += losses_of<Real>(scan.batch, rows, objective_, shape_.outputs, rows.end, scan.out.data(), nullptr);
            return true;
        });
        double sum = 0;
        for (const double part : sums) sum += part;
        return sum / static_cast<double>(examples.n);
    }

  private:
    // Writes the outputs of the rows of a scan.
    static void outputs(Scan<Real>& scan, const View<Real>& view, const Real* mass) {
        const Rows rows{0, scan.batch.n};
        scan.out.reserve(rows.end * view.shape.outputs);
        if (!view.shape.has_network()) {
            return outputs_of(scan.batch, rows, view, scan.reached, mass, scan.routed, scan.out.data());
        }
        std::vector<std::int32_t> nodes;
        for (const Visit& visit : scan.reached.visits) nodes.push_back(visit.node);
        scan.network.start(view, nodes, rows.end);
        scan.network.read(scan.batch, rows, scan.reached, mass, {nullptr});
        scan.network.forward(rows, view, scan.out.data());
    }

    void update(const Moments<Real>& all, const Optimizer& optimizer, double rate, double ema_weight, std::int64_t steps,
                double squares) {
        const double norm = std::sqrt(squares);
        const double factor = optimizer.clip > 0 ? std::min(1.0, optimizer.clip / (norm + 1e-6)) : 1.0;
        const double to_m = 1 - std::pow(beta1, static_cast<double>(steps));
        const double to_v = 1 - std::pow(beta2, static_cast<double>(steps));
        const auto sizes = shape_.sizes();
        std::int64_t begin = 0;
        for (std::size_t part = 0; part < sizes.size(); ++part) {
            const double decay = optimizer.has_decay[part] != 0 ? rate * optimizer.weight_decay : 0.0;
            const Update<Real> update{static_cast<Real>(factor), static_cast<Real>(1 - decay),
                                      static_cast<Real>(rate / to_m), static_cast<Real>(1 / std::sqrt(to_v)),
                                      static_cast<Real>(ema_weight)};
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
    Processes<Real> processes_;
    Batch<Real> batch_;
    Gradients<Real> gradients_;
    MassSolver<Real> solver_;
    Scans<Real> scans_;
};

}  // namespace prunus::engine
