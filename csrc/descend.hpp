// Sends a block of samples down the tree and calls a visitor for each node with the samples that reach it.
//
// A sample reaches node t if u[t] = q[t] + 1/2 > 0, or if u[t] is NaN. A sample that does not reach a node reaches
// nothing below it either, and its z and all its gradients are zero there, so these pairs need no visit.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "memory.hpp"
#include "parallel.hpp"
#include "tree.hpp"

namespace prunus {

// The samples of a block that reach a node.
template <class Real>
struct Arrivals {
    std::int32_t count;
    std::int32_t* row;   // within the block
    Real* u;
    std::int32_t* from;  // the score that u comes from: 2p for -s[p], 2p + 1 for +s[p], 2 * splits for the root's 1
};

template <class Real>
class Descent {
  public:
    // A block has so many rows that their scores, routes and gradients fit into a core's cache.
    static std::int64_t block_rows(Tree tree) {
        constexpr std::int64_t cells = std::int64_t{1} << 17;
        return std::clamp<std::int64_t>(cells / tree.nodes(), 32, 512);
    }

    explicit Descent(const Samples<Real>& scores) : scores_(scores) {
        const std::size_t rows = block_rows(scores.tree);
        for (std::int32_t width = 1; width <= scores.tree.nodes(); width *= 2) levels_.emplace_back(rows);
    }

    // Calls visit(t, arrivals) for the nodes that samples of the block reach, a parent before its children. Arrivals
    // are in the order of the rows; their `from` is set only if Source is true.
    template <bool Source, class Visit>
    void operator()(Rows block, const Visit& visit) {
        s_ = scores_.row(block.begin);
        Arrivals<Real> all = levels_[0].side(0);
        all.count = static_cast<std::int32_t>(block.end - block.begin);
        for (std::int32_t k = 0; k < all.count; ++k) {
            all.row[k] = k;
            all.u[k] = scores_.has_invalid_weight(block.begin + k) ? std::numeric_limits<Real>::quiet_NaN() : Real(1.5);
            all.from[k] = 2 * scores_.tree.splits;
        }
        below<Source>(0, 0, all, visit);
    }

    // Brings these rows of the scores into the cache while earlier blocks are worked on, and these rows of `also`, an
    // array of shape (n, nodes), if it is not null.
    void prefetch(Rows rows, const Real* also) {
        const std::int64_t count = rows.end - rows.begin, nodes = scores_.tree.nodes();
        for (auto& ahead : ahead_) ahead.rest();
        ahead_[0] = Prefetch(scores_.row(rows.begin), count * scores_.columns * sizeof(Real));
        if (also != nullptr) ahead_[1] = Prefetch(also + rows.begin * nodes, count * nodes * sizeof(Real));
    }

  private:
    // Memory for the arrivals at the left and the right child of one node of a level.
    struct Level {
        Buffer<std::int32_t> row, from;
        Buffer<Real> u;
        std::size_t capacity;  // of one side
        explicit Level(std::size_t rows) : row(2 * rows), from(2 * rows), u(2 * rows), capacity(rows) {}
        Arrivals<Real> side(int right) {
            const std::size_t begin = right * capacity;
            return {0, row.data() + begin, u.data() + begin, from.data() + begin};
        }
    };

    template <bool Source, class Visit>
    void below(std::int32_t t, std::size_t depth, const Arrivals<Real>& here, const Visit& visit) {
        if (here.count == 0) return;
        for (auto& ahead : ahead_) ahead.some();
        visit(t, here);
        if (t >= scores_.tree.splits) return;
        Arrivals<Real> left = levels_[depth + 1].side(0), right = levels_[depth + 1].side(1);
        split<Source>(t, here, left, right);
        below<Source>(2 * t + 1, depth + 1, left, visit);
        below<Source>(2 * t + 2, depth + 1, right, visit);
    }

    // No branch depends on the data: every row is written to both sides and counted where it arrives. Where a score
    // equals the parent's reward, the parent's reward is the one that is kept.
    template <bool Source>
    void split(std::int32_t t, const Arrivals<Real>& here, Arrivals<Real>& left, Arrivals<Real>& right) const {
        // The pointers are copied because the compiler must assume that a write through one changes those in the
        // structs.
        const std::int32_t *rows = here.row, *froms = here.from;
        const Real *u = here.u, *s = s_ + t;
        std::int32_t *left_row = left.row, *right_row = right.row, *left_from = left.from, *right_from = right.from;
        Real *left_u = left.u, *right_u = right.u;
        const std::int64_t columns = scores_.columns;
        std::int32_t lefts = 0, rights = 0;
        for (std::int32_t k = 0, count = here.count; k < count; ++k) {
            const std::int32_t row = rows[k];
            const Real above = u[k];
            const Real score = s[row * columns] + (above - above);  // a NaN stays NaN in all nodes below
            const Real low = Real(0.5) - score, high = Real(0.5) + score;
            const Real to_left = above < low ? above : low, to_right = above < high ? above : high;
            left_row[lefts] = right_row[rights] = row;
            left_u[lefts] = to_left;
            right_u[rights] = to_right;
            if constexpr (Source) {
                const std::int32_t from = froms[k];
                left_from[lefts] = from + (-!(above <= low) & (2 * t - from));
                right_from[rights] = from + (-!(above <= high) & (2 * t + 1 - from));
            }
            lefts += !(to_left <= 0);
            rights += !(to_right <= 0);
        }
        left.count = lefts;
        right.count = rights;
    }

    const Samples<Real>& scores_;
    std::vector<Level> levels_;
    const Real* s_ = nullptr;
    std::array<Prefetch, 2> ahead_;
};

// Calls visit_block(descent, block) for each block of some rows. The visitor may also read the rows of `also`, which
// are brought into the cache.
template <class Real, class VisitBlock>
void for_blocks(const Samples<Real>& scores, Rows rows, const Real* also, const VisitBlock& visit_block) {
    Descent<Real> descent(scores);
    const std::int64_t step = Descent<Real>::block_rows(scores.tree);
    const auto block_at = [=](std::int64_t begin) {
        return Rows{std::min(begin, rows.end), std::min(begin + step, rows.end)};
    };
    descent.prefetch(block_at(rows.begin), also);
    for (std::int64_t begin = rows.begin; begin < rows.end; begin += step) {
        descent.prefetch(block_at(begin + step), also);
        visit_block(descent, block_at(begin));
    }
}

}  // namespace prunus
