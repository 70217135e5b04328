// Runs the CPU kernels without Python, so that the compiler's sanitizers see everything they do. The problems are
// random, of many shapes, some with ties, infinities and NaN. Whatever can be checked without a second solver is
// checked. The program returns 1 at the first problem that fails; its argument is the number of problems.
// test_sanitizers.py compiles and runs it.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "../../csrc/argmin.hpp"
#include "../../csrc/masses.hpp"
#include "../../csrc/predict.hpp"
#include "../../csrc/routes.hpp"
#include "../../csrc/table_leaves.hpp"
#include "../../csrc/traverse.hpp"

namespace {

using prunus::Samples;
using prunus::Tree;
using Random = std::mt19937_64;

enum class Weights { none, plain, zero, invalid };

struct Case {
    std::int64_t n;
    int depth;
    double lam;
    double scale;  // of the scores: small ones reach all nodes, large ones a path
    Weights weights;
    bool odd;  // some scores and rewards are NaN, infinite or tied
    int threads;

    std::string name() const {
        return "n=" + std::to_string(n) + " depth=" + std::to_string(depth) + " lam=" + std::to_string(lam) +
               " scale=" + std::to_string(scale) + " weights=" + std::to_string(static_cast<int>(weights)) +
               " odd=" + std::to_string(odd) + " threads=" + std::to_string(threads);
    }
};

void require(bool holds, const char* what) {
    if (!holds) throw std::runtime_error(what);
}

template <class T>
T pick(Random& random, const std::vector<T>& from) {
    return from[random() % from.size()];
}

template <class Real>
std::vector<Real> normal(Random& random, std::int64_t size, double scale) {
    std::normal_distribution<double> draw(0.0, scale);
    std::vector<Real> x(size);
    for (Real& value : x) value = static_cast<Real>(draw(random));
    return x;
}

template <class Real>
void make_odd(Random& random, std::vector<Real>& x) {
    constexpr Real inf = std::numeric_limits<Real>::infinity();
    const std::vector<Real> odd{inf, -inf, std::numeric_limits<Real>::quiet_NaN(), 0, Real(0.5), Real(-0.5), 1, -1};
    for (Real& value : x) {
        if (random() % 8 == 0) value = pick(random, odd);
    }
}

template <class Real>
std::vector<Real> weights_of(Random& random, const Case& c) {
    if (c.weights == Weights::none) return {};
    std::vector<Real> w = normal<Real>(random, c.n, 1.0);
    constexpr Real inf = std::numeric_limits<Real>::infinity();
    const std::vector<Real> invalid{inf, -inf, std::numeric_limits<Real>::quiet_NaN(), -1};
    for (Real& value : w) {
        value = c.weights == Weights::zero || random() % 4 == 0 ? Real(0) : std::abs(value);
        if (c.weights == Weights::invalid && random() % 4 == 0) value = pick(random, invalid);
    }
    return w;
}

template <class Real>
struct Problem {
    Tree tree;
    std::int64_t n;
    double lam;
    int threads;
    std::vector<Real> s, arbitrary, weight, grad_z, grad_a;

    Problem(Random& random, const Case& c)
        : tree{(1 << c.depth) - 1},
          n(c.n),
          lam(c.lam),
          threads(c.threads),
          s(normal<Real>(random, c.n * tree.splits, c.scale)),
          arbitrary(normal<Real>(random, c.n * tree.nodes(), c.scale)),
          weight(weights_of<Real>(random, c)),
          grad_z(normal<Real>(random, c.n * tree.nodes(), 1.0)),
          grad_a(normal<Real>(random, tree.nodes(), 1.0)) {
        if (c.odd) make_odd(random, s);
        if (c.odd) make_odd(random, arbitrary);
    }

    Samples<Real> samples(const std::vector<Real>& x, std::int64_t columns) const {
        return {x.data(), weight.empty() ? nullptr : weight.data(), n, columns, tree};
    }
    Samples<Real> scores() const { return samples(s, tree.splits); }
    Samples<Real> rewards(const std::vector<Real>& q) const { return samples(q, tree.nodes()); }
    prunus::OutputGradients<Real> upstream() const { return {grad_z.data(), grad_a.data()}; }
};

// All that one operator computes; NaN where it should but does not write.
template <class Real>
struct Evaluation {
    std::vector<Real> z, a, grad_x, grad_weight;
    std::vector<std::int64_t> group;
    Real grad_lam = std::numeric_limits<Real>::quiet_NaN();

    Evaluation(const Problem<Real>& p, std::int64_t columns)
        : z(p.n * p.tree.nodes(), grad_lam),
          a(p.tree.nodes(), grad_lam),
          grad_x(p.n * columns, grad_lam),
          grad_weight(p.n, grad_lam),
          group(p.tree.nodes(), -1) {}
};

template <class T>
bool same_bits(const std::vector<T>& x, const std::vector<T>& y) {
    return x.size() == y.size() && (x.empty() || std::memcmp(x.data(), y.data(), x.size() * sizeof(T)) == 0);
}

template <class Real>
void require_same_bits(const Evaluation<Real>& x, const Evaluation<Real>& y) {
    require(same_bits(x.z, y.z) && same_bits(x.a, y.a) && same_bits(x.group, y.group),
            "repeating changes the solution");
    require(same_bits(x.grad_x, y.grad_x) && same_bits(x.grad_weight, y.grad_weight) &&
                std::memcmp(&x.grad_lam, &y.grad_lam, sizeof(Real)) == 0,
            "repeating changes the gradients");
}

template <class Real>
Evaluation<Real> traverse(const Problem<Real>& p) {
    Evaluation<Real> out(p, p.tree.splits);
    prunus::traverse_forward(p.scores(), p.lam, p.threads, out.z.data(), out.a.data());
    for (std::int32_t t = 0; t < p.tree.nodes(); ++t) out.group[t] = t;
    prunus::traverse_backward(p.scores(), p.upstream(), out.a.data(), p.lam, p.threads, out.grad_x.data(),
                              &out.grad_lam, out.grad_weight.data());
    return out;
}

template <class Real>
void differentiate_argmin(const Problem<Real>& p, const std::vector<Real>& q, Evaluation<Real>& out) {
    prunus::argmin_backward(p.rewards(q), p.upstream(), out.a.data(), out.group.data(), p.lam, p.threads,
                            out.grad_x.data(), &out.grad_lam, out.grad_weight.data());
}

template <class Real>
Evaluation<Real> argmin(const Problem<Real>& p, const std::vector<Real>& q) {
    Evaluation<Real> out(p, p.tree.nodes());
    prunus::argmin_forward(p.rewards(q), p.lam, p.threads, out.z.data(), out.a.data(), out.group.data());
    differentiate_argmin(p, q, out);
    return out;
}

// Returns the scratch memory of the kernels to the system: the sanitizer knows the exact size of new blocks only.
void forget_scratch() {
    for (bool kept = true; kept;) {
        const prunus::Block block = prunus::ScratchPool::instance().take(1);
        kept = block.bytes > 1;
        std::free(block.data);
    }
}

// Evaluates in new memory and then in memory that holds what the first run left. Equal results show that no value is
// read before it is written.
template <class Evaluate>
auto twice(const Evaluate& evaluate) {
    forget_scratch();
    const auto first = evaluate();
    require_same_bits(first, evaluate());
    return first;
}

template <class Real>
void require_feasible(const Problem<Real>& p, const Evaluation<Real>& x, const std::vector<Real>& q) {
    const std::int32_t nodes = p.tree.nodes();
    for (std::int32_t t = 0; t < nodes; ++t) {
        require(x.a[t] >= 0 && x.a[t] <= 1, "a mass is outside [0, 1]");
        require(x.a[t] <= x.a[Tree::parent(t)] || t == 0, "a mass exceeds its parent's");
        require(x.group[t] >= 0 && x.group[t] <= t, "a group is not named after a node above");
        require(x.a[x.group[t]] == x.a[t], "masses of a group differ");
    }
    for (std::int64_t i = 0; i < p.n; ++i) {
        for (std::int32_t t = 0; t < nodes; ++t) {
            const Real z = x.z[i * nodes + t];
            const bool spoiled = p.rewards(q).has_invalid_weight(i) || std::isnan(q[i * nodes + t]);
            require(spoiled ? std::isnan(z) : z >= 0 && z <= x.a[t],
                    "a route is outside [0, a], or not NaN if it must be");
        }
    }
}

template <class Real>
void require_close(const std::vector<Real>& x, const std::vector<Real>& y, const char* what) {
    double size = 1;
    for (const Real value : x) {
        if (std::isfinite(value)) size = std::max(size, std::abs(static_cast<double>(value)));
    }
    const double most = size * (sizeof(Real) == 4 ? 1e-4 : 1e-11);
    for (std::size_t i = 0; i < x.size(); ++i) {
        const bool both_odd = !std::isfinite(x[i]) && !std::isfinite(y[i]);
        require(both_odd || std::abs(x[i] - y[i]) <= most, what);
    }
}

// The score that decides a child's reward instead of its parent's reward, as prunus.ops.path_rewards has it.
template <class Real>
bool takes(Real toward, Real above) {
    return toward < above || (std::isnan(toward) && above > Real(-0.5));
}

template <class Real>
std::vector<Real> path_rewards(const Problem<Real>& p) {
    const std::int32_t nodes = p.tree.nodes();
    std::vector<Real> q(p.n * nodes, Real(1));
    for (std::int64_t i = 0; i < p.n; ++i) {
        for (std::int32_t t = 1; t < nodes; ++t) {
            const Real score = p.s[i * p.tree.splits + Tree::parent(t)], above = q[i * nodes + Tree::parent(t)];
            const Real toward = t % 2 == 0 ? score : -score;
            q[i * nodes + t] = takes(toward, above) ? toward : above;
        }
    }
    return q;
}

template <class Real>
std::vector<Real> to_scores(const Problem<Real>& p, const std::vector<Real>& q, std::vector<Real> grad_q) {
    const std::int32_t nodes = p.tree.nodes();
    std::vector<Real> grad_s(p.s.size(), Real(0));
    for (std::int64_t i = 0; i < p.n; ++i) {
        for (std::int32_t t = nodes - 1; t > 0; --t) {
            const std::int64_t split = i * p.tree.splits + Tree::parent(t), above = i * nodes + Tree::parent(t);
            const Real toward = t % 2 == 0 ? p.s[split] : -p.s[split], grad = grad_q[i * nodes + t];
            if (takes(toward, q[above])) {
                grad_s[split] += t % 2 == 0 ? grad : -grad;
            } else {
                grad_q[above] += grad;
            }
        }
    }
    return grad_s;
}

// Gradients are compared at the same masses: a reward next to its mass may be active for one and not for the other.
template <class Real>
void require_same_operator(const Problem<Real>& p, const Evaluation<Real>& traversed, const std::vector<Real>& q) {
    Evaluation<Real> solved = argmin(p, q);
    require_close(traversed.a, solved.a, "tree_traverse and tree_argmin give other masses");
    require_close(traversed.z, solved.z, "tree_traverse and tree_argmin give other routes");
    require(traversed.group == solved.group, "tree_argmin pools rewards of a tree");
    solved.a = traversed.a;
    differentiate_argmin(p, q, solved);
    require_close(traversed.grad_x, to_scores(p, q, solved.grad_x), "the gradients of the scores differ");
    require_close<Real>({traversed.grad_lam}, {solved.grad_lam}, "the gradients of lam differ");
    if (!p.weight.empty()) require_close(traversed.grad_weight, solved.grad_weight, "the gradients of weights differ");
}

// Evaluates like `twice`, into memory that holds `filler`.
template <class T, class Evaluate>
std::vector<T> written_twice(std::int64_t size, T filler, const Evaluate& evaluate) {
    std::vector<T> first(size, filler), second(size, filler);
    forget_scratch();
    evaluate(first.data());
    evaluate(second.data());
    require(same_bits(first, second), "repeating changes the routes or leaves");
    return first;
}

template <class Real>
std::vector<Real> routes(const Problem<Real>& p, const std::vector<Real>& a) {
    const Samples<Real> scores{p.s.data(), nullptr, p.n, p.tree.splits, p.tree};
    return written_twice(p.n * p.tree.nodes(), std::numeric_limits<Real>::quiet_NaN(),
                         [&](Real* z) { prunus::routes(scores, a.data(), p.threads, z); });
}

template <class Real>
void require_routes(Random& random, const Problem<Real>& p, const std::vector<Real>& q) {
    const std::int32_t nodes = p.tree.nodes();
    std::vector<Real> a = normal<Real>(random, nodes, 1.0);
    for (Real& mass : a) mass = std::clamp(mass, Real(0), Real(1));
    const std::vector<Real> z = routes(p, a);
    for (std::int64_t i = 0; i < p.n * nodes; ++i) {
        const Real expected = prunus::route(q[i] + Real(0.5), a[i % nodes]);
        require(std::isnan(expected) ? std::isnan(z[i]) : z[i] == expected, "a route is not clip(u, 0, a)");
    }
}

template <class Real>
void require_sums_above(const Problem<Real>& p, const std::vector<Real>& q, const std::vector<Real>& a) {
    const std::int32_t nodes = p.tree.nodes();
    std::vector<double> total(nodes), active_weight(nodes), expected_total(nodes), expected_weight(nodes);
    prunus::sums_above(p.scores(), a.data(), p.threads, total.data(), active_weight.data());
    for (std::int64_t i = 0; i < p.n; ++i) {
        const double weight = p.scores().weight_of(i);
        for (std::int32_t t = 0; t < nodes; ++t) {
            const Real u = q[i * nodes + t] + Real(0.5);
            if (!(u > a[t])) continue;
            expected_total[t] += weight * u;
            expected_weight[t] += weight;
        }
    }
    require_close(total, expected_total, "sums of w u over active samples differ");
    require_close(active_weight, expected_weight, "weights of active samples differ");
}

// Whole numbers, so that scores are exact in any order of summation.
template <class Real>
std::vector<Real> whole(Random& random, std::int64_t size) {
    std::vector<Real> x(size);
    for (Real& value : x) value = static_cast<Real>(static_cast<int>(random() % 9) - 4);
    return x;
}

template <class Real>
void require_leaves(Random& random, const Case& c, const Problem<Real>& p) {
    const std::int64_t columns = random() % 20, splits = p.tree.splits;
    std::vector<Real> x = whole<Real>(random, p.n * columns);
    if (c.odd) make_odd(random, x);
    const std::vector<Real> weight = whole<Real>(random, splits * columns), bias = whole<Real>(random, splits);
    const auto leaf = written_twice(p.n, std::int64_t{-1}, [&](std::int64_t* out) {
        prunus::linear_leaves(x.data(), p.n, columns, weight.data(), bias.data(), p.tree, p.threads, out);
    });
    for (std::int64_t i = 0; i < p.n; ++i) {
        std::int64_t t = 0;
        while (t < splits) {
            Real score = bias[t];
            for (std::int64_t j = 0; j < columns; ++j) score += x[i * columns + j] * weight[t * columns + j];
            t = 2 * t + (score < 0 ? 1 : 2);
        }
        require(leaf[i] == t, "a leaf is not at the end of its sample's path");
    }
}

// Rows of a table have the leaves that they have after it was scaled.
template <class Real>
void require_table_leaves(Random& random, const Case& c, const Problem<Real>& p) {
    const std::int64_t columns = 1 + random() % 20, splits = p.tree.splits;
    std::vector<Real> x = whole<Real>(random, p.n * columns);
    if (c.odd) make_odd(random, x);
    const std::vector<double> center = whole<double>(random, columns), scale(columns, 2.0);
    const std::vector<double> low(columns, -1.5), high(columns, 2.5);
    const prunus::Scaling scaling{center.data(), scale.data(), low.data(), high.data()};
    std::vector<float> scaled(p.n * columns, std::numeric_limits<float>::quiet_NaN());
    const bool finite = prunus::scale_columns(x.data(), p.n, columns, scaling, p.threads, scaled.data());
    require(finite == std::all_of(x.begin(), x.end(), [](Real value) { return std::isfinite(value); }),
            "a value that is not finite goes unnoticed");
    const std::vector<float> weight = normal<float>(random, splits * columns, 1.0);
    const std::vector<float> bias = normal<float>(random, splits, 1.0);
    std::vector<std::int32_t> leaf(p.n, -1);
    const prunus::PaddedSplits padded(weight.data(), bias.data(), p.tree.splits, columns);
    require(prunus::table_leaves(x.data(), p.n, columns, scaling, padded, p.threads, leaf.data()) == finite,
            "leaves and scaled rows disagree on what is finite");
    if (!finite) return;
    std::vector<std::int64_t> expected(p.n, -1);
    prunus::linear_leaves(scaled.data(), p.n, columns, weight.data(), bias.data(), p.tree, p.threads, expected.data());
    require(std::equal(leaf.begin(), leaf.end(), expected.begin()), "a row's leaf depends on when it was scaled");
}

// Masses that fall along paths, as predictions need them.
template <class Real>
std::vector<Real> falling_masses(Random& random, Tree tree) {
    std::vector<Real> a = normal<Real>(random, tree.nodes(), 1.0);
    for (std::int32_t t = 0; t < tree.nodes(); ++t) {
        a[t] = std::clamp(std::abs(a[t]), Real(0), t == 0 ? Real(1) : a[Tree::parent(t)]);
        if (random() % 8 == 0) a[t] = 0;
    }
    return a;
}

// Outputs by the definition: routes through all nodes of scores that are exact.
template <class Real>
std::vector<Real> predict_by_routes(const Problem<Real>& p, const prunus::LinearTree<Real>& model, const Real* x) {
    const std::int64_t splits = p.tree.splits, nodes = p.tree.nodes(), columns = model.columns, outputs = model.outputs;
    const auto product = [&](std::int64_t i, const Real* y) {
        Real sum = 0;
        for (std::int64_t j = 0; j < columns; ++j) sum += x[i * columns + j] * y[j];
        return sum;
    };
    std::vector<Real> s(p.n * splits), z(p.n * nodes), out(p.n * outputs);
    for (std::int64_t i = 0; i < p.n; ++i) {
        for (std::int64_t t = 0; t < splits; ++t) {
            s[i * splits + t] = product(i, model.weight + t * columns) + model.bias[t];
        }
    }
    prunus::routes(Samples<Real>{s.data(), nullptr, p.n, splits, p.tree}, model.a, p.threads, z.data());
    for (std::int64_t i = 0; i < p.n; ++i) {
        for (std::int64_t tk = 0; tk < nodes * outputs; ++tk) {
            const Real linear = model.slope == nullptr ? Real(0) : product(i, model.slope + tk * columns);
            out[i * outputs + tk % outputs] += z[i * nodes + tk / outputs] * (model.constant[tk] + linear);
        }
    }
    return out;
}

template <class Real>
void require_predictions(Random& random, const Case& c, const Problem<Real>& p) {
    const std::int64_t columns = random() % 20, outputs = 1 + random() % 3, nodes = p.tree.nodes();
    std::vector<Real> x = whole<Real>(random, p.n * columns), weight = whole<Real>(random, p.tree.splits * columns);
    for (Real& value : weight) value /= 8;  // some rows are undecided
    const std::vector<Real> bias = whole<Real>(random, p.tree.splits), a = falling_masses<Real>(random, p.tree);
    const std::vector<Real> slope = whole<Real>(random, nodes * outputs * columns);
    const std::vector<Real> constant = whole<Real>(random, nodes * outputs);
    const prunus::LinearTree<Real> model{
        p.tree,   columns, outputs, weight.data(), bias.data(), a.data(), random() % 2 == 0 ? nullptr : slope.data(),
        constant.data()};
    const auto predict = [&] {
        return written_twice(p.n * outputs, Real(0),
                             [&](Real* out) { prunus::predict(model, x.data(), p.n, p.threads, out); });
    };
    require_close(predict_by_routes(p, model, x.data()), predict(), "predictions are not those along the routes");
    if (c.odd) make_odd(random, x);
    predict();  // the outputs may be anything, but no access may be out of bounds
}

template <class Real>
void check(Random& random, const Case& c) {
    const Problem<Real> p(random, c);
    const std::vector<Real> q = path_rewards(p);
    const Evaluation<Real> traversed = twice([&] { return traverse(p); });
    require_feasible(p, traversed, q);
    require_same_operator(p, traversed, q);
    require_feasible(p, twice([&] { return argmin(p, p.arbitrary); }), p.arbitrary);
    require_routes(random, p, q);
    require_sums_above(p, q, traversed.a);
    if (c.weights == Weights::none) {
        require_close(routes(p, traversed.a), traversed.z, "masses of a batch give other routes");
    }
    require_leaves(random, c, p);
    require_table_leaves(random, c, p);
    require_predictions(random, c, p);
}

Case random_case(Random& random) {
    const int depth = static_cast<int>(random() % 9);
    const std::int64_t most = depth <= 5 ? 700 : 150;  // more rows than a block holds, and than one thread is given
    const std::int64_t n = random() % 4 == 0 ? random() % 3 : random() % most;
    const std::vector<Weights> kinds{Weights::none, Weights::plain, Weights::zero, Weights::invalid};
    const auto weights = pick(random, kinds);
    return {n,
            depth,
            pick(random, std::vector<double>{0.0, 1e-30, 1e-6, 0.3, 1.0, 17.0, 1e4, 1e30}),
            pick(random, std::vector<double>{0.1, 1.0, 10.0}),
            weights,
            random() % 2 == 0,
            static_cast<int>(1 + random() % 5)};
}

bool check_all(std::uint64_t seed, int cases) {
    Random random(seed);
    for (int k = 0; k < cases; ++k) {
        const Case c = random_case(random);
        try {
            check<float>(random, c);
            check<double>(random, c);
        } catch (const std::exception& error) {
            std::fprintf(stderr, "%s: %s\n", c.name().c_str(), error.what());
            return false;
        }
    }
    return true;
}

}  // namespace

int main(int argc, char** argv) {
    const int cases = argc > 1 ? std::atoi(argv[1]) : 100;
    bool first = false, second = false;
    if (!check_all(0, cases)) return 1;
    std::thread other([&] { first = check_all(1, cases / 4); });  // two callers at once
    second = check_all(2, cases / 4);
    other.join();
    return first && second ? 0 : 1;
}
