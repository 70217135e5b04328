// Rows that several processes share: sums over all of them, and the roots of phi that such sums give.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <vector>

#include "../roots.hpp"

namespace prunus::engine {

// Adds up arrays over all processes, in place. Every process gets the same sums, to the last bit. There are no
// functions if one process has all rows.
template <class Real>
struct Processes {
    std::function<void(double*, std::int64_t)> sum_doubles;
    std::function<void(Real*, std::int64_t)> sum_reals;
    explicit operator bool() const { return static_cast<bool>(sum_doubles); }
};

// Sums of w u and of w over the values above a. Unlike `sum_all` it leaves the values where they are, so that the sums
// depend on which values are above a, and on nothing that was computed before.
template <class Real, class Weight>
Sums sum_above(const Real* u, std::int64_t count, double a, const Weight& weight) {
    constexpr std::int64_t block = 512;
    const Real above = floor_to<Real>(a);
    Sums sums;
    sums.size = 1;
    for (std::int64_t start = 0; start < count; start += block) {
        const std::int64_t end = std::min(start + block, count);
        Real total = 0, active_weight = 0;
#pragma omp simd reduction(+ : total, active_weight)
        for (std::int64_t i = start; i < end; ++i) {
            const Real w = u[i] > above ? weight(i) : Real(0);
            total += w > 0 ? w * u[i] : Real(0);
            active_weight += w;
        }
        sums.total += total;
        sums.active_weight += active_weight;
    }
    return sums;
}

// The roots of phi of all nodes at once: each Newton step takes one sum over the processes, over the nodes whose roots
// still move. Every process computes the same roots from the same sums, and so takes the same number of steps.
template <class Real>
class SharedRoots {
  public:
    // Finds the roots, given the number of own rows, and a function lam(rows) of the number of all rows. add(nodes, a,
    // sums) adds for each of these nodes the sums over own values above a[node] to two entries of `sums`. The search
    // begins at the roots that were found last, which are close to those of the next batch: the first step lands left
    // of a root from anywhere, and later ones only go up.
    template <class Lam, class Add>
    void find(std::int32_t nodes, std::int64_t own_rows, const Lam& lam_of, const Processes<Real>& processes,
              const Add& add) {
        moving_.resize(nodes);
        std::iota(moving_.begin(), moving_.end(), 0);
        roots.resize(nodes, 0.0);
        back_.assign(nodes, 0.0);
        double lam = 0;
        for (bool first = true; !moving_.empty(); first = false) {
            const std::size_t size = 2 * moving_.size();
            sums_.assign(size + 1, 0.0);
            add(moving_, roots, sums_.data());
            sums_[size] = static_cast<double>(own_rows);
            processes.sum_doubles(sums_.data(), static_cast<std::int64_t>(size) + 1);
            if (first) rows = static_cast<std::int64_t>(sums_[size]);
            if (first) lam = lam_of(rows);
            move(lam, first);
        }
    }

    std::int64_t rows = 0;      // of all processes
    std::vector<double> roots;  // (nodes,)

  private:
    void move(double lam, bool first) {
        std::size_t kept = 0;
        for (std::size_t k = 0; k < moving_.size(); ++k) {
            const std::int32_t t = moving_[k];
            const double step = newton_step({sums_[2 * k], sums_[2 * k + 1], 1}, lam);
            if (moves(roots[t], back_[t], step, first)) moving_[kept++] = t;
        }
        moving_.resize(kept);
    }

    // Takes a step, or half a step back if rounding has put the root above its values, see `step_back`. Returns whether
    // the root may still move.
    static bool moves(double& root, double& back, double step, bool first) {
        if (step >= 1 && back == 0) {
            root = 1;
            return false;
        }
        if (first) {
            const bool none = root == 0 && step == 0;
            root = step > 0 ? step : 0;
            return !none;
        }
        if (step < root) {
            back = back == 0 ? static_cast<double>(std::numeric_limits<Real>::epsilon()) : 2 * back;
            root -= back * root;
            return true;
        }
        if (back > 0 || !(step > root)) return false;
        root = step;
        return true;
    }

    std::vector<std::int32_t> moving_;
    std::vector<double> sums_, back_;
};

}  // namespace prunus::engine
