// Node masses of a tree with linear splits for many examples: solved at once for as many as fit into memory, then by
// Newton steps over all of them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "../roots.hpp"
#include "../tree.hpp"
#include "examples.hpp"
#include "processes.hpp"
#include "reach.hpp"
#include "scans.hpp"
#include "workers.hpp"

namespace prunus::engine {

template <class Real>
class MassSolver {
  public:
    // Writes the masses, (nodes,), for every step-th example, or for fewer if these reach too many nodes. `lam` is the
    // strength for one example. Returns the step.
    std::int64_t operator()(const Examples<Real>& examples, std::int64_t step, const Splits<Real>& splits, double lam,
                            Workers& workers, Real* mass) {
        if (!(lam > 0)) {
            std::fill_n(mass, splits.tree.nodes(), Real(1));
            return 1;
        }
        while (!collect(examples, step, splits, workers)) step *= 2;
        const double rows = static_cast<double>((examples.n + step - 1) / step);
        const std::int64_t nodes = splits.tree.nodes(), groups = std::min<std::int64_t>(nodes, 16);
        std::vector<double> roots(nodes, 1.0);
        workers.run(groups, [&](std::int64_t g) {
            const Rows some = Rows::part(nodes, groups, g);
            for (std::int64_t t = some.begin; t < some.end; ++t) {
                roots[t] = root(t, examples.weight != nullptr, lam * rows);
            }
        });
        cap(splits.tree, roots, mass);
        return step;
    }

    // Writes the masses for all examples.
    void all(const Examples<Real>& examples, const Splits<Real>& splits, double lam, Workers& workers, Real* mass) {
        if ((*this)(examples, 1, splits, lam, workers, mass) == 1) return;
        constexpr double close = 1e-9;
        const std::int64_t nodes = splits.tree.nodes();
        std::vector<double> a(mass, mass + nodes);
        // The first step lands left of the roots, whatever the start; later ones only go up.
        a = newton(examples, splits, lam, workers, a);
        for (bool moves = true; moves;) {
            const std::vector<double> next = newton(examples, splits, lam, workers, a);
            moves = false;
            for (std::int64_t t = 0; t < nodes; ++t) {
                moves = moves || next[t] > a[t] + close;
                a[t] = std::max(a[t], next[t]);
            }
        }
        cap(splits.tree, a, mass);
    }

    // Writes the masses for every step-th example of all processes, or for fewer if these reach too many nodes.
    // lam(rows) is the strength for so many rows.
    template <class Lam>
    void together(const Examples<Real>& examples, std::int64_t step, const Splits<Real>& splits, const Lam& lam,
                  const Processes<Real>& processes, Workers& workers, Real* mass) {
        if (!(lam(1) > 0)) {
            std::fill_n(mass, splits.tree.nodes(), Real(1));
            return;
        }
        for (double too_many = 1; too_many > 0;) {
            too_many = collect(examples, step, splits, workers) ? 0 : 1;
            processes.sum_doubles(&too_many, 1);
            if (too_many > 0) step *= 2;
        }
        const bool weighted = examples.weight != nullptr;
        const auto add = [&](const std::vector<std::int32_t>& nodes, const std::vector<double>& a, double* sums) {
            for (std::size_t k = 0; k < nodes.size(); ++k) {
                for (const Lists& lists : lists_) {
                    const std::vector<Real>&u = lists.u[nodes[k]], &weight = lists.weight[nodes[k]];
                    const auto weight_of = [&](std::int64_t i) { return weighted ? weight[i] : Real(1); };
                    const Sums own = sum_above(u.data(), static_cast<std::int64_t>(u.size()), a[nodes[k]], weight_of);
                    sums[2 * k] += own.total;
                    sums[2 * k + 1] += own.active_weight;
                }
            }
        };
        shared_.find(splits.tree.nodes(), (examples.n + step - 1) / step, lam, processes, add);
        cap(splits.tree, shared_.roots, mass);
    }

  private:
    // The u of the rows of one part that reach each node, and their weights.
    struct Lists {
        std::vector<std::vector<Real>> u, weight;
        std::int64_t size = 0;
    };

    static void cap(Tree tree, const std::vector<double>& roots, Real* mass) {
        for (std::int32_t t = 0; t < tree.nodes(); ++t) {
            const Real own = floor_to<Real>(roots[t]);
            mass[t] = t == 0 ? own : std::min(own, mass[Tree::parent(t)]);  // by the lemma only rounding is capped
        }
    }

    // Collects the u of every step-th example; false if there are too many.
    bool collect(const Examples<Real>& examples, std::int64_t step, const Splits<Real>& splits, Workers& workers) {
        constexpr std::int64_t few_rows = 1024, most = std::int64_t{1} << 24;
        const std::int64_t rows = (examples.n + step - 1) / step, parts = Scans<Real>::parts(rows);
        lists_.resize(parts);
        for (auto& lists : lists_) {
            lists.size = 0;
            for (auto* values : {&lists.u, &lists.weight}) {
                values->resize(splits.tree.nodes());
                for (auto& list : *values) list.clear();
            }
        }
        const auto fits = [=](const Lists& lists) { return lists.size <= most / parts || rows <= few_rows; };
        scans_(examples, step, splits, workers, [&](Scan<Real>& scan, std::int64_t p) {
            append(scan, lists_[p]);
            return fits(lists_[p]);
        });
        return std::all_of(lists_.begin(), lists_.end(), fits);
    }

    static void append(const Scan<Real>& scan, Lists& lists) {
        for (const Visit& visit : scan.reached.visits) {
            const Real* u = scan.reached.u.data() + visit.begin;
            auto& values = lists.u[visit.node];
            values.insert(values.end(), u, u + visit.count);
            if (!scan.batch.weighted()) continue;
            const std::int32_t* row = scan.reached.row.data() + visit.begin;
            for (std::int32_t i = 0; i < visit.count; ++i) {
                lists.weight[visit.node].push_back(scan.batch.weight(row[i]));
            }
        }
        lists.size += scan.reached.size;
    }

    double root(std::int64_t t, bool weighted, double lam) {
        std::vector<Real> &u = lists_[0].u[t], &weight = lists_[0].weight[t];
        for (std::size_t p = 1; p < lists_.size(); ++p) {
            u.insert(u.end(), lists_[p].u[t].begin(), lists_[p].u[t].end());
            weight.insert(weight.end(), lists_[p].weight[t].begin(), lists_[p].weight[t].end());
        }
        return own_root(u.data(), weighted ? weight.data() : nullptr, static_cast<std::int64_t>(u.size()), lam);
    }

    // A Newton step from a for all nodes.
    std::vector<double> newton(const Examples<Real>& examples, const Splits<Real>& splits, double lam,
                               Workers& workers, const std::vector<double>& a) {
        const std::int64_t nodes = splits.tree.nodes(), parts = Scans<Real>::parts(examples.n);
        std::vector<std::vector<Sums>> sums(parts, std::vector<Sums>(nodes));
        scans_(examples, 1, splits, workers, [&](Scan<Real>& scan, std::int64_t p) {
            for (const Visit& visit : scan.reached.visits) {
                const double from = a[visit.node];
                Sums& own = sums[p][visit.node];
                for (std::int32_t place = visit.begin; place < visit.begin + visit.count; ++place) {
                    const auto u = static_cast<double>(scan.reached.u[place]);
                    const bool above = u > from;
                    const double weight = above ? scan.batch.weight(scan.reached.row[place]) : Real(0);
                    own.total += above ? weight * u : 0.0;
                    own.active_weight += weight;
                }
            }
            return true;
        });
        std::vector<double> next(nodes);
        for (std::int64_t t = 0; t < nodes; ++t) {
            Sums all{0, 0, 1};
            for (const auto& part : sums) {
                all.total += part[t].total;
                all.active_weight += part[t].active_weight;
            }
            next[t] = std::min(1.0, newton_step(all, lam * static_cast<double>(examples.n)));
        }
        return next;
    }

    Scans<Real> scans_;
    std::vector<Lists> lists_;
    SharedRoots<Real> shared_;
};

}  // namespace prunus::engine
