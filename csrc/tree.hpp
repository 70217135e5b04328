// Complete binary trees in heap order, and samples with one value for each split or for each node.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

namespace prunus {

struct Tree {
    std::int32_t splits;
    std::int32_t nodes() const { return 2 * splits + 1; }
    static std::int32_t parent(std::int32_t t) { return (t - 1) / 2; }
};

// Whether a weight is valid. A sample with an invalid weight takes part in nothing but its own z, which becomes NaN.
template <class Real>
bool is_weight(Real w) {
    return w >= 0 && w < std::numeric_limits<Real>::infinity();
}

// Rows of split scores (columns = splits) or of rewards (columns = nodes), with the weights of the samples.
template <class Real>
struct Samples {
    const Real* data;    // (n, columns)
    const Real* weight;  // (n,), or null if all weights are 1
    std::int64_t n;
    std::int64_t columns;
    Tree tree;

    const Real* row(std::int64_t i) const { return data + i * columns; }
    bool has_invalid_weight(std::int64_t i) const { return weight != nullptr && !is_weight(weight[i]); }
    Real weight_of(std::int64_t i) const {
        if (weight == nullptr) return Real(1);
        return has_invalid_weight(i) ? Real(0) : weight[i];
    }
    std::int64_t pairs() const { return n * tree.nodes(); }
};

// z = clip(u, 0, a), where NaN stays NaN.
template <class Real>
Real route(Real u, Real a) {
    const Real positive = u < 0 ? Real(0) : u;
    return positive > a ? a : positive;
}

}  // namespace prunus
