// Polish: one split is changed, everything below it stays, and its best threshold is found for the tree as a whole.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "grow.hpp"
#include "plan.hpp"
#include "random.hpp"
#include "sample.hpp"
#include "worth.hpp"

namespace prunus::search {

template <int K>
class Polish {
  public:
    Polish(const Sample& sample, const Worth<K>& worth, const Limits& limits, Random& random)
        : sample_(sample), worth_(worth), limits_(limits), random_(random), size_(worth.size()) {}

    // Tries this many changes, and keeps those that make the tree as a whole worth more; returns what it is worth, far
    // below 0 if a leaf has too few rows.
    double run(Plan& plan, int rounds, int most_terms_here, const std::atomic<bool>& stop) {
        read(plan);
        splits_.clear();
        for (std::size_t q = 0; q < plan.size(); ++q) {
            if (!plan[q].is_leaf()) splits_.push_back(static_cast<int>(q));
        }
        for (int i = 0; i < rounds && !splits_.empty() && !stop.load(std::memory_order_relaxed); ++i) {
            const int t = splits_[random_.below(static_cast<int>(splits_.size()))];
            take_rows(plan, t);
            if (static_cast<double>(rows_.size()) < 2) continue;
            if (plan[t].is_group) {
                flip_level(plan, t);
            } else {
                move_split(plan, t, most_terms_here);
            }
        }
        for (const int t : splits_) settle(plan, t);
        double sum = 0;
        for (std::size_t q = 0; q < plan.size(); ++q) {
            if (!plan[q].is_leaf()) continue;
            const double* own = cell(static_cast<int>(q));
            if (plan.size() > 1 && own[0] < limits_.least * (1 - 1e-9)) return -1e30;
            sum += worth_(own);
        }
        return sum;
    }

  private:
    static constexpr int buckets = 128;

    double* cell(int q) { return cells_.data() + static_cast<std::size_t>(q) * size_; }

    void add(double* to, int row, double sign) const {
        const double* stat = sample_.stat(row);
        if (!sample_.labels.empty()) {
            to[0] += sign * stat[0];
            to[1 + sample_.labels[row]] += sign * stat[0];
            return;
        }
        for (int j = 0; j < size_; ++j) to[j] += sign * stat[j];
    }

    void read(const Plan& plan) {
        leaf_.resize(sample_.rows);
        cells_.assign(plan.size() * size_, 0.0);
        for (int i = 0; i < sample_.rows; ++i) {
            leaf_[i] = leaf_of(plan, sample_, i);
            add(cell(leaf_[i]), i, 1);
        }
    }

    void take_rows(const Plan& plan, int t) {
        rows_.clear();
        const int end = plan[t].end;
        rows_.resize(sample_.rows);
        int kept = 0;
        for (int i = 0; i < sample_.rows; ++i) {
            rows_[kept] = i;
            kept += leaf_[i] > t && leaf_[i] < end;
        }
        rows_.resize(kept);
    }

    // Moves a threshold to the middle between the rows on either side, so that rounding errors route nobody otherwise.
    void settle(Plan& plan, int t) {
        PlanNode& node = plan[t];
        if (node.is_group || !std::isfinite(node.threshold)) return;
        float below = -std::numeric_limits<float>::infinity(), above = -below;
        for (int i = 0; i < sample_.rows; ++i) {
            if (leaf_[i] <= t || leaf_[i] >= node.end) continue;
            const float v = node.sum.of(sample_, i);
            if (v < node.threshold) below = std::max(below, v);
            if (v >= node.threshold) above = std::min(above, v);
        }
        if (!std::isfinite(below) || !std::isfinite(above)) return;
        const float middle = below + (above - below) / 2;
        node.threshold = middle > below ? middle : above;
    }

    // What the leaves below t would be worth beyond what they are; far below 0 if one would have too few rows.
    double change(const Plan& plan, int t, const std::vector<double>& cells, double before) {
        double sum = -before;
        for (int q = t + 1; q < plan[t].end; ++q) {
            if (!plan[q].is_leaf()) continue;
            const double* then = cells.data() + static_cast<std::size_t>(q - t) * size_;
            if (then[0] < std::min(limits_.least, cell(q)[0])) return -1e30;
            sum += worth_(then);
        }
        return sum;
    }

    double worth_below(const Plan& plan, int t) {
        double sum = 0;
        for (int q = t + 1; q < plan[t].end; ++q) {
            if (plan[q].is_leaf()) sum += worth_(cell(q));
        }
        return sum;
    }

    // The other side of a level that some row has.
    void flip_level(Plan& plan, int t) {
        const int row = rows_[random_.below(static_cast<int>(rows_.size()))];
        const int level = sample_.bins[plan[t].column][row];
        const bool was_left = plan[t].group.has(level);
        const int to = was_left ? plan[t].right : plan[t].left;
        trial_.assign(cells_.begin() + static_cast<std::ptrdiff_t>(t) * size_,
                      cells_.begin() + static_cast<std::ptrdiff_t>(plan[t].end) * size_);
        moved_.clear();
        for (const int r : rows_) {
            if (sample_.bins[plan[t].column][r] != level) continue;
            const int leaf = leaf_of(plan, sample_, r, to);
            moved_.push_back({r, leaf});
            add(trial_.data() + static_cast<std::size_t>(leaf_[r] - t) * size_, r, -1);
            add(trial_.data() + static_cast<std::size_t>(leaf - t) * size_, r, 1);
        }
        if (change(plan, t, trial_, worth_below(plan, t)) <= 1e-9) return;
        plan[t].group.flip(level);
        for (const auto& [r, leaf] : moved_) leaf_[r] = leaf;
        std::copy(trial_.begin(), trial_.end(), cells_.begin() + static_cast<std::ptrdiff_t>(t) * size_);
    }

    // Another sum, near the one of the split or with another feature.
    bool change_sum(Sum& sum, int most_terms_here) {
        const double kind = random_.uniform();
        if (kind < 0.25) return true;  // only the threshold
        if (kind < 0.7 && sum.terms > 1) {
            sum.weight[random_.below(2)] *= static_cast<float>(1 + random_.normal() * std::pow(10, -2 * random_.uniform()));
            return true;
        }
        if (kind < 0.7 && most_terms_here == 1) return true;
        const int feature = random_.below(static_cast<int>(sample_.features.size()));
        if (sample_.values[feature].empty()) return false;
        if (most_terms_here == 1) {
            if (sample_.features[feature].is_group) return false;
            sum.feature[0] = feature;
            return true;
        }
        const int j = sum.terms == 1 ? 1 : random_.below(2);
        if (sample_.features[sum.feature[1 - j]].column == sample_.features[feature].column) return false;
        const double other = std::fabs(sum.weight[1 - j]);
        sum.feature[j] = feature;
        sum.weight[j] = static_cast<float>(other * random_.normal() * std::pow(10, -random_.uniform()));
        sum.terms = 2;
        return true;
    }

    void move_split(Plan& plan, int t, int most_terms_here) {
        PlanNode trial = plan[t];
        if (!change_sum(trial.sum, most_terms_here)) return;
        if (random_.uniform() < 0.1) trial.missing_left = !trial.missing_left;
        sums_.clear();
        float low = std::numeric_limits<float>::infinity(), high = -low;
        for (const int r : rows_) {
            const float v = trial.sum.of(sample_, r);
            sums_.push_back(v);
            if (std::isnan(v)) continue;
            low = std::min(low, v);
            high = std::max(high, v);
        }
        if (!(high > low) || !std::isfinite(high - low)) return;
        narrow(low, high);
        if (sweep(plan, t, trial, low, high)) reroute(plan, t, trial);
    }

    // Half of the time thresholds are tried only near the place of some row, where they lie closer together.
    void narrow(float& low, float& high) {
        if (random_.uniform() < 0.5) return;
        const float at = sums_[random_.below(static_cast<int>(sums_.size()))];
        if (std::isnan(at)) return;
        const float reach = (high - low) * static_cast<float>(0.5 * std::pow(10, -1.5 * random_.uniform()));
        low = std::max(low, at - reach);
        high = std::min(high, at + reach);
    }

    // Finds the best threshold from low to high; false if none is better than the split that there is. Rows are put
    // into buckets by their sums. The threshold moves from bucket to bucket, and takes the rows that it passes from
    // their leaf on the right to their leaf on the left.
    bool sweep(const Plan& plan, int t, PlanNode& trial, float low, float high) {
        const float scale = buckets / (high - low);
        if (!std::isfinite(scale)) return false;
        const int nodes = plan[t].end - t;
        steps_.assign(static_cast<std::size_t>(buckets) * nodes * size_, 0.0);
        trial_.assign(static_cast<std::size_t>(nodes) * size_, 0.0);
        smallest_.assign(buckets, std::numeric_limits<float>::infinity());
        largest_.assign(buckets, -std::numeric_limits<float>::infinity());
        for (std::size_t i = 0; i < rows_.size(); ++i) {
            const int r = rows_[i];
            const float v = sums_[i];
            const bool was_left = leaf_[r] < plan[t].right;
            const auto leaf_on = [&](bool left) {
                return (was_left == left ? leaf_[r] : leaf_of(plan, sample_, r, left ? plan[t].left : plan[t].right)) - t;
            };
            if (std::isnan(v) || v < low || v > high) {
                const bool left = std::isnan(v) ? trial.missing_left : v < low;
                add(trial_.data() + static_cast<std::size_t>(leaf_on(left)) * size_, r, 1);
                continue;
            }
            const int b = std::min(buckets - 1, static_cast<int>((v - low) * scale));
            const int left = leaf_on(true), right = leaf_on(false);
            add(trial_.data() + static_cast<std::size_t>(right) * size_, r, 1);
            double* step = steps_.data() + static_cast<std::size_t>(b) * nodes * size_;
            add(step + static_cast<std::size_t>(left) * size_, r, 1);
            add(step + static_cast<std::size_t>(right) * size_, r, -1);
            smallest_[b] = std::min(smallest_[b], v);
            largest_[b] = std::max(largest_[b], v);
        }
        const double before = worth_below(plan, t);
        double best = 1e-9;
        int where = -1;
        for (int b = 0; b + 1 < buckets; ++b) {
            if (largest_[b] < smallest_[b]) continue;
            const double* step = steps_.data() + static_cast<std::size_t>(b) * nodes * size_;
            for (std::size_t j = 0; j < trial_.size(); ++j) trial_[j] += step[j];
            const double here = change(plan, t, trial_, before);
            if (here > best) {
                best = here;
                where = b;
            }
        }
        if (where < 0) return false;
        int next = where + 1;
        while (next < buckets && largest_[next] < smallest_[next]) ++next;
        const float below = largest_[where], above = next < buckets ? smallest_[next] : high;
        const float middle = below + (above - below) / 2;
        trial.threshold = middle > below ? middle : above;
        return true;
    }

    void reroute(Plan& plan, int t, const PlanNode& trial) {
        plan[t] = trial;
        for (int q = t; q < plan[t].end; ++q) std::fill(cell(q), cell(q) + size_, 0.0);
        for (const int r : rows_) {
            leaf_[r] = leaf_of(plan, sample_, r, t);
            add(cell(leaf_[r]), r, 1);
        }
    }

    struct Moved {
        int row, leaf;
    };

    const Sample& sample_;
    Worth<K> worth_;
    Limits limits_;
    Random& random_;
    int size_;
    std::vector<int> leaf_, rows_, splits_;
    std::vector<double> cells_, trial_, steps_;
    std::vector<float> sums_, smallest_, largest_;
    std::vector<Moved> moved_;
};

}  // namespace prunus::search
