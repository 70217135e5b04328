// Large-neighbourhood search: one split is changed, and what is below it is grown again.
#pragma once

#include <algorithm>
#include <atomic>
#include <vector>

#include "grow.hpp"
#include "random.hpp"

namespace prunus::search {

template <int K>
class Neighborhood {
  public:
    Neighborhood(Grower<K>& grower, const Directions& directions, const Limits& limits, Random& random)
        : grower_(grower), directions_(directions), limits_(limits), random_(random) {}

    // Tries this many changes of a tree, and keeps those by which the tree as a whole is worth more.
    void run(Tree& tree, int rounds, const std::atomic<bool>& stop) {
        double now = tree.worth(limits_.price);
        for (int round = 0; round < rounds && !stop.load(std::memory_order_relaxed); ++round) {
            splits_.clear();
            for (int t = 0; t < static_cast<int>(tree.nodes.size()); ++t) {
                if (tree.nodes[t].kind == Kind::split) splits_.push_back(t);
            }
            if (splits_.empty()) return;
            const int t = splits_[random_.below(static_cast<int>(splits_.size()))];
            trial_ = tree;
            choose_directions();
            if (!change(t)) continue;
            grower_.grow(trial_, random_.below(3));
            const double then = trial_.worth(limits_.price);
            if (then <= now + 1e-9) continue;
            now = then;
            std::swap(tree, trial_);
            look_again(tree);
        }
    }

  private:
    // Few directions, drawn at random, make a change cheap and trees different.
    void choose_directions() {
        constexpr int wanted = 40;
        const int count = directions_.count();
        if (count <= wanted) return grower_.use_all();
        grower_.used.clear();
        const double share = static_cast<double>(wanted) / count;
        for (int p = 0; p < count; ++p) {
            if (random_.uniform() < share) grower_.used.push_back(p);
        }
    }

    bool change(int t) {
        Node& node = trial_.nodes[t];
        const int before = node.direction;
        Cut cut = node.cut;
        trial_.collapse(t);
        int p = before;
        if (!directions_[p].is_category && random_.uniform() < 0.25) {
            cut.last = moved(p, cut.last, 0.1);
        } else {
            grower_.look_at_all(trial_, t, cuts_);
            int best = -1;
            for (int draws = 1 + random_.below(8); draws > 0 && !cuts_.empty(); --draws) {
                const int q = random_.below(static_cast<int>(cuts_.size()));
                if (cuts_[q].gain > 0 && (best < 0 || cuts_[q].gain > cuts_[best].gain)) best = q;
            }
            if (best < 0) return false;
            p = grower_.used[best];
            cut = cuts_[best];
            if (!cut.is_group && random_.uniform() < 0.5) cut.last = moved(p, cut.last, 0.15);
        }
        return grower_.split(trial_, t, p, cut);
    }

    // A bin at most this share of all bins away.
    int moved(int p, int bin, double share) {
        const int most = std::max(1, static_cast<int>(share * directions_[p].bin_count));
        const int last = std::max(0, directions_[p].bin_count - 2);
        return std::min(last, std::max(0, bin - most + random_.below(2 * most + 1)));
    }

    // Leaves that were made by pruning may be split again.
    void look_again(Tree& tree) {
        for (int t = 0; t < static_cast<int>(tree.nodes.size()); ++t) {
            if (tree.nodes[t].kind == Kind::leaf && tree.nodes[t].next.gain < 0) grower_.look(tree, t);
        }
    }

    Grower<K>& grower_;
    const Directions& directions_;
    Limits limits_;
    Random& random_;
    Tree trial_{0, 1};
    std::vector<int> splits_;
    std::vector<Cut> cuts_;
};

}  // namespace prunus::search
