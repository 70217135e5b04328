// What a leaf is worth: by how much a constant prediction in it, or a linear one, lowers the loss of its rows.
#pragma once

#include <algorithm>
#include <cmath>

#include "sample.hpp"

namespace prunus::search {

// K is the number of outputs, or 0 if it is only known when the program runs. A cell has the weight N of rows and the
// weighted sums S of their outputs; the squared error (Gini's impurity, for shares of classes) is a constant minus
// |S|^2 / N. With `accuracy` above 0 it is mixed with the number of rows whose class is not the most frequent one.
template <int K>
struct Worth {
    int outputs;
    bool is_share;    // one output: the share of the second of two classes
    double accuracy;  // from 0 to 1
    int slopes = 0;   // always 0 here

    int k() const { return K ? K : outputs; }
    int size() const { return k() + 1; }

    double operator()(const double* cell) const {
        const double n = cell[0];
        if (n <= 0) return 0;
        if constexpr (K == 1) {
            if (!is_share) return cell[1] * cell[1] / n;
            const double square = n - 2 * cell[1] + 2 * cell[1] * cell[1] / n;
            return accuracy > 0 ? (1 - accuracy) * square + accuracy * std::max(cell[1], n - cell[1]) : square;
        }
        double square = 0, most = 0;
        for (int j = 1; j <= k(); ++j) {
            square += cell[j] * cell[j];
            most = std::max(most, cell[j]);
        }
        square /= n;
        return accuracy > 0 ? (1 - accuracy) * square + accuracy * most : square;
    }
};

// The number of outputs that stands for linear predictions.
constexpr int linear = -1;

// Linear predictions from the first p slopes x: after the weight and the sums of outputs y a cell has the weighted sums of
// x, of the products of x (those of each x with itself and the ones before), and of x with each y. What the slopes gain
// is c' C^-1 c, with the sums c of x y and C of x x' around their means. `ridge` for each row keeps C regular: but for
// rounding errors, no square on the diagonal of its Cholesky factor is smaller.
template <>
struct Worth<linear> {
    int outputs;
    bool is_share;
    double accuracy;
    int slopes = 0;

    static constexpr double ridge = 0.01;

    int k() const { return outputs; }
    int size() const { return size_of(outputs, slopes); }
    static int size_of(int k, int p) { return 1 + k + p + p * (p + 1) / 2 + p * k; }

    double operator()(const double* cell) const {
        const double n = cell[0];
        if (n <= 0) return 0;
        const double *y = cell + 1, *x = y + outputs, *xx = x + slopes, *xy = xx + slopes * (slopes + 1) / 2;
        double factor[most_slopes][most_slopes];
        for (int a = 0, at = 0; a < slopes; ++a) {
            for (int b = 0; b <= a; ++b, ++at) {
                double sum = xx[at] - x[a] * x[b] / n + (a == b ? ridge * n : 0.0);
                for (int c = 0; c < b; ++c) sum -= factor[a][c] * factor[b][c];
                factor[a][b] = a == b ? std::sqrt(std::max(sum, ridge * n)) : sum / factor[b][b];
            }
        }
        double square = 0;
        for (int j = 0; j < outputs; ++j) {
            square += y[j] * y[j] / n;
            double z[most_slopes];
            for (int a = 0; a < slopes; ++a) {
                double sum = xy[a * outputs + j] - x[a] * y[j] / n;
                for (int c = 0; c < a; ++c) sum -= factor[a][c] * z[c];
                z[a] = sum / factor[a][a];
                square += z[a] * z[a];
            }
        }
        return square;
    }
};

}  // namespace prunus::search
