// Sends rows down a tree with linear splits and keeps which row reaches which node, and with what u. Scores are
// computed for the rows that reach a split, and for no others.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <vector>

#include "../memory.hpp"
#include "../parallel.hpp"
#include "../tree.hpp"
#include "examples.hpp"
#include "parameters.hpp"

namespace prunus::engine {

// The rows that reach one node: the places [begin, begin + count) of the arrays of `Reached`.
struct Visit {
    std::int32_t node;
    std::int32_t count;
    std::int32_t begin;
    bool is_left() const { return node % 2 == 1; }
};

// All pairs of row and node such that the row reaches the node, ordered by node.
template <class Real>
struct Reached {
    std::vector<Visit> visits;
    Buffer<std::int32_t> row;        // of the batch
    Buffer<std::int32_t> above;      // the place of the same row at the parent
    Buffer<Real> u;
    Buffer<unsigned char> by_score;  // whether u comes from the parent's score; else it is the parent's u
    std::int32_t size = 0;

    Chosen rows(const Visit& visit) const { return {row.data() + visit.begin, visit.count}; }

    void reserve(std::int64_t places) {
        if (places <= capacity_) return;
        constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
        if (places > most) throw std::length_error("a batch reaches too many nodes");
        const std::int64_t grown = std::min(most, std::max(places, 2 * capacity_));
        row.reserve(grown);
        above.reserve(grown);
        u.reserve(grown);
        by_score.reserve(grown);
        capacity_ = grown;  // only now: if there is no memory for one of them, none counts as larger
    }

  private:
    std::int64_t capacity_ = 0;
};

// The linear functions at the splits, whose values are multiplied by a common scale.
template <class Real>
struct Splits {
    Tree tree;
    const Real* weight;  // (splits, width)
    const Real* bias;    // (splits,)
    std::int64_t width;
    Real scale;

    Splits(Tree tree, const Real* weight, const Real* bias, std::int64_t width)
        : tree(tree), weight(weight), bias(bias), width(width), scale(1) {}
    Splits(const View<Real>& view, Real scale)
        : tree(view.shape.tree),
          weight(view.split_weights),
          bias(view.split_biases),
          width(view.shape.split_width),
          scale(scale) {}

    void scores(const Matrix<Real>& x, std::int32_t t, Chosen rows, Real* out) const {
        products(x, rows, weight + t * width, out);
        for (std::int32_t k = 0; k < rows.count; ++k) out[k] = (out[k] + bias[t]) * scale;
    }
};

// Sends the rows at a split to its children. No branch depends on the data: every row is written to both sides and
// counted where it arrives, so there is one unused place after each side. A row with a NaN reaches both. Where a score
// equals the parent's u, the latter is kept.
template <class Real>
void descend(const Visit here, const Real* score, Reached<Real>& reached) {
    reached.reserve(reached.size + 2 * std::int64_t{here.count} + 2);
    std::int32_t *row = reached.row.data(), *above = reached.above.data();
    Real* u = reached.u.data();
    unsigned char* by_score = reached.by_score.data();
    std::int32_t lefts = 0;
    for (std::int32_t k = 0; k < here.count; ++k) lefts += !(Real(0.5) - score[k] <= 0);
    const std::int32_t left = reached.size, right = left + lefts + 1;
    std::int32_t next_left = left, next_right = right;
    for (std::int32_t place = here.begin; place < here.begin + here.count; ++place) {
        const Real own = u[place], s = score[place - here.begin];
        const Real low = Real(0.5) - s, high = Real(0.5) + s;
        const Real to_left = own < low ? own : low, to_right = own < high ? own : high;
        row[next_left] = row[next_right] = row[place];
        above[next_left] = above[next_right] = place;
        u[next_left] = to_left;
        u[next_right] = to_right;
        by_score[next_left] = !(own <= low);
        by_score[next_right] = !(own <= high);
        next_left += !(to_left <= 0);
        next_right += !(to_right <= 0);
    }
    if (next_left > left) reached.visits.push_back({2 * here.node + 1, next_left - left, left});
    if (next_right > right) reached.visits.push_back({2 * here.node + 2, next_right - right, right});
    reached.size = next_right + 1;
}

// Finds what the rows of a batch reach. `score` is scratch memory.
template <class Real>
void reach(const Batch<Real>& batch, Rows rows, const Splits<Real>& splits, Buffer<Real>& score,
           Reached<Real>& reached) {
    const auto count = static_cast<std::int32_t>(rows.end - rows.begin);
    reached.visits.assign(1, Visit{0, count, 0});
    reached.size = count;
    reached.reserve(count);
    score.reserve(count);
    for (std::int32_t k = 0; k < count; ++k) {
        const auto i = static_cast<std::int32_t>(rows.begin) + k;
        reached.row[k] = i;
        reached.u[k] = Real(1.5);
    }
    const Matrix<Real> x = batch.split_inputs();
    for (std::size_t v = 0; v < reached.visits.size(); ++v) {
        const Visit here = reached.visits[v];
        if (here.node >= splits.tree.splits) break;  // the others are leaves, too
        splits.scores(x, here.node, reached.rows(here), score.data());
        descend(here, score.data(), reached);
    }
}

}  // namespace prunus::engine
