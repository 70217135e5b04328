// The rows of one search, copied together column by column.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

namespace prunus::search {

constexpr int bins_of_column = 256;
constexpr std::uint8_t missing_bin = 255;
constexpr int most_slopes = 4;  // of linear predictions
constexpr float largest_slope_value = 1000;  // larger numbers count as this: their squares would drown others in sums

// The levels of a category that go one way: one bit for each.
class Levels {
  public:
    bool has(int level) const { return (words_[level >> 6] >> (level & 63)) & 1; }
    void flip(int level) { words_[level >> 6] ^= std::uint64_t{1} << (level & 63); }
    void add(int level) { words_[level >> 6] |= std::uint64_t{1} << (level & 63); }
    bool operator==(const Levels& other) const { return words_ == other.words_; }

  private:
    std::array<std::uint64_t, 4> words_{};
};

// The table of which searches take samples. Arrays belong to the caller.
struct Table {
    std::int64_t rows;
    int columns;
    int outputs;                    // sums in a cell beside the weight
    const std::uint8_t* bins;       // (columns, rows); for categories the levels
    const std::int32_t* bin_count;  // (columns,)
    const std::uint8_t* is_category;
    const float* values;           // (columns, rows), NaN if missing; not read for categories
    const float* edges;            // (columns, 256): a value is in bin b if it is below edge b, and not below edge b - 1
    const double* weight;          // (rows,)
    const double* targets;         // (rows, outputs); null if there are labels
    const std::int32_t* labels;    // (rows,); null if there are targets
    bool is_share;                 // whether the one output is the share of the second of two classes
};

// A number that splits can use: a column, or whether the level of a category is one of some.
struct Feature {
    int column;
    bool is_group = false;
    Levels group{};
};

struct Sample {
    // `slopes` are columns of numbers, which linear predictions in leaves use.
    Sample(const Table& table, const std::int32_t* chosen, std::int64_t count, const std::vector<int>& slopes = {})
        : rows(static_cast<int>(count)), columns(table.columns), outputs(table.outputs),
          slopes(static_cast<int>(slopes.size())), is_share(table.is_share),
          bin_count(table.bin_count), edges(table.edges), is_category(table.is_category, table.is_category + columns) {
        bins.resize(columns);
        values.resize(columns);
        for (int j = 0; j < columns; ++j) {
            const std::uint8_t* from = table.bins + j * table.rows;
            const float* numbers = table.values + j * table.rows;
            bins[j].resize(rows);
            for (int i = 0; i < rows; ++i) bins[j][i] = from[chosen[i]];
            features.push_back({j});
            if (is_category[j]) continue;
            values[j].resize(rows);
            for (int i = 0; i < rows; ++i) values[j][i] = numbers[chosen[i]];
        }
        stats.resize(static_cast<std::size_t>(rows) * size());
        for (int i = 0; i < rows; ++i) {
            const std::int64_t r = chosen[i];
            const double w = table.weight[r];
            double* cell = stats.data() + static_cast<std::size_t>(i) * size();
            cell[0] = w;
            if (table.labels) {
                cell[1 + table.labels[r]] = w;
                squares.push_back(w);
            } else {
                double square = 0;
                for (int k = 0; k < outputs; ++k) {
                    const double y = table.targets[r * outputs + k];
                    cell[1 + k] = w * y;
                    square += w * y * y;
                }
                squares.push_back(square);
                add_products(cell, slopes, i);
            }
        }
        if (table.labels) {
            labels.resize(rows);
            for (int i = 0; i < rows; ++i) labels[i] = table.labels[chosen[i]];
        }
    }

    // Numbers in a cell: the weight, the weighted sum of each output, and what linear predictions need.
    int size() const { return 1 + outputs + slopes + slopes * (slopes + 1) / 2 + slopes * outputs; }
    const double* stat(int i) const { return stats.data() + static_cast<std::size_t>(i) * size(); }

    // Adds the feature "the level of this column is in the group" and returns its number.
    int add_group(int column, const Levels& group) {
        for (std::size_t f = columns; f < features.size(); ++f) {
            if (features[f].column == column && features[f].group == group) return static_cast<int>(f);
        }
        features.push_back({column, true, group});
        auto& numbers = values.emplace_back(rows);
        for (int i = 0; i < rows; ++i) numbers[i] = group.has(bins[column][i]) ? 1.0f : 0.0f;
        return static_cast<int>(features.size()) - 1;
    }

    int rows, columns, outputs, slopes;
    bool is_share;
    const std::int32_t* bin_count;
    const float* edges;
    std::vector<std::uint8_t> is_category;
    std::vector<std::vector<std::uint8_t>> bins;  // of each column
    std::vector<std::vector<float>> values;       // of each feature; empty for categories
    std::vector<Feature> features;                // first the columns, then groups of levels
    std::vector<double> stats;                    // (rows, size)
    std::vector<double> squares;                  // (rows,): the weighted sum of squared outputs
    std::vector<std::int32_t> labels;             // empty unless there are more than two classes

  private:
    // The sums of a row with linear predictions, after those of its outputs; missing numbers count 0.
    void add_products(double* cell, const std::vector<int>& columns_of_slopes, int i) {
        double x[most_slopes], *at = cell + 1 + outputs;
        const double w = cell[0];
        for (int a = 0; a < slopes; ++a) {
            const float v = values[columns_of_slopes[a]][i];
            x[a] = std::isnan(v) ? 0.0 : std::clamp<double>(v, -largest_slope_value, largest_slope_value);
            *at++ = w * x[a];
        }
        for (int a = 0; a < slopes; ++a) {
            for (int b = 0; b <= a; ++b) *at++ = w * x[a] * x[b];
        }
        for (int a = 0; a < slopes; ++a) {
            for (int j = 0; j < outputs; ++j) *at++ = x[a] * cell[1 + j];
        }
    }
};

}  // namespace prunus::search
