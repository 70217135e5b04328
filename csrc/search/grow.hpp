// Best-first growth of a tree, and the removal of splits that are worth least.
#pragma once

#include <algorithm>
#include <atomic>
#include <vector>

#include "cuts.hpp"
#include "directions.hpp"
#include "tree.hpp"

namespace prunus::search {

constexpr int most_depth = 10;

struct Limits {
    int leaves;
    double least;  // weight of the rows of a leaf
    double price;  // what a leaf costs
};

template <int K>
class Grower {
  public:
    // Once it is to stop, leaves get no splits any more.
    Grower(const Sample& sample, const Directions& directions, const Worth<K>& worth, const Limits& limits,
           const std::atomic<bool>& stop)
        : sample_(sample), directions_(directions), worth_(worth), limits_(limits), stop_(stop),
          cuts_(worth, limits.least) {}

    // The directions that splits may use.
    std::vector<int> used;

    void use_all() {
        used.resize(directions_.count());
        for (int p = 0; p < directions_.count(); ++p) used[p] = p;
    }

    // The worth of a leaf, and the best split that it could get.
    void look(Tree& tree, int t) {
        Node& node = tree.nodes[t];
        cuts_.take(sample_, tree.order.data() + node.begin, tree.rows(t));
        node.worth = cuts_.base();
        node.next.gain = -1;
        if (cuts_.total()[0] < 2 * limits_.least || node.depth >= most_depth) return;
        for (const int p : used) {
            if (stop_.load(std::memory_order_relaxed)) return;
            const Cut cut = cut_by(p);
            if (cut.gain > node.next.gain) {
                node.next = cut;
                node.next_direction = p;
            }
        }
    }

    // The best cut of the rows of a node by each direction that is used, in the order of `used`.
    void look_at_all(const Tree& tree, int t, std::vector<Cut>& found) {
        cuts_.take(sample_, tree.order.data() + tree.nodes[t].begin, tree.rows(t));
        found.clear();
        for (const int p : used) {
            if (stop_.load(std::memory_order_relaxed)) return;
            found.push_back(cut_by(p));
        }
    }

    bool split(Tree& tree, int t, int p, const Cut& cut) {
        tree.split(t, p, cut, directions_[p]);
        for (const int child : {tree.nodes[t].left, tree.nodes[t].right}) {
            if (tree.rows(child) == 0) return false;
            look(tree, child);
            if (cuts_.total()[0] < limits_.least) return false;
        }
        return true;
    }

    // Grows to `extra` leaves more than allowed, and then takes away the splits that are worth least.
    void grow(Tree& tree, int extra) {
        int leaves = tree.leaves();
        while (leaves < limits_.leaves + extra) {
            int best = -1;
            for (int t = 0; t < static_cast<int>(tree.nodes.size()); ++t) {
                if (tree.nodes[t].kind != Kind::leaf) continue;
                if (best < 0 || tree.nodes[t].next.gain > tree.nodes[best].next.gain) best = t;
            }
            if (tree.nodes[best].next.gain <= 1e-9) break;
            split(tree, best, tree.nodes[best].next_direction, Cut(tree.nodes[best].next));
            ++leaves;
        }
        prune(tree, leaves);
    }

  private:
    Cut cut_by(int p) {
        const Direction& direction = directions_[p];
        return cuts_.best(direction.bins, direction.bin_count, direction.is_category);
    }

    void prune(Tree& tree, int leaves) {
        while (leaves > 1) {
            int weakest = -1;
            double least = 0;
            for (int t = 0; t < static_cast<int>(tree.nodes.size()); ++t) {
                const Node& node = tree.nodes[t];
                if (node.kind != Kind::split || !tree.ends_in_leaves(node)) continue;
                const double lost = tree.nodes[node.left].worth + tree.nodes[node.right].worth - node.worth;
                if (weakest < 0 || lost < least) {
                    weakest = t;
                    least = lost;
                }
            }
            if (leaves <= limits_.leaves && least >= limits_.price) break;
            tree.collapse(weakest);
            --leaves;
        }
    }

    const Sample& sample_;
    const Directions& directions_;
    Worth<K> worth_;
    Limits limits_;
    const std::atomic<bool>& stop_;
    Cuts<K> cuts_;
};

}  // namespace prunus::search
