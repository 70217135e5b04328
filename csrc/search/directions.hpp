// The dictionary of directions: columns, and sums of two features, each of which divides the rows into bins.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "cuts.hpp"
#include "sample.hpp"

namespace prunus::search {

constexpr int most_terms = 2;

// A weighted sum of features.
struct Sum {
    int terms = 1;
    int feature[most_terms] = {0, 0};
    float weight[most_terms] = {1, 0};

    // NaN if a number is missing.
    float of(const Sample& sample, int row) const {
        float sum = weight[0] * sample.values[feature[0]][row];
        if (terms > 1) sum += weight[1] * sample.values[feature[1]][row];
        return sum;
    }

    void of_all(const Sample& sample, std::vector<float>& out) const {
        out.resize(sample.rows);
        const float* first = sample.values[feature[0]].data();
        const float a = weight[0], b = weight[1];
        if (terms == 1) {
            for (int i = 0; i < sample.rows; ++i) out[i] = a * first[i];
            return;
        }
        const float* second = sample.values[feature[1]].data();
        for (int i = 0; i < sample.rows; ++i) out[i] = a * first[i] + b * second[i];
    }
};

struct Direction {
    Sum sum;
    bool is_category = false;
    int bin_count = 0;
    const std::uint8_t* bins = nullptr;  // of each row
    std::vector<float> edges;            // a sum is in bin b if it is below edge b, and not below edge b - 1
    std::vector<std::uint8_t> own;       // the bins, unless they are those of a column
};

class Directions {
  public:
    explicit Directions(Sample& sample) : sample_(sample) {
        for (int j = 0; j < sample.columns; ++j) {
            Direction& column = all_.emplace_back();
            column.sum.feature[0] = j;
            column.is_category = sample.is_category[j] != 0;
            column.bin_count = sample.bin_count[j];
            column.bins = sample.bins[j].data();
            const float* edges = sample.edges + static_cast<std::size_t>(j) * bins_of_column;
            column.edges.assign(edges, edges + std::max(0, column.bin_count - 1));
        }
    }

    int count() const { return static_cast<int>(all_.size()); }
    const Direction& operator[](int p) const { return all_[p]; }

    // Adds a direction whose bins hold equally many of these rows, and has an edge at `exact` unless that is NaN.
    int add(const Sum& sum, const std::int32_t* rows, int count, int most_bins,
            float exact = std::numeric_limits<float>::quiet_NaN()) {
        sum.of_all(sample_, sums_);
        some_.clear();
        const int step = std::max(1, count / 2048);
        for (int i = 0; i < count; i += step) {
            if (!std::isnan(sums_[rows[i]])) some_.push_back(sums_[rows[i]]);
        }
        std::sort(some_.begin(), some_.end());
        Direction direction;
        direction.sum = sum;
        auto& edges = direction.edges;
        const int wanted = std::min<int>(most_bins, static_cast<int>(some_.size()));
        for (int b = 1; b < wanted; ++b) edges.push_back(some_[some_.size() * b / wanted]);
        if (!std::isnan(exact)) edges.push_back(exact);
        std::sort(edges.begin(), edges.end());
        edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
        direction.bin_count = static_cast<int>(edges.size()) + 1;
        fill(direction);
        all_.push_back(std::move(direction));
        all_.back().bins = all_.back().own.data();
        return count_before_last();
    }

    // Leaves only these directions, in this order, after those of the columns.
    void keep(const std::vector<int>& kept) {
        std::vector<Direction> rest;
        for (const int p : kept) rest.push_back(std::move(all_[p]));
        all_.resize(sample_.columns);
        for (auto& direction : rest) all_.push_back(std::move(direction));
        for (int p = sample_.columns; p < this->count(); ++p) all_[p].bins = all_[p].own.data();
    }

  private:
    int count_before_last() const { return static_cast<int>(all_.size()) - 1; }

    void fill(Direction& direction) {
        const auto& edges = direction.edges;
        direction.own.resize(sample_.rows);
        for (int i = 0; i < sample_.rows; ++i) {
            const float v = sums_[i];
            if (std::isnan(v)) {
                direction.own[i] = missing_bin;
                continue;
            }
            int low = 0;  // the number of edges that are not above v
            for (int length = static_cast<int>(edges.size()); length > 0;) {
                const int half = length / 2;
                const bool right = !(v < edges[low + half]);
                low = right ? low + half + 1 : low;
                length = right ? length - half - 1 : half;
            }
            direction.own[i] = static_cast<std::uint8_t>(low);
        }
    }

    Sample& sample_;
    std::vector<Direction> all_;
    std::vector<float> sums_, some_;
};

}  // namespace prunus::search
