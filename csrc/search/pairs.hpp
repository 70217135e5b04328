// Sums of two features that cut some rows well, found among all pairs of features on coarse grids.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "cuts.hpp"
#include "directions.hpp"
#include "random.hpp"
#include "sample.hpp"
#include "worth.hpp"

namespace prunus::search {

// A grid holds the sums of rows by the coarse bins of two features. A direction in the plane of the two is then tried
// on a few hundred places of the grid instead of on thousands of rows; only the best pairs are tried on rows.
template <int K>
class Pairs {
  public:
    struct Found {
        Sum sum;
        double gain;
    };

    Pairs(Sample& sample, const Worth<K>& worth, double least)
        : sample_(sample), worth_(worth), least_(least), size_(worth.size()), cuts_(worth, least) {}

    // The best sum of each of the best pairs for these rows, at most `wanted`.
    std::vector<Found> find(const std::int32_t* rows, int count, int wanted, Random& random) {
        take(rows, count);
        read_axes(random);
        std::vector<Found> best;
        for (std::size_t a = 0; a < axes_.size(); ++a) {
            for (std::size_t b = 0; b < a; ++b) {
                if (a >= strong && b >= few_strong) continue;
                if (axes_[a].column == axes_[b].column) continue;
                best.push_back(on_grid(axes_[b], axes_[a]));
            }
        }
        const auto better = [](const Found& a, const Found& b) { return a.gain > b.gain; };
        std::stable_sort(best.begin(), best.end(), better);
        if (static_cast<int>(best.size()) > wanted) best.resize(wanted);
        for (Found& found : best) refine(found);
        std::stable_sort(best.begin(), best.end(), better);
        return best;
    }

  private:
    static constexpr int coarse = 16, buckets = 64, angles = 8, most_rows = 2500;
    static constexpr std::size_t strong = 24, few_strong = 4;  // all pairs of so many; these with all others
    static constexpr std::size_t most_axes = 160;

    struct Axis {
        int feature = 0, column = 0;
        double gain = 0;
        float spread = 1;
        float center[coarse] = {};
        std::vector<std::uint8_t> place;  // of each row; 255 if the number is missing
    };

    // Rows, evenly drawn if they are many.
    void take(const std::int32_t* rows, int count) {
        rows_.clear();
        const int kept = std::min(count, most_rows);
        for (int i = 0; i < kept; ++i) rows_.push_back(rows[static_cast<std::int64_t>(i) * count / kept]);
        least_here_ = least_ * kept / count;
        cuts_ = Cuts<K>(worth_, least_here_);
        cuts_.take(sample_, rows_.data(), kept);
    }

    // Features with their gains alone, the best first, without those that are constant here.
    void read_axes(Random& random) {
        axes_.clear();
        for (int j = 0; j < sample_.columns; ++j) {
            const bool is_category = sample_.is_category[j] != 0;
            const Cut cut = cuts_.best(sample_.bins[j].data(), sample_.bin_count[j], is_category);
            Axis axis;
            axis.column = j;
            axis.gain = cut.gain;
            if (is_category) {
                if (cut.gain <= 0) continue;
                axis.feature = sample_.add_group(j, cut.group);
            } else {
                axis.feature = j;
            }
            axes_.push_back(axis);
        }
        for (Axis& axis : axes_) axis.gain += 1e-12 * random.uniform();
        std::stable_sort(axes_.begin(), axes_.end(), [](const Axis& a, const Axis& b) { return a.gain > b.gain; });
        if (axes_.size() > most_axes) axes_.resize(most_axes);
        std::size_t kept = 0;
        for (std::size_t a = 0; a < axes_.size(); ++a) {
            if (!place_rows(axes_[a])) continue;
            if (kept != a) axes_[kept] = std::move(axes_[a]);
            ++kept;
        }
        axes_.resize(kept);
    }

    bool place_rows(Axis& axis) {
        const auto& values = sample_.values[axis.feature];
        sorted_.clear();
        for (const int r : rows_) {
            if (!std::isnan(values[r])) sorted_.push_back(values[r]);
        }
        if (sorted_.size() < 4) return false;
        std::sort(sorted_.begin(), sorted_.end());
        if (sorted_.front() == sorted_.back()) return false;
        edges_.clear();
        for (int b = 1; b < coarse; ++b) {
            const float edge = sorted_[sorted_.size() * b / coarse];
            if (edge > sorted_.front() && (edges_.empty() || edge > edges_.back())) edges_.push_back(edge);
        }
        const float low = sorted_[sorted_.size() / 10], high = sorted_[sorted_.size() * 9 / 10];
        axis.spread = high > low ? high - low : sorted_.back() - sorted_.front();
        double sums[coarse] = {}, counts[coarse] = {};
        axis.place.resize(rows_.size());
        for (std::size_t i = 0; i < rows_.size(); ++i) {
            const float v = values[rows_[i]];
            if (std::isnan(v)) {
                axis.place[i] = missing_bin;
                continue;
            }
            const auto place = std::upper_bound(edges_.begin(), edges_.end(), v) - edges_.begin();
            axis.place[i] = static_cast<std::uint8_t>(place);
            sums[place] += v;
            counts[place] += 1;
        }
        for (int b = 0; b < coarse; ++b) axis.center[b] = static_cast<float>(counts[b] > 0 ? sums[b] / counts[b] : 0);
        return true;
    }

    void add_row(double* cell, int i) const {
        const double* stat = sample_.stat(rows_[i]);
        if (!sample_.labels.empty()) {
            cell[0] += stat[0];
            cell[1 + sample_.labels[rows_[i]]] += stat[0];
            return;
        }
        for (int j = 0; j < size_; ++j) cell[j] += stat[j];
    }

    static double angle(int a) { return 3.141592653589793 * a / angles; }

    // The best direction for a pair, on its grid.
    Found on_grid(const Axis& first, const Axis& second) {
        grid_.assign(static_cast<std::size_t>(coarse) * coarse * size_, 0.0);
        for (std::size_t i = 0; i < rows_.size(); ++i) {
            if (first.place[i] == missing_bin || second.place[i] == missing_bin) continue;
            add_row(grid_.data() + static_cast<std::size_t>(first.place[i] * coarse + second.place[i]) * size_,
                    static_cast<int>(i));
        }
        Found best{sum_of(first.feature, second.feature, 1, 0), -1};
        for (int a = 1; a < angles; ++a) {
            if (2 * a == angles) continue;  // the second feature alone
            const float x = static_cast<float>(std::cos(angle(a))) / first.spread;
            const float y = static_cast<float>(std::sin(angle(a))) / second.spread;
            if (!std::isfinite(x) || !std::isfinite(y)) continue;
            float low = 1e30f, high = -1e30f, at[coarse * coarse];
            for (int p = 0; p < coarse * coarse; ++p) {
                at[p] = x * first.center[p / coarse] + y * second.center[p % coarse];
                if (grid_[static_cast<std::size_t>(p) * size_] == 0) continue;
                low = std::min(low, at[p]);
                high = std::max(high, at[p]);
            }
            if (!(high > low)) continue;
            clear_buckets();
            const float scale = (buckets - 1) / (high - low);
            for (int p = 0; p < coarse * coarse; ++p) {
                const double* from = grid_.data() + static_cast<std::size_t>(p) * size_;
                if (from[0] == 0) continue;
                const float place = std::max(0.0f, (at[p] - low) * scale);  // 0 if it is NaN
                double* to = bucket(static_cast<int>(std::min<float>(buckets - 1, place)));
                for (int j = 0; j < size_; ++j) to[j] += from[j];
            }
            const double gain = best_gain();
            if (gain > best.gain) best = {sum_of(first.feature, second.feature, x, y), gain};
        }
        return best;
    }

    static Sum sum_of(int first, int second, float x, float y) {
        Sum sum;
        sum.terms = 2;
        sum.feature[0] = first;
        sum.feature[1] = second;
        sum.weight[0] = x;
        sum.weight[1] = y;
        return sum;
    }

    // The angle of a sum, ever finer, on the rows themselves.
    void refine(Found& found) {
        found.gain = on_rows(found.sum);
        double at = std::atan2(static_cast<double>(spread_of(found.sum.feature[1]) * found.sum.weight[1]),
                               static_cast<double>(spread_of(found.sum.feature[0]) * found.sum.weight[0]));
        for (double step = angle(1) / 2; step > 0.02; step /= 2) {
            for (const double a : {at - step, at + step}) {
                const float x = static_cast<float>(std::cos(a)) / spread_of(found.sum.feature[0]);
                const float y = static_cast<float>(std::sin(a)) / spread_of(found.sum.feature[1]);
                const Sum sum = sum_of(found.sum.feature[0], found.sum.feature[1], x, y);
                const double gain = on_rows(sum);
                if (gain <= found.gain) continue;
                found = {sum, gain};
                at = a;
            }
        }
    }

    float spread_of(int feature) const {
        for (const Axis& axis : axes_) {
            if (axis.feature == feature) return axis.spread;
        }
        return 1;
    }

    double on_rows(const Sum& sum) {
        sums_.clear();
        for (const int r : rows_) sums_.push_back(sum.of(sample_, r));
        sorted_.clear();
        for (std::size_t i = 0; i < sums_.size(); i += std::max<std::size_t>(1, sums_.size() / 256)) {
            if (!std::isnan(sums_[i])) sorted_.push_back(sums_[i]);
        }
        if (sorted_.empty()) return -1;
        std::sort(sorted_.begin(), sorted_.end());
        edges_.clear();
        for (int b = 1; b < buckets; ++b) edges_.push_back(sorted_[sorted_.size() * b / buckets]);
        clear_buckets();
        for (std::size_t i = 0; i < sums_.size(); ++i) {
            if (std::isnan(sums_[i])) continue;
            int low = 0;  // the number of edges that are not above the sum
            for (int half = buckets / 2; half > 0; half /= 2) {
                if (low + half <= buckets - 1 && !(sums_[i] < edges_[low + half - 1])) low += half;
            }
            add_row(bucket(low), static_cast<int>(i));
        }
        return best_gain();
    }

    double* bucket(int b) { return buckets_.data() + static_cast<std::size_t>(b) * size_; }
    void clear_buckets() { buckets_.assign(static_cast<std::size_t>(buckets) * size_, 0.0); }

    double best_gain() {
        left_.assign(size_, 0.0);
        right_.assign(size_, 0.0);
        for (int b = 0; b < buckets; ++b) {
            for (int j = 0; j < size_; ++j) right_[j] += bucket(b)[j];
        }
        const double base = worth_(right_.data());
        double best = -1;
        for (int b = 0; b + 1 < buckets; ++b) {
            const double* from = bucket(b);
            if (from[0] == 0) continue;
            for (int j = 0; j < size_; ++j) {
                left_[j] += from[j];
                right_[j] -= from[j];
            }
            if (left_[0] < least_here_ || right_[0] < least_here_) continue;
            best = std::max(best, worth_(left_.data()) + worth_(right_.data()) - base);
        }
        return best;
    }

    Sample& sample_;
    Worth<K> worth_;
    double least_, least_here_ = 0;
    int size_;
    Cuts<K> cuts_;
    std::vector<std::int32_t> rows_;
    std::vector<Axis> axes_;
    std::vector<double> grid_, buckets_, left_, right_;
    std::vector<float> sorted_, edges_, sums_;
};

}  // namespace prunus::search
