// A search from its first tree to its last: growth, large neighbourhoods, gradients and polish in turn.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

#include "anneal.hpp"
#include "directions.hpp"
#include "grow.hpp"
#include "neighborhood.hpp"
#include "pairs.hpp"
#include "plan.hpp"
#include "polish.hpp"
#include "random.hpp"
#include "sample.hpp"
#include "tree.hpp"
#include "worth.hpp"

namespace prunus::search {

struct Options {
    int leaves = 8;
    int terms = 1;  // of a split
    double least = 5;
    double price = 0;
    double accuracy = 0;
    int cycles = 1;   // of neighbourhoods and polish
    int rounds = 300;  // of large neighbourhoods, in each cycle; 0 leaves the first tree as it is
    int polish = 1000;
    int anneal = 150;
    std::vector<int> slopes;  // columns of linear predictions in leaves
    std::uint64_t seed = 0;
};

struct Result {
    Plan plan;
    std::vector<Feature> features;
    double worth = 0;
};

template <int K>
class Search {
  public:
    Search(Sample& sample, const Options& options, const std::atomic<bool>& stop)
        : sample_(sample), options_(options), stop_(stop), random_(options.seed),
          worth_{sample.outputs, sample.is_share, options.accuracy, sample.slopes},
          limits_{options.leaves, least_of(sample, options.least), options.price}, directions_(sample) {}

    Result run() {
        Grower<K> grower(sample_, directions_, worth_, limits_, stop_);
        Tree tree = greedy(grower);
        if (options_.rounds == 0) return result(plan_of(tree, directions_), tree.worth(0));
        if (options_.terms > 1) {
            add_pairs(tree, 6);
            tree = greedy(grower);
        }
        Plan best = plan_of(tree, directions_);
        double most = -1e300;
        for (int cycle = 0; cycle < options_.cycles && !stop_; ++cycle) {
            if (cycle > 0) tree = rebuilt(best, grower);
            if (options_.terms > 1 && cycle > 0) add_pairs(tree, 3);
            Neighborhood<K>(grower, directions_, limits_, random_).run(tree, options_.rounds, stop_);
            improve(plan_of(tree, directions_), false, best, most);
            if (options_.terms > 1 && options_.anneal > 0 && K != linear) improve(plan_of(tree, directions_), true, best, most);
        }
        const double cost = options_.price * static_cast<double>(best.size() + 1) / 2;
        return result(std::move(best), most + cost);
    }

  private:
    // A leaf weighs more than the rounding errors of sums of all rows, so that it has rows.
    static double least_of(const Sample& sample, double least) {
        double weight = 0;
        for (int i = 0; i < sample.rows; ++i) weight += sample.stat(i)[0];
        return std::max(least, 1e-12 * weight);
    }

    Tree greedy(Grower<K>& grower) {
        Tree tree(sample_.rows, options_.leaves);
        grower.use_all();
        grower.look(tree, 0);
        grower.grow(tree, 0);
        return tree;
    }

    // The best pairs for the rows of each node.
    void add_pairs(const Tree& tree, int wanted) {
        Pairs<K> pairs(sample_, worth_, limits_.least);
        for (const Node& node : tree.nodes) {
            const int count = node.end - node.begin;
            if (node.kind == Kind::unused || count < 4 * limits_.least || count < 20 || stop_) continue;
            const std::int32_t* rows = tree.order.data() + node.begin;
            for (const auto& found : pairs.find(rows, count, wanted, random_)) {
                if (found.gain > 0 && !stop_) directions_.add(found.sum, rows, count, 96);
            }
        }
    }

    void improve(Plan plan, bool by_gradients, Plan& best, double& most) {
        if (by_gradients) {
            Course course;
            course.steps = options_.anneal;
            Anneal<K>(sample_, worth_).run(plan, course, stop_);
        }
        const double worth = Polish<K>(sample_, worth_, limits_, random_).run(plan, options_.polish, options_.terms, stop_);
        const double net = worth - options_.price * (plan.size() + 1) / 2;
        if (net > most) {
            most = net;
            best = std::move(plan);
        }
    }

    // A plan as a tree that can be searched on: its splits become directions with an edge at their threshold.
    Tree rebuilt(const Plan& plan, Grower<K>& grower) {
        Tree tree(sample_.rows, options_.leaves);
        grower.use_all();
        grower.look(tree, 0);
        rebuild(plan, 0, tree, 0, grower);
        return tree;
    }

    void rebuild(const Plan& plan, int q, Tree& tree, int t, Grower<K>& grower) {
        if (plan[q].is_leaf()) return;
        Cut cut;
        int p = plan[q].column;
        if (plan[q].is_group) {
            cut.is_group = true;
            cut.group = plan[q].group;
        } else {
            const std::int32_t* rows = tree.order.data() + tree.nodes[t].begin;
            p = directions_.add(plan[q].sum, rows, tree.rows(t), 96, plan[q].threshold);
            const auto& edges = directions_[p].edges;
            cut.last = static_cast<int>(std::lower_bound(edges.begin(), edges.end(), plan[q].threshold) - edges.begin());
            cut.missing_left = plan[q].missing_left;
        }
        if (!grower.split(tree, t, p, cut)) {
            tree.collapse(t);
            grower.look(tree, t);
            return;
        }
        const int left = tree.nodes[t].left, right = tree.nodes[t].right;
        rebuild(plan, plan[q].left, tree, left, grower);
        rebuild(plan, plan[q].right, tree, right, grower);
    }

    Result result(Plan plan, double worth) { return {std::move(plan), sample_.features, worth}; }

    Sample& sample_;
    Options options_;
    const std::atomic<bool>& stop_;
    Random random_;
    Worth<K> worth_;
    Limits limits_;
    Directions directions_;
};

}  // namespace prunus::search
