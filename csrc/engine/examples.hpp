// What a tree learns from, and a batch of it, copied together.
#pragma once

#include <algorithm>
#include <cstdint>

#include "../memory.hpp"
#include "vectors.hpp"

namespace prunus::engine {

// All arrays are in C order and belong to the caller.
template <class Real>
struct Examples {
    std::int64_t n;
    std::int64_t split_columns, leaf_columns, target_columns, outputs;
    const Real* split_inputs;  // (n, split_columns)
    const Real* leaf_inputs;   // (n, leaf_columns), may be the same array as split_inputs
    const Real* target;        // (n, target_columns)
    const Real* offset;        // (n, outputs), added to the outputs of the tree, or null
    const Real* weight;        // (n,), or null if all weights are 1
};

// Rows of the examples side by side, with inputs that are padded to whole lanes.
template <class Real>
class Batch {
  public:
    // Copies the rows that `order` names, or the rows from `first` in steps of `step` if it is null.
    void gather(const Examples<Real>& from, const std::int64_t* order, std::int64_t first, std::int64_t step,
                std::int64_t count) {
        n = count;
        one_matrix_ = from.leaf_inputs == from.split_inputs && from.leaf_columns == from.split_columns;
        outputs_ = from.outputs;
        target_columns_ = from.target_columns;
        has_offset_ = from.offset != nullptr;
        has_weight_ = from.weight != nullptr;
        const auto source = [=](std::int64_t i) { return order == nullptr ? first + i * step : order[i]; };
        split_width_ = padded(from.split_columns);
        leaf_width_ = one_matrix_ ? split_width_ : padded(from.leaf_columns);
        copy(from.split_inputs, from.split_columns, split_width_, source, split_);
        if (!one_matrix_) copy(from.leaf_inputs, from.leaf_columns, leaf_width_, source, leaf_);
        copy(from.target, target_columns_, target_columns_, source, target_);
        if (has_offset_) copy(from.offset, outputs_, outputs_, source, offset_);
        if (has_weight_) copy(from.weight, 1, 1, source, weight_);
    }

    std::int64_t n = 0;
    Matrix<Real> split_inputs() const { return {split_.data(), split_width_, split_width_}; }
    Matrix<Real> leaf_inputs() const {
        return {one_matrix_ ? split_.data() : leaf_.data(), leaf_width_, leaf_width_};
    }
    const Real* target(std::int64_t i) const { return target_.data() + i * target_columns_; }
    const Real* offset(std::int64_t i) const { return has_offset_ ? offset_.data() + i * outputs_ : nullptr; }
    Real weight(std::int64_t i) const { return has_weight_ ? weight_[i] : Real(1); }
    bool weighted() const { return has_weight_; }

  private:
    template <class Source>
    void copy(const Real* from, std::int64_t columns, std::int64_t width, const Source& source, Buffer<Real>& to) {
        to.reserve(n * width);
        for (std::int64_t i = 0; i < n; ++i) {
            if (i + ahead < n) Prefetch(from + source(i + ahead) * columns, columns * sizeof(Real)).rest();
            Real* row = to.data() + i * width;
            std::copy_n(from + source(i) * columns, columns, row);
            std::fill(row + columns, row + width, Real(0));
        }
    }

    static constexpr std::int64_t ahead = 8;  // rows lie anywhere: they are asked for before they are needed

    bool one_matrix_ = true, has_offset_ = false, has_weight_ = false;
    std::int64_t split_width_ = 0, leaf_width_ = 0, target_columns_ = 0, outputs_ = 0;
    Buffer<Real> split_, leaf_, target_, offset_, weight_;
};

}  // namespace prunus::engine
