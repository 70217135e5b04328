// The gradient phase: all splits of a tree move together, by the gradient of the loss of the whole tree.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <vector>

#include "plan.hpp"
#include "sample.hpp"
#include "worth.hpp"

namespace prunus::search {

struct Course {
    int steps = 150;
    double soft = 2, hard = 60;  // the scale of the scores at the begin and at the end
    double rate = 0.03;
    int most_rows = 4096;
};

// Rows pass a split to both sides, by a sigmoid of their score, whose scale grows. The worth of all leaves is
// sum over leaves of |S|^2 / N with rows counted by their shares; its gradient by the share of a row in a leaf whose
// mean is v = S / N is w (2 v y - |v|^2). Splits by groups of levels and rows without a number stay where they are.
template <int K>
class Anneal {
  public:
    Anneal(const Sample& sample, const Worth<K>& worth) : sample_(sample), worth_(worth), k_(worth.k()) {}

    void run(Plan& plan, const Course& course, const std::atomic<bool>& stop) {
        prepare(plan, course);
        for (int step = -1; step < course.steps && !stop.load(std::memory_order_relaxed); ++step) {
            const double progress = static_cast<double>(std::max(step, 0)) / std::max(1, course.steps - 1);
            pass(plan, static_cast<float>(course.soft * std::pow(course.hard / course.soft, progress)));
            for (std::size_t q = 0; q < plan.size(); ++q) {
                for (int j = 0; j < k_; ++j) mean_[q * k_ + j] = sums_[q * (k_ + 1) + 1 + j] / sums_[q * (k_ + 1)];
            }
            if (step >= 0) move(plan, step + 1, course.rate * (1 - 0.9 * progress));
        }
        for (std::size_t q = 0; q < plan.size(); ++q) {
            if (!moves(plan[q])) continue;
            for (int j = 0; j < plan[q].sum.terms; ++j) plan[q].sum.weight[j] = static_cast<float>(place_[q * 3 + j]);
            plan[q].threshold = static_cast<float>(place_[q * 3 + 2]);
        }
    }

  private:
    static bool moves(const PlanNode& node) { return !node.is_leaf() && !node.is_group && std::isfinite(node.threshold); }

    // Weights are scaled such that the sums of a split vary by about 1.
    void prepare(Plan& plan, const Course& course) {
        const int stride = std::max(1, sample_.rows / course.most_rows);
        rows_.clear();
        for (int i = 0; i < sample_.rows; i += stride) rows_.push_back(i);
        place_.assign(plan.size() * 3, 0.0);
        first_.assign(plan.size() * 3, 0.0);
        second_.assign(plan.size() * 3, 0.0);
        mean_.assign(plan.size() * k_, 0.0);
        for (std::size_t q = 0; q < plan.size(); ++q) {
            if (!moves(plan[q])) continue;
            double sum = 0, square = 0, n = 0;
            for (const int r : rows_) {
                const float v = plan[q].sum.of(sample_, r);
                if (std::isnan(v)) continue;
                sum += v;
                square += static_cast<double>(v) * v;
                n += 1;
            }
            const double spread = n > 0 ? std::sqrt(std::max(1e-12, square / n - sum * sum / (n * n))) : 1;
            for (int j = 0; j < plan[q].sum.terms; ++j) place_[q * 3 + j] = plan[q].sum.weight[j] / spread;
            place_[q * 3 + 2] = plan[q].threshold / spread;
        }
    }

    // Sums of all leaves, and the gradient of all splits.
    void pass(const Plan& plan, float beta) {
        const int m = static_cast<int>(plan.size());
        sums_.assign(static_cast<std::size_t>(m) * (k_ + 1), 0.0);
        for (int q = 0; q < m; ++q) sums_[static_cast<std::size_t>(q) * (k_ + 1)] = 1e-6;
        gradient_.assign(static_cast<std::size_t>(m) * 3, 0.0);
        length_.assign(m, 0.0);
        for (int q = 0; q < m; ++q) {
            for (int j = 0; j < k_; ++j) length_[q] += mean_[q * k_ + j] * mean_[q * k_ + j];
        }
        share_.resize(m);
        right_.resize(m);
        value_.resize(m);
        for (const int r : rows_) {
            down(plan, r, beta);
            up(plan, r, beta);
        }
        for (double& g : gradient_) g /= static_cast<double>(rows_.size());
    }

    // Shares of a row, from the root to the leaves. Branches that it hardly reaches are left out.
    void down(const Plan& plan, int r, float beta) {
        const double* stat = sample_.stat(r);
        share_[0] = 1;
        const int m = static_cast<int>(plan.size());
        for (int q = 0; q < m;) {
            const PlanNode& node = plan[q];
            if (share_[q] <= negligible) {
                std::fill(share_.begin() + q, share_.begin() + node.end, 0.0);
                q = node.end;
                continue;
            }
            if (node.is_leaf()) {
                value_[q] = leaf_value(q, r, stat);
                ++q;
                continue;
            }
            right_[q] = right_share(node, q, r, beta);
            share_[node.left] = share_[q] * (1 - right_[q]);
            share_[node.right] = share_[q] * right_[q];
            ++q;
        }
    }

    // What the row is worth in a leaf, whose sums it joins.
    double leaf_value(int q, int r, const double* stat) {
        double* to = sums_.data() + static_cast<std::size_t>(q) * (k_ + 1);
        const double* mean = mean_.data() + static_cast<std::size_t>(q) * k_;
        to[0] += share_[q] * stat[0];
        double product = 0;
        if (!sample_.labels.empty()) {
            const int label = sample_.labels[r];
            to[1 + label] += share_[q] * stat[0];
            product = mean[label] * stat[0];
        } else {
            for (int j = 0; j < k_; ++j) {
                to[1 + j] += share_[q] * stat[1 + j];
                product += mean[j] * stat[1 + j];
            }
        }
        return 2 * product - length_[q] * stat[0];
    }

    double right_share(const PlanNode& node, int q, int r, float beta) const {
        if (!moves(node)) return node.goes_left(sample_, r) ? 0 : 1;
        float score = -static_cast<float>(place_[q * 3 + 2]);
        for (int j = 0; j < node.sum.terms; ++j) {
            score += static_cast<float>(place_[q * 3 + j]) * sample_.values[node.sum.feature[j]][r];
        }
        if (std::isnan(score)) return node.missing_left ? 0 : 1;
        return 1 / (1 + std::exp(-std::max(-30.0f, std::min(30.0f, beta * score))));
    }

    void up(const Plan& plan, int r, float beta) {
        for (int q = static_cast<int>(plan.size()) - 1; q >= 0; --q) {
            const PlanNode& node = plan[q];
            if (node.is_leaf() || share_[q] == 0) continue;
            const double right = right_[q];
            const double left_value = share_[node.left] > 0 ? value_[node.left] : 0;
            const double right_value = share_[node.right] > 0 ? value_[node.right] : 0;
            value_[q] = (1 - right) * left_value + right * right_value;
            if (!moves(node) || right == 0 || right == 1) continue;
            if (share_[node.left] == 0 || share_[node.right] == 0) continue;
            const double g = share_[q] * beta * right * (1 - right) * (right_value - left_value);
            for (int j = 0; j < node.sum.terms; ++j) {
                const float v = sample_.values[node.sum.feature[j]][r];
                if (!std::isnan(v)) gradient_[q * 3 + j] += g * v;
            }
            gradient_[q * 3 + 2] -= g;
        }
    }

    void move(const Plan& plan, int t, double rate) {
        const double keep = 0.9, keep_square = 0.99;
        for (std::size_t q = 0; q < plan.size(); ++q) {
            if (!moves(plan[q])) continue;
            for (int j = 0; j < 3; ++j) {
                if (j == 1 && plan[q].sum.terms == 1) continue;
                const double g = gradient_[q * 3 + j];
                double &a = first_[q * 3 + j], &b = second_[q * 3 + j];
                a = keep * a + (1 - keep) * g;
                b = keep_square * b + (1 - keep_square) * g * g;
                const double mean = a / (1 - std::pow(keep, t)), square = b / (1 - std::pow(keep_square, t));
                place_[q * 3 + j] += rate * mean / (std::sqrt(square) + 1e-10);
            }
        }
    }

    static constexpr double negligible = 1e-4;
    const Sample& sample_;
    Worth<K> worth_;
    int k_;
    std::vector<int> rows_;
    std::vector<double> place_, first_, second_, gradient_;  // (nodes, 3): two weights and the threshold
    std::vector<double> mean_, sums_, length_, share_, right_, value_;
};

}  // namespace prunus::search
