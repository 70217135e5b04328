// What a leaf is worth: by how much a constant prediction in it lowers the loss of its rows.
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

}  // namespace prunus::search
