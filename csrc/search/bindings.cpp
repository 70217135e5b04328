// Searches as a function of Python. All arrays belong to the caller; their sizes are checked before they are read.
#include "bindings.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "../arrays.hpp"
#include "interrupts.hpp"
#include "search.hpp"

namespace prunus::search {

namespace nb = nanobind;
using namespace nb::literals;

namespace {

constexpr int most_outputs = 1 << 20;  // sums of all bins are counted by 32-bit integers

void require(bool holds, const char* message) {
    if (!holds) throw nb::value_error(message);
}

struct Job {
    Vector<const std::int32_t> rows;
    Options options;
};

template <class T>
T entry(const nb::dict& given, const char* name) {
    if (!given.contains(name)) throw nb::value_error((std::string("a job must have ") + name).c_str());
    T value{};
    if (!nb::try_cast(given[name], value, std::is_arithmetic_v<T>)) {
        throw nb::type_error((std::string(name) + " of a job must have its type").c_str());
    }
    return value;
}

Job read_job(const nb::dict& given, std::int64_t rows) {
    Job job;
    job.rows = entry<Vector<const std::int32_t>>(given, "rows");
    Options& options = job.options;
    options.leaves = entry<int>(given, "leaves");
    options.terms = entry<int>(given, "terms");
    options.least = entry<double>(given, "least");
    options.price = entry<double>(given, "price");
    options.accuracy = entry<double>(given, "accuracy");
    options.cycles = entry<int>(given, "cycles");
    options.rounds = entry<int>(given, "rounds");
    options.polish = entry<int>(given, "polish");
    options.anneal = entry<int>(given, "anneal");
    options.seed = entry<std::uint64_t>(given, "seed");
    options.slopes = entry<std::vector<int>>(given, "slopes");
    require(options.least >= 0 && std::isfinite(options.price), "least must not be negative, price must be finite");
    require(options.accuracy >= 0 && options.accuracy <= 1, "accuracy must be from 0 to 1");
    require(options.cycles >= 1, "cycles must be positive");
    require(options.leaves >= 1 && options.leaves <= 4096, "leaves must be from 1 to 4096");
    require(options.terms >= 1 && options.terms <= most_terms, "terms must be 1 or 2");
    require(job.rows.shape(0) >= 1, "a search needs rows");
    for (std::size_t i = 0; i < job.rows.shape(0); ++i) {
        require(job.rows.data()[i] >= 0 && job.rows.data()[i] < rows, "rows must be those of the table");
    }
    return job;
}

// Sums of squares stay finite.
void require_sums(const Vector<const double>& weight, const std::optional<Matrix<const double>>& targets) {
    for (std::size_t i = 0; i < weight.shape(0); ++i) {
        require(weight.data()[i] > 0 && weight.data()[i] <= 1e100, "weights must be positive, and at most 1e100");
    }
    for (std::size_t i = 0; targets && i < targets->size(); ++i) {
        require(std::fabs(targets->data()[i]) <= 1e50, "targets must be finite, and at most 1e50");
    }
}

// Linear predictions are those of numbers, from columns of numbers.
void require_slopes(const std::vector<int>& slopes, const Table& table) {
    require(slopes.size() <= most_slopes, "slopes must be at most 4 columns");
    require(slopes.empty() || table.targets, "slopes need targets");
    for (const int j : slopes) {
        require(j >= 0 && j < table.columns && !table.is_category[j], "slopes must be columns of numbers");
    }
}

nb::list levels_of(const Levels& group) {
    nb::list levels;
    for (int level = 0; level < bins_of_column; ++level) {
        if (group.has(level)) levels.append(level);
    }
    return levels;
}

nb::object node_of(const PlanNode& node, const std::vector<Feature>& features) {
    if (node.is_leaf()) return nb::none();
    nb::list terms;
    for (int j = 0; !node.is_group && j < node.sum.terms; ++j) {
        const Feature& feature = features[node.sum.feature[j]];
        nb::object group = nb::none();
        if (feature.is_group) group = levels_of(feature.group);
        terms.append(nb::make_tuple(feature.column, node.sum.weight[j], group));
    }
    if (node.is_group) terms.append(nb::make_tuple(node.column, 1.0f, levels_of(node.group)));
    return nb::make_tuple(node.left, node.right, node.is_group, terms, node.threshold, node.missing_left);
}

nb::tuple answer(const Result& result) {
    nb::list nodes;
    for (const PlanNode& node : result.plan) nodes.append(node_of(node, result.features));
    return nb::make_tuple(nodes, result.worth);
}

Result run(const Table& table, const Job& job, const std::atomic<bool>& stop) {
    const auto& slopes = job.options.slopes;
    Sample sample(table, job.rows.data(), static_cast<std::int64_t>(job.rows.shape(0)), slopes);
    if (!slopes.empty()) return Search<linear>(sample, job.options, stop).run();
    if (sample.outputs == 1) return Search<1>(sample, job.options, stop).run();
    return Search<0>(sample, job.options, stop).run();
}

nb::list search(Matrix<const std::uint8_t> bins, Vector<const std::int32_t> bin_count,
                Vector<const std::uint8_t> is_category, Matrix<const float> values, Matrix<const float> edges,
                Vector<const double> weight, std::optional<Matrix<const double>> targets,
                std::optional<Vector<const std::int32_t>> labels, int outputs, bool is_share, const nb::list& jobs,
                int threads) {
    const std::size_t columns = bins.shape(0), rows = bins.shape(1);
    expect("bin_count", bin_count, {columns});
    expect("is_category", is_category, {columns});
    expect("values", values, {columns, rows});
    expect("edges", edges, {columns, bins_of_column});
    expect("weight", weight, {rows});
    expect("labels", labels, {rows});
    require(targets.has_value() != labels.has_value(), "targets or labels must be given");
    require(outputs >= 1 && outputs <= most_outputs, "outputs must be from 1 to 1048576");
    expect("targets", targets, {rows, static_cast<std::size_t>(outputs)});
    require(columns >= 1, "a table must have columns");
    for (std::size_t j = 0; j < columns; ++j) {
        require(bin_count.data()[j] >= 1 && bin_count.data()[j] <= missing_bin, "bin_count must be from 1 to 255");
    }
    if (labels) {
        for (std::size_t i = 0; i < rows; ++i) {
            require(labels->data()[i] >= 0 && labels->data()[i] < outputs, "labels must be below outputs");
        }
    }
    for (std::size_t j = 0; j < columns; ++j) {
        for (std::size_t i = 0; i < rows; ++i) {
            const std::uint8_t b = bins.data()[j * rows + i];
            require(b < bin_count.data()[j] || b == missing_bin, "bins must be below bin_count");
            require(!std::isinf(values.data()[j * rows + i]), "values must not be infinite");
        }
    }
    require_sums(weight, targets);
    const Table table{static_cast<std::int64_t>(rows), static_cast<int>(columns), outputs, bins.data(),
                      bin_count.data(), is_category.data(), values.data(), edges.data(), weight.data(),
                      targets ? targets->data() : nullptr, labels ? labels->data() : nullptr, is_share};
    std::vector<Job> wanted;
    for (const nb::handle job : jobs) {
        if (!nb::isinstance<nb::dict>(job)) throw nb::type_error("jobs must be dicts");
        wanted.push_back(read_job(nb::cast<nb::dict>(job), table.rows));
        require_slopes(wanted.back().options.slopes, table);
    }
    std::vector<Result> results(wanted.size());
    run_parts(threads, static_cast<std::int64_t>(wanted.size()), [&](std::int64_t p, const std::atomic<bool>& stop) {
        results[p] = run(table, wanted[p], stop);
    });
    nb::list answers;
    for (const Result& result : results) answers.append(answer(result));
    return answers;
}

}  // namespace

void bind(nb::module_& m) {
    m.def("search", &search, "bins"_a.noconvert(), "bin_count"_a.noconvert(), "is_category"_a.noconvert(),
          "values"_a.noconvert(), "edges"_a.noconvert(), "weight"_a.noconvert(), "targets"_a.noconvert().none(),
          "labels"_a.noconvert().none(), "outputs"_a, "is_share"_a, "jobs"_a, "threads"_a);
}

}  // namespace prunus::search
