// The Python module prunus._core: the CPU kernels on arrays that the caller has allocated. The module releases Python's
// global lock while it computes. It does not link against torch: tensors come as DLPack arrays.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <optional>

#include "argmin.hpp"
#include "arrays.hpp"
#include "engine/bindings.hpp"
#include "masses.hpp"
#include "predict.hpp"
#include "routes.hpp"
#include "scale.hpp"
#include "search/bindings.hpp"
#include "table_leaves.hpp"
#include "traverse.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using prunus::expect;
using prunus::Matrix;
using prunus::nodes_of;
using prunus::Scalar;
using prunus::Tensor3;
using prunus::Vector;
using prunus::Weight;

// The gradients of a node's mass go to the topmost node of its group, which is the node itself or one above.
void expect_groups(const Vector<const std::int64_t>& group) {
    for (std::size_t t = 0; t < group.shape(0); ++t) {
        const std::int64_t top = group.data()[t];
        if (top < 0 || top > static_cast<std::int64_t>(t)) {
            throw nb::value_error("group must name for each node the node itself or one before it");
        }
    }
}

template <class Real>
prunus::Samples<Real> samples_of(const Matrix<const Real>& data, const Weight<Real>& weight, std::size_t splits) {
    return {data.data(), weight ? weight->data() : nullptr, static_cast<std::int64_t>(data.shape(0)),
            static_cast<std::int64_t>(data.shape(1)), prunus::Tree{static_cast<std::int32_t>(splits)}};
}

template <class Real>
void traverse_forward(Matrix<const Real> s, double lam, Weight<Real> weight, Matrix<Real> z, Vector<Real> a,
                      int threads) {
    const std::size_t n = s.shape(0), nodes = nodes_of(s.shape(1));
    expect("weight", weight, {n});
    expect("z", z, {n, nodes});
    expect("a", a, {nodes});
    const nb::gil_scoped_release unlocked;
    prunus::traverse_forward(samples_of<Real>(s, weight, s.shape(1)), lam, threads, z.data(), a.data());
}

template <class Real>
void traverse_backward(Matrix<const Real> grad_z, Vector<const Real> grad_a, Matrix<const Real> s, Vector<const Real> a,
                       double lam, Weight<Real> weight, Matrix<Real> grad_s, Scalar<Real> grad_lam,
                       Vector<Real> grad_weight, int threads) {
    const std::size_t n = s.shape(0), nodes = nodes_of(s.shape(1));
    expect("grad_z", grad_z, {n, nodes});
    expect("grad_a", grad_a, {nodes});
    expect("a", a, {nodes});
    expect("weight", weight, {n});
    expect("grad_s", grad_s, {n, s.shape(1)});
    expect("grad_weight", grad_weight, {n});
    const nb::gil_scoped_release unlocked;
    prunus::traverse_backward(samples_of<Real>(s, weight, s.shape(1)), {grad_z.data(), grad_a.data()}, a.data(), lam,
                              threads, grad_s.data(), grad_lam.data(), grad_weight.data());
}

template <class Real>
void argmin_forward(Matrix<const Real> q, double lam, Weight<Real> weight, Matrix<Real> z, Vector<Real> a,
                    Vector<std::int64_t> group, int threads) {
    const std::size_t n = q.shape(0), nodes = nodes_of(q.shape(1) / 2);
    expect("q", q, {n, nodes});
    expect("weight", weight, {n});
    expect("z", z, {n, nodes});
    expect("a", a, {nodes});
    expect("group", group, {nodes});
    const nb::gil_scoped_release unlocked;
    prunus::argmin_forward(samples_of<Real>(q, weight, q.shape(1) / 2), lam, threads, z.data(), a.data(), group.data());
}

template <class Real>
void argmin_backward(Matrix<const Real> grad_z, Vector<const Real> grad_a, Matrix<const Real> q, Vector<const Real> a,
                     Vector<const std::int64_t> group, double lam, Weight<Real> weight, Matrix<Real> grad_q,
                     Scalar<Real> grad_lam, Vector<Real> grad_weight, int threads) {
    const std::size_t n = q.shape(0), nodes = nodes_of(q.shape(1) / 2);
    expect("grad_z", grad_z, {n, nodes});
    expect("grad_a", grad_a, {nodes});
    expect("q", q, {n, nodes});
    expect("a", a, {nodes});
    expect("group", group, {nodes});
    expect_groups(group);
    expect("weight", weight, {n});
    expect("grad_q", grad_q, {n, nodes});
    expect("grad_weight", grad_weight, {n});
    const nb::gil_scoped_release unlocked;
    prunus::argmin_backward(samples_of<Real>(q, weight, q.shape(1) / 2), {grad_z.data(), grad_a.data()}, a.data(),
                            group.data(), lam, threads, grad_q.data(), grad_lam.data(), grad_weight.data());
}

template <class Real>
void routes(Matrix<const Real> s, Vector<const Real> a, Matrix<Real> z, int threads) {
    const std::size_t n = s.shape(0), nodes = nodes_of(s.shape(1));
    expect("a", a, {nodes});
    expect("z", z, {n, nodes});
    const nb::gil_scoped_release unlocked;
    prunus::routes(samples_of<Real>(s, std::nullopt, s.shape(1)), a.data(), threads, z.data());
}

template <class Real>
void sums_above(Matrix<const Real> s, Weight<Real> weight, Vector<const Real> a, Vector<double> total,
                Vector<double> active_weight, int threads) {
    const std::size_t n = s.shape(0), nodes = nodes_of(s.shape(1));
    expect("weight", weight, {n});
    expect("a", a, {nodes});
    expect("total", total, {nodes});
    expect("active_weight", active_weight, {nodes});
    const nb::gil_scoped_release unlocked;
    prunus::sums_above(samples_of<Real>(s, weight, s.shape(1)), a.data(), threads, total.data(), active_weight.data());
}

template <class Real>
void linear_leaves(Matrix<const Real> x, Matrix<const Real> weight, Vector<const Real> bias, Vector<std::int64_t> leaf,
                   int threads) {
    const std::size_t n = x.shape(0), splits = bias.shape(0);
    nodes_of(splits);
    expect("weight", weight, {splits, x.shape(1)});
    expect("leaf", leaf, {n});
    const nb::gil_scoped_release unlocked;
    const prunus::Tree tree{static_cast<std::int32_t>(bias.shape(0))};
    prunus::linear_leaves<Real>(x.data(), x.shape(0), x.shape(1), weight.data(), bias.data(), tree, threads,
                                leaf.data());
}

template <class Real>
void predict(Matrix<const Real> x, Matrix<const Real> weight, Vector<const Real> bias, Vector<const Real> a,
             std::optional<Tensor3<const Real>> slope, Matrix<const Real> constant, Matrix<Real> out, int threads) {
    const std::size_t n = x.shape(0), d = x.shape(1), k = out.shape(1), splits = bias.shape(0);
    const std::size_t nodes = nodes_of(splits);
    expect("weight", weight, {splits, d});
    expect("a", a, {nodes});
    expect("slope", slope, {nodes, k, d});
    expect("constant", constant, {nodes, k});
    expect("out", out, {n, k});
    const nb::gil_scoped_release unlocked;
    const prunus::LinearTree<Real> model{
        {static_cast<std::int32_t>(bias.shape(0))}, static_cast<std::int64_t>(x.shape(1)),
        static_cast<std::int64_t>(out.shape(1)), weight.data(), bias.data(), a.data(),
        slope ? slope->data() : nullptr, constant.data()};
    prunus::predict<Real>(model, x.data(), x.shape(0), threads, out.data());
}

prunus::Scaling scaling_of(const Matrix<const double>& rows) {
    const double* first = rows.data();
    const std::size_t columns = rows.shape(1);
    return {first, first + columns, first + 2 * columns, first + 3 * columns};
}

template <class Real>
bool scale_columns(Matrix<const Real> x, Matrix<const double> scaling, Matrix<float> out, int threads) {
    expect("scaling", scaling, {4, x.shape(1)});
    expect("out", out, {x.shape(0), x.shape(1)});
    const nb::gil_scoped_release unlocked;
    return prunus::scale_columns<Real>(x.data(), x.shape(0), x.shape(1), scaling_of(scaling), threads, out.data());
}

template <class Real>
bool table_leaves(Matrix<const Real> x, Matrix<const double> scaling, Matrix<const float> weight,
                  Vector<const float> bias, Vector<std::int32_t> leaf, int threads) {
    nodes_of(bias.shape(0));
    expect("scaling", scaling, {4, x.shape(1)});
    expect("weight", weight, {bias.shape(0), x.shape(1)});
    expect("leaf", leaf, {x.shape(0)});
    const nb::gil_scoped_release unlocked;
    const prunus::PaddedSplits splits(weight.data(), bias.data(), bias.shape(0), x.shape(1));
    return prunus::table_leaves<Real>(x.data(), x.shape(0), x.shape(1), scaling_of(scaling), splits, threads,
                                      leaf.data());
}

template <class Real>
void bind(nb::module_& m) {
    m.def("traverse_forward", &traverse_forward<Real>, "s"_a.noconvert(), "lam"_a, "weight"_a.noconvert().none(),
          "z"_a.noconvert(), "a"_a.noconvert(), "threads"_a);
    m.def("traverse_backward", &traverse_backward<Real>, "grad_z"_a.noconvert(), "grad_a"_a.noconvert(),
          "s"_a.noconvert(), "a"_a.noconvert(), "lam"_a, "weight"_a.noconvert().none(), "grad_s"_a.noconvert(),
          "grad_lam"_a.noconvert(), "grad_weight"_a.noconvert(), "threads"_a);
    m.def("argmin_forward", &argmin_forward<Real>, "q"_a.noconvert(), "lam"_a, "weight"_a.noconvert().none(),
          "z"_a.noconvert(), "a"_a.noconvert(), "group"_a.noconvert(), "threads"_a);
    m.def("argmin_backward", &argmin_backward<Real>, "grad_z"_a.noconvert(), "grad_a"_a.noconvert(),
          "q"_a.noconvert(), "a"_a.noconvert(), "group"_a.noconvert(), "lam"_a, "weight"_a.noconvert().none(),
          "grad_q"_a.noconvert(), "grad_lam"_a.noconvert(), "grad_weight"_a.noconvert(), "threads"_a);
    m.def("routes", &routes<Real>, "s"_a.noconvert(), "a"_a.noconvert(), "z"_a.noconvert(), "threads"_a);
    m.def("sums_above", &sums_above<Real>, "s"_a.noconvert(), "weight"_a.noconvert().none(), "a"_a.noconvert(),
          "total"_a.noconvert(), "active_weight"_a.noconvert(), "threads"_a);
    m.def("linear_leaves", &linear_leaves<Real>, "x"_a.noconvert(), "weight"_a.noconvert(), "bias"_a.noconvert(),
          "leaf"_a.noconvert(), "threads"_a);
    m.def("scale_columns", &scale_columns<Real>, "x"_a.noconvert(), "scaling"_a.noconvert(), "out"_a.noconvert(),
          "threads"_a);
    m.def("table_leaves", &table_leaves<Real>, "x"_a.noconvert(), "scaling"_a.noconvert(), "weight"_a.noconvert(),
          "bias"_a.noconvert(), "leaf"_a.noconvert(), "threads"_a);
    m.def("predict", &predict<Real>, "x"_a.noconvert(), "weight"_a.noconvert(), "bias"_a.noconvert(),
          "a"_a.noconvert(), "slope"_a.noconvert().none(), "constant"_a.noconvert(), "out"_a.noconvert(),
          "threads"_a);
}

}  // namespace

NB_MODULE(_core, m) {
    m.doc() = "CPU kernels of prunus; prunus.ops.cpp calls them.";
    bind<float>(m);
    bind<double>(m);
    prunus::engine::bind(m);
    prunus::search::bind(m);
}
