// The best cut of some rows by one column that is divided into bins.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "sample.hpp"
#include "worth.hpp"

namespace prunus::search {

// Which bins go left.
struct Cut {
    double gain = -1;
    int last = 0;               // of an ordered column: the last bin that goes left
    bool missing_left = false;  // the side of bin 255
    bool is_group = false;      // of a category: `group` goes left
    Levels group{};
};

// The side of each of the 256 bins.
inline void sides_of(const Cut& cut, std::uint8_t* left) {
    for (int b = 0; b < bins_of_column; ++b) left[b] = cut.is_group ? cut.group.has(b) : b <= cut.last;
    if (!cut.is_group) left[missing_bin] = cut.missing_left;
}

// Sums of the rows in each bin, and the search among them.
template <int K>
class Cuts {
  public:
    Cuts(const Worth<K>& worth, double least)
        : worth_(worth), least_(least), size_(worth.size()), cells_(bins_of_column * size_), left_(size_),
          right_(size_), total_(size_) {}

    // The rows of a node, in the order of `rows`: their statistics are copied together once for all columns.
    void take(const Sample& sample, const std::int32_t* rows, int count) {
        rows_ = rows;
        count_ = count;
        std::fill(total_.begin(), total_.end(), 0.0);
        square_ = 0;
        for (int i = 0; i < count; ++i) square_ += sample.squares[rows[i]];
        if (!sample.labels.empty()) {
            labels_.resize(count);
            weights_.resize(count);
            for (int i = 0; i < count; ++i) {
                labels_[i] = sample.labels[rows[i]];
                weights_[i] = sample.stat(rows[i])[0];
                total_[0] += weights_[i];
                total_[1 + labels_[i]] += weights_[i];
            }
        } else {
            stats_.resize(static_cast<std::size_t>(count) * size_);
            for (int i = 0; i < count; ++i) {
                const double* from = sample.stat(rows[i]);
                double* to = stats_.data() + static_cast<std::size_t>(i) * size_;
                for (int j = 0; j < size_; ++j) total_[j] += (to[j] = from[j]);
            }
        }
        base_ = worth_(total_.data());
    }

    const double* total() const { return total_.data(); }
    double base() const { return base_; }

    // The best cut by a column with these bins.
    Cut best(const std::uint8_t* bins, int bin_count, bool is_category) {
        add_up(bins, bin_count);
        return is_category ? best_group(bin_count) : best_threshold(bin_count);
    }

  private:
    double* cell(int b) { return cells_.data() + static_cast<std::size_t>(b) * size_; }

    void add_up(const std::uint8_t* bins, int bin_count) {
        std::memset(cells_.data(), 0, sizeof(double) * size_ * bin_count);
        std::memset(cell(missing_bin), 0, sizeof(double) * size_);
        if (!labels_.empty()) {
            for (int i = 0; i < count_; ++i) {
                double* to = cell(bins[rows_[i]]);
                to[0] += weights_[i];
                to[1 + labels_[i]] += weights_[i];
            }
        } else {
            for (int i = 0; i < count_; ++i) {
                double* to = cell(bins[rows_[i]]);
                const double* from = stats_.data() + static_cast<std::size_t>(i) * size_;
                for (int j = 0; j < size_; ++j) to[j] += from[j];
            }
        }
    }

    bool move_left(const double* from) {
        for (int j = 0; j < size_; ++j) {
            left_[j] += from[j];
            right_[j] = total_[j] - left_[j];
        }
        return left_[0] >= least_ && right_[0] >= least_;
    }

    double gain() const { return worth_(left_.data()) + worth_(right_.data()) - base_; }

    Cut best_threshold(int bin_count) {
        Cut found;
        const bool any_missing = cell(missing_bin)[0] > 0;
        for (int pass = 0; pass < (any_missing ? 2 : 1); ++pass) {
            std::fill(left_.begin(), left_.end(), 0.0);
            if (pass == 1) move_left(cell(missing_bin));
            const int last = any_missing && pass == 0 ? bin_count : bin_count - 1;
            for (int b = 0; b < last; ++b) {
                if (cell(b)[0] == 0 || !move_left(cell(b))) continue;
                const double here = gain();
                if (here > found.gain) {
                    found.gain = here;
                    found.last = b;
                    found.missing_left = any_missing ? pass == 1 : left_[0] >= right_[0];
                }
            }
        }
        return found;
    }

    // Levels in the order of their means; of several classes in the order of the shares of each.
    Cut best_group(int bin_count) {
        Cut found;
        found.is_group = true;
        present_.clear();
        for (int b = 0; b < bin_count; ++b) {
            if (cell(b)[0] > 0) present_.push_back(b);
        }
        if (cell(missing_bin)[0] > 0) present_.push_back(missing_bin);
        const int levels = static_cast<int>(present_.size()), outputs = worth_.k();
        if (levels < 2) return found;
        for (int j = 1; j <= (levels == 2 ? 1 : outputs); ++j) {
            const double mean = total_[j] / total_[0];
            const auto drawn = [&](int b) { return (cell(b)[j] + mean) / (cell(b)[0] + 1); };
            std::sort(present_.begin(), present_.end(), [&](int a, int b) {
                const double first = drawn(a), second = drawn(b);
                return first != second ? first < second : a < b;
            });
            std::fill(left_.begin(), left_.end(), 0.0);
            for (int i = 0; i + 1 < levels; ++i) {
                if (!move_left(cell(present_[i]))) continue;
                const double here = gain();
                if (here <= found.gain) continue;
                found.gain = here;
                found.group = Levels{};
                for (int q = 0; q <= i; ++q) found.group.add(present_[q]);
            }
        }
        if (found.gain > 0) found.gain = std::max(0.0, found.gain - chance(levels));
        return found;
    }

    // What the best grouping of so many levels gains if they mean nothing: the outputs of rows vary by v, so the means
    // of levels vary by chance, and a cut in their order gains about 2 / pi of that for each level beyond the second.
    double chance(int levels) const {
        double v = square_ / total_[0];
        for (int j = 1; j <= worth_.k(); ++j) v -= total_[j] * total_[j] / (total_[0] * total_[0]);
        return 0.64 * (worth_.is_share ? 2 : 1) * std::max(0.0, v) * (levels - 2);
    }

    Worth<K> worth_;
    double least_;
    int size_;
    std::vector<double> cells_, left_, right_, total_, stats_, weights_;
    std::vector<std::int32_t> labels_;
    std::vector<int> present_;
    const std::int32_t* rows_ = nullptr;
    int count_ = 0;
    double base_ = 0, square_ = 0;
};

}  // namespace prunus::search
