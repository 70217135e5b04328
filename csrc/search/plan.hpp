// A tree with real numbers in its splits, apart from any rows.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "directions.hpp"
#include "sample.hpp"
#include "tree.hpp"

namespace prunus::search {

// A split, or a leaf if it has no children. Nodes are in pre-order: a split, its left branch, its right branch.
struct PlanNode {
    int left = -1, right = -1;
    int end = 0;              // the first node after the branch that begins here
    bool is_group = false;    // left if the level of `column` is in `group`
    bool missing_left = false;
    int column = 0;
    Levels group{};
    Sum sum;                  // else left if the sum is below the threshold
    float threshold = 0;

    bool is_leaf() const { return left < 0; }

    bool goes_left(const Sample& sample, int row) const {
        if (is_group) return group.has(sample.bins[column][row]);
        const float v = sum.of(sample, row);
        return std::isnan(v) ? missing_left : v < threshold;
    }
};

using Plan = std::vector<PlanNode>;

inline int leaf_of(const Plan& plan, const Sample& sample, int row, int from = 0) {
    while (!plan[from].is_leaf()) from = plan[from].goes_left(sample, row) ? plan[from].left : plan[from].right;
    return from;
}

inline int add_branch(Plan& plan, const Tree& tree, const Directions& directions, int t) {
    const int q = static_cast<int>(plan.size());
    plan.emplace_back();
    const Node& node = tree.nodes[t];
    if (node.kind == Kind::split) {
        const Direction& direction = directions[node.direction];
        PlanNode made;
        made.is_group = node.cut.is_group;
        made.missing_left = node.cut.missing_left;
        made.column = direction.sum.feature[0];
        made.group = node.cut.group;
        made.sum = direction.sum;
        const bool has_edge = node.cut.last < static_cast<int>(direction.edges.size());
        made.threshold = has_edge ? direction.edges[node.cut.last] : std::numeric_limits<float>::infinity();
        made.left = add_branch(plan, tree, directions, node.left);
        made.right = add_branch(plan, tree, directions, node.right);
        plan[q] = made;
    }
    plan[q].end = static_cast<int>(plan.size());
    return q;
}

inline Plan plan_of(const Tree& tree, const Directions& directions) {
    Plan plan;
    add_branch(plan, tree, directions, 0);
    return plan;
}

}  // namespace prunus::search
