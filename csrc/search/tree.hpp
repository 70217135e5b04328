// A tree while it is searched: splits by bins of directions, and the rows of each node as a part of one order.
#pragma once

#include <cstdint>
#include <numeric>
#include <vector>

#include "cuts.hpp"
#include "directions.hpp"

namespace prunus::search {

enum class Kind : std::int8_t { unused, leaf, split };

struct Node {
    Kind kind = Kind::unused;
    std::int8_t depth = 0;
    int begin = 0, end = 0;  // its rows in the order
    int left = -1, right = -1;
    int direction = -1;  // of a split
    Cut cut;
    double worth = 0;
    int next_direction = -1;  // the best split of a leaf; its gain is -1 if there is none
    Cut next;
};

struct Tree {
    Tree(int rows, int most_leaves) : nodes(2 * most_leaves + 9), order(rows) {
        std::iota(order.begin(), order.end(), 0);
        nodes[0].kind = Kind::leaf;
        nodes[0].end = rows;
    }

    int leaves() const {
        int found = 0;
        for (const Node& node : nodes) found += node.kind == Kind::leaf;
        return found;
    }

    // What all leaves are worth, at this price for each.
    double worth(double price) const {
        double sum = 0;
        for (const Node& node : nodes) sum += node.kind == Kind::leaf ? node.worth - price : 0.0;
        return sum;
    }

    bool ends_in_leaves(const Node& node) const {
        return nodes[node.left].kind == Kind::leaf && nodes[node.right].kind == Kind::leaf;
    }

    int rows(int t) const { return nodes[t].end - nodes[t].begin; }

    // Makes a leaf a split, whose children are leaves.
    void split(int t, int direction, const Cut& cut, const Direction& by) {
        std::uint8_t left[bins_of_column];
        sides_of(cut, left);
        int i = nodes[t].begin, j = nodes[t].end - 1;
        while (i <= j) {
            if (left[by.bins[order[i]]]) {
                ++i;
            } else {
                std::swap(order[i], order[j--]);
            }
        }
        const int first = take_unused(), second = take_unused();
        Node& node = nodes[t];
        node.kind = Kind::split;
        node.direction = direction;
        node.cut = cut;
        node.left = first;
        node.right = second;
        nodes[first].begin = node.begin;
        nodes[first].end = nodes[second].begin = i;
        nodes[second].end = node.end;
        nodes[first].depth = nodes[second].depth = static_cast<std::int8_t>(node.depth + 1);
    }

    // Makes a split a leaf.
    void collapse(int t) {
        for (const int child : {nodes[t].left, nodes[t].right}) {
            if (nodes[child].kind == Kind::split) collapse(child);
            nodes[child].kind = Kind::unused;
        }
        nodes[t].kind = Kind::leaf;
        nodes[t].next.gain = -1;
    }

    std::vector<Node> nodes;
    std::vector<std::int32_t> order;

  private:
    int take_unused() {
        int t = 0;
        while (nodes[t].kind != Kind::unused) ++t;
        nodes[t] = Node{};
        nodes[t].kind = Kind::leaf;
        return t;
    }
};

}  // namespace prunus::search
