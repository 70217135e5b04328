// Examples and Engine as classes of Python, in single and in double precision. All arrays belong to the caller; their
// sizes are checked before the engine reads them.
#include "bindings.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../arrays.hpp"
#include "engine.hpp"

namespace prunus::engine {

namespace nb = nanobind;
using namespace nb::literals;

namespace {

template <class Real>
using Array = prunus::Matrix<Real>;
template <class Real>
using Flat = prunus::Vector<Real>;

Loss loss_named(const std::string& name) {
    const std::pair<const char*, Loss> losses[] = {
        {"squared", Loss::squared}, {"absolute", Loss::absolute}, {"huber", Loss::huber},
        {"quantile", Loss::quantile}, {"poisson", Loss::poisson}, {"gamma", Loss::gamma},
        {"tweedie", Loss::tweedie}, {"label", Loss::label}, {"shares", Loss::shares}, {"chance", Loss::chance}};
    for (const auto& [known, loss] : losses) {
        if (name == known) return loss;
    }
    throw nb::value_error(("unknown loss " + name).c_str());
}

// Refuses numbers that are not from the smallest to the largest. Columns, outputs and rows of a batch are counted by
// 32-bit integers, so that products of two of them do not overflow.
void expect_within(const char* name, std::int64_t number, std::int64_t smallest,
                   std::int64_t largest = std::numeric_limits<std::int32_t>::max()) {
    if (number >= smallest && number <= largest) return;
    const std::string message = std::string(name) + " must be from " + std::to_string(smallest) + " to " +
                                std::to_string(largest) + ", got " + std::to_string(number);
    throw nb::value_error(message.c_str());
}

// Examples that keep their arrays alive.
template <class Real>
class BoundExamples {
  public:
    BoundExamples(Array<const Real> split_inputs, std::optional<Array<const Real>> leaf_inputs,
                  Array<const Real> target, std::optional<Array<const Real>> offset,
                  std::optional<Flat<const Real>> weight, std::int64_t outputs)
        : split_inputs_(split_inputs), leaf_inputs_(leaf_inputs), target_(target), offset_(offset), weight_(weight) {
        const std::size_t n = split_inputs.shape(0);
        expect_within("outputs", outputs, 1);
        if (leaf_inputs) expect("leaf_inputs", *leaf_inputs, {n});
        expect("target", target, {n});
        expect("offset", offset, {n, static_cast<std::size_t>(outputs)});
        expect("weight", weight, {n});
        const auto columns = static_cast<std::int64_t>(split_inputs.shape(1));
        examples = {static_cast<std::int64_t>(n),
                    columns,
                    leaf_inputs ? static_cast<std::int64_t>(leaf_inputs->shape(1)) : columns,
                    static_cast<std::int64_t>(target.shape(1)),
                    outputs,
                    split_inputs.data(),
                    leaf_inputs ? leaf_inputs->data() : split_inputs.data(),
                    target.data(),
                    offset ? offset->data() : nullptr,
                    weight ? weight->data() : nullptr};
    }

    Examples<Real> examples;

  private:
    Array<const Real> split_inputs_;
    std::optional<Array<const Real>> leaf_inputs_;
    Array<const Real> target_;
    std::optional<Array<const Real>> offset_;
    std::optional<Flat<const Real>> weight_;
};

// What an optimizer changes, as arrays of Python.
template <class Real>
struct BoundMoments {
    Flat<Real> theta;
    std::optional<Flat<Real>> average;
    Flat<Real> m, v, grad;

    Moments<Real> checked(std::size_t size) const {
        expect("theta", theta, {size});
        expect("average", average, {size});
        expect("m", m, {size});
        expect("v", v, {size});
        expect("grad", grad, {size});
        return {theta.data(), average ? average->data() : nullptr, m.data(), v.data(), grad.data()};
    }
};

// The columns of splits that use few of them, as arrays of Python.
template <class Real>
struct BoundColumns {
    Flat<const std::int32_t> owner;
    Array<Real> used;

    Columns<Real> checked(const Parameters& shape, std::int64_t inputs) const {
        expect("owner", owner, {static_cast<std::size_t>(inputs)});
        expect("used", used, {static_cast<std::size_t>(shape.tree.splits), static_cast<std::size_t>(inputs)});
        std::int32_t count = 0;
        for (std::int64_t j = 0; j < inputs; ++j) {
            const std::int32_t column = owner.data()[j];
            if (column < 0 || column >= inputs) throw nb::value_error("owner must name a column for each input");
            count = std::max(count, column + 1);
        }
        return {count, owner.data(), inputs, used.data()};
    }
};

// A function of Python that sums an array over processes in place. The engine calls it without the lock of Python.
template <class Real>
std::function<void(Real*, std::int64_t)> summing(const nb::object& function) {
    return [function](Real* data, std::int64_t size) {
        const nb::gil_scoped_acquire locked;
        const nb::ndarray<nb::numpy, Real, nb::ndim<1>> array(data, {static_cast<std::size_t>(size)});
        function(nb::cast(array, nb::rv_policy::reference));
    };
}

template <class Real>
Processes<Real> processes_of(const nb::object& function) {
    if (function.is_none()) return {};
    return {summing<double>(function), summing<Real>(function)};
}

template <class Real>
class BoundEngine {
  public:
    BoundEngine(int depth, std::int64_t split_columns, std::int64_t slope_columns, std::int64_t leaf_columns,
                std::int64_t outputs, bool leaf_slopes, bool shared_slopes,
                const std::optional<std::vector<std::int64_t>>& hidden, const std::string& loss, double parameter,
                double strength, std::int64_t meant_for, int threads, const nb::object& sum)
        : shape_(with_network(
              shape_of(depth, split_columns, slope_columns, leaf_columns, outputs, leaf_slopes, shared_slopes),
              leaf_columns, hidden)),
          split_columns_(split_columns),
          leaf_columns_(leaf_columns),
          loss_(loss_named(loss)),
          shared_(!sum.is_none()),
          engine_(shape_, {loss_, static_cast<Real>(parameter), strength, meant_for}, std::max(1, threads),
                  processes_of<Real>(sum)) {
        expect_within("meant_for", meant_for, 0, std::numeric_limits<std::int64_t>::max());
    }

    std::vector<std::int64_t> sizes() const {
        return shape_.sizes();
    }

    std::pair<std::int64_t, double> train(const BoundExamples<Real>& examples, Flat<const std::int64_t> order,
                                          std::int64_t batch_size, std::int64_t first, double loss_before,
                                          std::int64_t steps_before, Array<const double> plan,
                                          std::optional<Flat<const std::int64_t>> most_columns,
                                          std::optional<BoundColumns<Real>> columns, double weight_decay, double clip,
                                          Flat<const unsigned char> has_decay, const BoundMoments<Real>& moments,
                                          double seconds) {
        const auto n = static_cast<std::int64_t>(order.shape(0));
        const bool is_first = batch_size >= 1 && first >= 0 && (shared_ || first < n) && first % batch_size == 0;
        if (!is_first) throw nb::value_error("first must be the first row of a batch");
        expect_within("the rows of a batch", shared_ ? batch_size : std::min(batch_size, n), 1);
        const auto of_order = static_cast<std::size_t>(n == 0 ? 0 : (n - 1) / batch_size + 1);
        const std::size_t steps = shared_ ? std::max(of_order, plan.shape(1)) : of_order;
        if (first / batch_size >= static_cast<std::int64_t>(steps)) throw nb::value_error("first must be in the plan");
        expect_within("steps_before", steps_before, 0, std::numeric_limits<std::int64_t>::max() / 2);
        expect("plan", plan, {3, steps});
        expect("most_columns", most_columns, {steps});
        expect("has_decay", has_decay, {shape_.sizes().size()});
        if (columns && !most_columns) throw nb::value_error("most_columns must be given with columns");
        check(examples.examples, order, first);
        const Moments<Real> all = moments.checked(shape_.size());
        Columns<Real> chosen;
        if (columns) chosen = columns->checked(shape_, split_columns_);
        const double* rows = plan.data();
        const Plan steps_of{static_cast<std::int64_t>(steps), rows, rows + steps, rows + 2 * steps, most_columns ? most_columns->data() : nullptr};
        if (columns) {
            for (std::size_t i = 0; i < steps; ++i) {
                if (steps_of.most_columns[i] < 1) throw nb::value_error("most_columns must be at least 1");
            }
        }
        const nb::gil_scoped_release unlocked;
        const std::lock_guard<std::mutex> alone(mutex_);
        const Progress progress =
            engine_.train(examples.examples, order.data(), n, batch_size, {first, loss_before}, steps_before, steps_of,
                          {weight_decay, clip, has_decay.data()}, chosen, all, seconds);
        return {progress.row, progress.loss};
    }

    double gradient(const BoundExamples<Real>& examples, Flat<const std::int64_t> order, double scale,
                    std::optional<BoundColumns<Real>> columns, Flat<Real> theta, Flat<Real> grad) {
        const auto size = static_cast<std::size_t>(shape_.size());
        expect("theta", theta, {size});
        expect("grad", grad, {size});
        expect_within("the rows of a batch", static_cast<std::int64_t>(order.shape(0)), shared_ ? 0 : 1);
        check(examples.examples, order, 0);
        Columns<Real> chosen;
        if (columns) chosen = columns->checked(shape_, split_columns_);
        const nb::gil_scoped_release unlocked;
        const std::lock_guard<std::mutex> alone(mutex_);
        return engine_.gradient(examples.examples, order.data(), order.shape(0), scale, chosen, theta.data(),
                                grad.data());
    }

    void masses(const BoundExamples<Real>& examples, std::int64_t step, double scale, Flat<Real> theta, Flat<Real> mass,
                bool shared) {
        expect("theta", theta, {static_cast<std::size_t>(shape_.size())});
        expect("mass", mass, {static_cast<std::size_t>(shape_.tree.nodes())});
        check(examples.examples);
        expect_within("step", step, 1, std::max<std::int64_t>(1, examples.examples.n));
        const nb::gil_scoped_release unlocked;
        const std::lock_guard<std::mutex> alone(mutex_);
        engine_.masses(examples.examples, step, scale, theta.data(), shared, mass.data());
    }

    double evaluate(const BoundExamples<Real>& examples, double scale, Flat<Real> theta, Flat<const Real> mass) {
        expect("theta", theta, {static_cast<std::size_t>(shape_.size())});
        expect("mass", mass, {static_cast<std::size_t>(shape_.tree.nodes())});
        check(examples.examples);
        const nb::gil_scoped_release unlocked;
        const std::lock_guard<std::mutex> alone(mutex_);
        return engine_.evaluate(examples.examples, scale, theta.data(), mass.data());
    }

  private:
    static constexpr double most_values = 1e15;  // more than any memory holds, far less than 64-bit integers count

    static Parameters shape_of(int depth, std::int64_t split_columns, std::int64_t slope_columns,
                               std::int64_t leaf_columns, std::int64_t outputs, bool leaf_slopes, bool shared_slopes) {
        constexpr int most_depth = 24;
        expect_within("depth", depth, 0, most_depth);
        expect_within("split_columns", split_columns, 0);
        expect_within("leaf_columns", leaf_columns, 0);
        expect_within("slope_columns", slope_columns, 0, leaf_columns);
        if (slope_columns != leaf_columns && slope_columns % lanes != 0) {
            throw nb::value_error("slope_columns must be all leaf_columns, or whole lanes of them");
        }
        expect_within("outputs", outputs, 1);
        const Parameters shape{{(std::int32_t{1} << depth) - 1},
                               outputs,
                               padded(split_columns),
                               padded(slope_columns),
                               padded(leaf_columns),
                               leaf_slopes,
                               shared_slopes,
                               {}};
        const double of_leaf = static_cast<double>(outputs) * static_cast<double>(shape.leaf_width + 1);
        if (shape.tree.nodes() * (of_leaf + static_cast<double>(shape.split_width + 1)) > most_values) {
            throw nb::value_error("the tree must have fewer parameters");
        }
        return shape;
    }

    // The shape with a network that has these hidden layers.
    static Parameters with_network(Parameters shape, std::int64_t leaf_columns,
                                   const std::optional<std::vector<std::int64_t>>& hidden) {
        if (!hidden) return shape;
        if (shape.leaf_slopes || shape.shared_slopes) throw nb::value_error("hidden must be None with slopes");
        shape.units = {leaf_columns + shape.tree.nodes()};
        for (const std::int64_t units : *hidden) {
            expect_within("hidden", units, 1);
            shape.units.push_back(units);
        }
        shape.units.push_back(shape.outputs);
        double values = 0;
        for (int layer = 0; layer < shape.layers(); ++layer) {
            values += static_cast<double>(shape.units[layer] + 1) * static_cast<double>(shape.layer_width(layer));
        }
        if (values > most_values) throw nb::value_error("the network must have fewer parameters");
        return shape;
    }

    void check(const Examples<Real>& examples) const {
        const bool labels = loss_ == Loss::label;
        if (examples.split_columns != split_columns_ || examples.leaf_columns != leaf_columns_ ||
            examples.outputs != shape_.outputs || examples.target_columns != (labels ? 1 : shape_.outputs)) {
            throw nb::value_error("examples must have the inputs, targets and outputs of the engine");
        }
        if (examples.n == 0 && !shared_) throw nb::value_error("examples must have at least one row");
        if (!labels) return;
        for (std::int64_t i = 0; i < examples.n; ++i) {
            const Real label = examples.target[i];
            if (!(label >= 0 && label < static_cast<Real>(shape_.outputs))) {
                throw nb::value_error("targets must be numbers of classes");
            }
        }
    }

    void check(const Examples<Real>& examples, const Flat<const std::int64_t>& order, std::int64_t first) const {
        check(examples);
        for (std::size_t i = first; i < order.shape(0); ++i) {
            const std::int64_t row = order.data()[i];
            if (row < 0 || row >= examples.n) throw nb::value_error("order must name rows of the examples");
        }
    }

    Parameters shape_;
    std::int64_t split_columns_, leaf_columns_;
    Loss loss_;
    bool shared_;  // whether processes share batches
    std::mutex mutex_;  // the engine has memory of its own for one call at a time
    Engine<Real> engine_;
};

// The masses of a tree with linear splits for all rows of x. `lam` is the strength for one row.
template <class Real>
void linear_masses(Array<const Real> x, Array<const Real> weight, Flat<const Real> bias,
                   std::optional<Flat<const Real>> sample_weight, double lam, Flat<Real> mass, int threads) {
    const std::size_t n = x.shape(0), columns = x.shape(1), splits = bias.shape(0);
    expect("weight", weight, {splits, columns});
    expect("sample_weight", sample_weight, {n});
    expect("mass", mass, {nodes_of(splits)});
    expect_within("the number of columns", static_cast<std::int64_t>(columns), 0);
    const nb::gil_scoped_release unlocked;
    const std::int64_t width = padded(static_cast<std::int64_t>(columns));
    std::vector<Real> weights(splits * width, Real(0));
    for (std::size_t t = 0; t < splits; ++t) std::copy_n(weight.data() + t * columns, columns, &weights[t * width]);
    const auto inputs = static_cast<std::int64_t>(columns);
    const Examples<Real> examples{static_cast<std::int64_t>(n), inputs,   inputs,  0,
                                  0,                            x.data(), x.data(), nullptr,
                                  nullptr,                      sample_weight ? sample_weight->data() : nullptr};
    Workers workers(std::max(1, threads));
    MassSolver<Real>().all(examples, {Tree{static_cast<std::int32_t>(splits)}, weights.data(), bias.data(), width}, lam,
                           workers, mass.data());
}

template <class Real>
void bind_real(nb::module_& m, const std::string& suffix) {
    nb::class_<BoundExamples<Real>>(m, ("Examples" + suffix).c_str())
        .def(nb::init<Array<const Real>, std::optional<Array<const Real>>, Array<const Real>,
                      std::optional<Array<const Real>>, std::optional<Flat<const Real>>, std::int64_t>(),
             "split_inputs"_a.noconvert(), "leaf_inputs"_a.noconvert().none(), "target"_a.noconvert(),
             "offset"_a.noconvert().none(), "weight"_a.noconvert().none(), "outputs"_a);
    m.def("linear_masses", &linear_masses<Real>, "x"_a.noconvert(), "weight"_a.noconvert(), "bias"_a.noconvert(),
          "sample_weight"_a.noconvert().none(), "lam"_a, "mass"_a.noconvert(), "threads"_a);
    nb::class_<BoundMoments<Real>>(m, ("Moments" + suffix).c_str())
        .def("__init__",
             [](BoundMoments<Real>* self, Flat<Real> theta, std::optional<Flat<Real>> average, Flat<Real> mean,
                Flat<Real> square, Flat<Real> grad) {
                 new (self) BoundMoments<Real>{theta, average, mean, square, grad};
             },
             "theta"_a.noconvert(), "average"_a.noconvert().none(), "m"_a.noconvert(), "v"_a.noconvert(),
             "grad"_a.noconvert());
    nb::class_<BoundColumns<Real>>(m, ("Columns" + suffix).c_str())
        .def("__init__",
             [](BoundColumns<Real>* self, Flat<const std::int32_t> owner, Array<Real> used) {
                 new (self) BoundColumns<Real>{owner, used};
             },
             "owner"_a.noconvert(), "used"_a.noconvert());
    nb::class_<BoundEngine<Real>>(m, ("Engine" + suffix).c_str())
        .def(nb::init<int, std::int64_t, std::int64_t, std::int64_t, std::int64_t, bool, bool,
                      const std::optional<std::vector<std::int64_t>>&, const std::string&, double, double, std::int64_t, int,
                      const nb::object&>(),
             "depth"_a, "split_columns"_a, "slope_columns"_a, "leaf_columns"_a, "outputs"_a, "leaf_slopes"_a,
             "shared_slopes"_a, "hidden"_a.none(), "loss"_a, "parameter"_a, "strength"_a, "meant_for"_a, "threads"_a,
             "sum"_a.none() = nb::none())
        .def_prop_ro("sizes", &BoundEngine<Real>::sizes)
        .def("train", &BoundEngine<Real>::train, "examples"_a, "order"_a.noconvert(), "batch_size"_a, "first"_a,
             "loss_before"_a, "steps_before"_a, "plan"_a.noconvert(), "most_columns"_a.noconvert().none(),
             "columns"_a.none(), "weight_decay"_a, "clip"_a, "has_decay"_a.noconvert(), "moments"_a, "seconds"_a)
        .def("gradient", &BoundEngine<Real>::gradient, "examples"_a, "order"_a.noconvert(), "scale"_a,
             "columns"_a.none(), "theta"_a.noconvert(), "grad"_a.noconvert())
        .def("masses", &BoundEngine<Real>::masses, "examples"_a, "step"_a, "scale"_a, "theta"_a.noconvert(),
             "mass"_a.noconvert(), "shared"_a = false)
        .def("evaluate", &BoundEngine<Real>::evaluate, "examples"_a, "scale"_a, "theta"_a.noconvert(),
             "mass"_a.noconvert());
}

}  // namespace

void bind(nb::module_& m) {
    bind_real<float>(m, "32");
    bind_real<double>(m, "64");
}

}  // namespace prunus::engine
