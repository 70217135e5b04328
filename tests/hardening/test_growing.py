"""New levels of a tree: linear models become constants, and leaves are split where their function bends."""

import itertools
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from prunus.hardening.builder import TreeBuilder
from prunus.hardening.growing import (
    FEWEST_ROWS,
    CurvatureData,
    SplitTargets,
    grow_along_models,
    grow_where_curved,
    node_means,
    set_constants,
)
from prunus.targets.links import IDENTITY, SOFTMAX
from tests.hardening.problems import Doubles, Floats, by_thresholds, root, rows

SLOPE = np.array([1.0, -2.0, 0.5])


def start(x: Floats) -> Any:
    return np.zeros(len(x), dtype=np.int64)


def grow(builder: TreeBuilder, x: Floats, values: Any = None, weight: Any = None, *, is_share: bool = False) -> Doubles:
    """Split all leaves along their models; return what the splits were to tell apart."""
    values = np.asarray(builder.models.outputs(x, builder.ends(x)) if values is None else values, dtype=np.float64)
    weight = np.ones(len(x)) if weight is None else weight
    targets = SplitTargets(values, weight, SOFTMAX if is_share else IDENTITY)
    grow_along_models(builder, x, builder.ends(x), targets)
    return targets.values


def stepped(builder: TreeBuilder, x: Floats, values: Doubles) -> float:
    """The mean squared error of the means of the leaves."""
    ends = builder.ends(x)
    set_constants(builder, ends, values, values, np.ones(len(x)), 0.0)
    return float(np.square(builder.models.constant[ends] - values).mean())


@pytest.mark.parametrize("depth", range(4))
def test_a_line_becomes_equal_steps(depth: int) -> None:
    x = np.linspace(-1, 1, 64, dtype=np.float32)[:, None]
    builder = root(depth, d=1, constant=0.5, slope=[2.0])
    values = grow(builder, x)
    assert np.bincount(builder.ends(x))[builder.leaves].tolist() == [64 // 2**depth] * 2**depth
    steps = values.reshape(2**depth, -1)
    assert stepped(builder, x, values) == pytest.approx(np.square(steps - steps.mean(1, keepdims=True)).mean())


@pytest.mark.parametrize(("slope", "share"), [(SLOPE, 0.6), ([[1.0, 0.3, 0.0], [-0.5, 1.0, 0.0]], 0.75)])
def test_more_levels_leave_a_smaller_error(slope: Any, share: float) -> None:
    x, errors = rows(500, 3), []
    for depth in range(5):
        builder = root(depth, d=3, k=np.atleast_2d(slope).shape[0], slope=slope)
        errors.append(stepped(builder, x, grow(builder, x)))
    assert all(after < share * before for before, after in itertools.pairwise(errors))


def test_splits_are_along_the_slope_down_to_the_last_level() -> None:
    x, builder = rows(500, 3), root(2, d=3, slope=SLOPE)
    grow(builder, x)
    assert_allclose(builder.weight, np.tile(SLOPE, (3, 1)))
    grow(builder, x)  # there is no more room
    assert_array_equal(builder.leaves, [3, 4, 5, 6])


def test_two_outputs_are_split_where_they_vary_most() -> None:
    x, builder = rows(300), root(1, k=2, slope=[[10.0, 0.0], [0.0, 1.0]])
    values = grow(builder, x)
    weight = builder.weight[0] / np.linalg.norm(builder.weight[0])
    assert abs(weight[0]) > 0.99
    assert stepped(builder, x, values) < 0.5 * values.var(0).sum()


@pytest.mark.parametrize("k", [2, 3, 5])
def test_classes_are_split_between_two_of_them(k: int) -> None:
    x, errors = rows(400, k), []
    for depth in range(4):
        builder = root(depth, d=k, k=k, slope=4 * np.eye(k))
        shares = SOFTMAX.means(builder.models.outputs(x, start(x)))
        grow(builder, x, shares, is_share=True)
        for node in range(2**depth - 1):
            assert sorted(builder.weight[node])[:: k - 1] == [-4.0, 4.0]  # a difference of two outputs
            assert np.count_nonzero(builder.weight[node]) == 2
        errors.append(stepped(builder, x, shares))
    assert all(after < 0.95 * before for before, after in itertools.pairwise(errors))


def test_leaves_have_enough_rows_and_equal_rows_stay_together() -> None:
    x, builder = rows(37), root(6, slope=[1.0, 2.0])
    grow(builder, x)
    assert np.bincount(builder.ends(x), minlength=127)[builder.leaves].min() >= FEWEST_ROWS
    x, builder = np.repeat(np.array([[0.0], [1.0]], dtype=np.float32), 10, axis=0), root(4, d=1, slope=[3.0])
    grow(builder, x)
    assert_array_equal(np.bincount(builder.ends(x)), [0, 10, 10])


@pytest.mark.parametrize(
    ("n", "slope", "values"), [*((n, [1.0, 2.0], None) for n in (1, 2, 3)), (100, [1e-9, 0.0], np.ones((100, 1)))]
)
def test_few_rows_and_constants_are_not_split(n: int, slope: Any, values: Any) -> None:
    builder = root(3, slope=slope)
    grow(builder, rows(n), values)
    assert_array_equal(builder.leaves, [0])


def test_weights_choose_the_splits_whatever_their_unit() -> None:
    x = np.arange(12, dtype=np.float32)[:, None]
    for scale in (1e-3, 1.0, 1e3):
        builder = root(1, d=1, slope=[1.0])
        grow(builder, x, x, scale * np.where(x[:, 0] < 6, 1.0, 1e-6))
        assert_array_equal(builder.ends(x), [1] * 3 + [2] * 9)
    x = np.concatenate((np.linspace(0, 1, 50), [1e4])).astype(np.float32)[:, None]
    builder = root(2, d=1, slope=[1.0])
    grow(builder, x, x, np.append(np.ones(50), 1e-12))  # the last row does not make the others seem alike
    assert len(builder.leaves) == 4


def test_constants_are_the_weighted_means_of_the_rows() -> None:
    builder = by_thresholds(1, [0.0], [9.0, 9.0, 9.0])
    x = np.array([[-2], [-1], [1], [2]], dtype=np.float32)
    prior, wanted = np.array([[1.0], [3], [5], [7]]), np.array([[0.0], [0], [10], [20]])
    weight = np.array([1.0, 3.0, 1.0, 1.0])
    for strength, expected in ((0.0, [0.0, 15.0]), (np.inf, [2.5, 6.0]), (4.0, [2.5 - 10 / 8, 6 + 18 / 6])):
        set_constants(builder, builder.ends(x), prior, wanted, weight, strength)
        assert_allclose(builder.models.constant[1:, 0], expected)
        assert not builder.models.slope.any()


@pytest.mark.parametrize("is_share", [False, True])
def test_a_leaf_without_rows_has_the_value_of_those_around_it(is_share: bool) -> None:
    builder = root(2, k=2, constant=[1e3, -1e3], slope=[[50.0, 0.0], [0.0, 1.0]])
    builder.split(0, np.array([1.0, 0.0]), 0.0)
    builder.split(2, np.array([1.0, 0.0]), -5.0)
    values = np.array([[1.0, 0.0], [0.5, 0.5], [0.75, 0.25]])
    ends, link = np.array([1, 5, 5]), SOFTMAX if is_share else IDENTITY
    set_constants(builder, ends, values, values, np.ones(3), 0.0, link=link)
    found = np.exp(builder.models.constant) if is_share else builder.models.constant
    assert_allclose(found[[1, 5, 6]], [[1.0, 0.0], [0.625, 0.375], [0.625, 0.375]], atol=2e-6)
    column = np.array([[1.0], [3.0], [8.0]])
    means = node_means(np.array([3, 3, 2]), column, column, np.ones(3), 0.0, 7)
    assert_allclose(means[:, 0], [4, 2, 8, 2, 2, 8, 8])


def curved(
    x: Floats, wanted: Any, *, weight: Any = None, most: int | None = None, owner: Any = None, matrix: Any = None
) -> CurvatureData:
    n, d = x.shape
    wanted = np.asarray(wanted, dtype=np.float64).reshape(n, -1)
    weight = np.ones(n) if weight is None else weight
    offset = np.zeros(d) if matrix is None else np.linspace(1, -1, d)
    return CurvatureData(
        x,
        np.eye(d) if matrix is None else matrix,
        offset,
        wanted,
        weight,
        most,
        np.arange(d) if owner is None else owner,
    )


def grown(given: CurvatureData, depth: int) -> TreeBuilder:
    builder = root(depth, d=given.x.shape[1], k=given.wanted.shape[1])
    grow_where_curved(builder, given)
    return builder


def error(builder: TreeBuilder, given: CurvatureData) -> float:
    found: Doubles = builder.models.outputs(given.x, builder.ends(given.x)) - given.wanted
    return float(np.square(found).mean())


def test_a_function_is_split_across_its_bend() -> None:
    x = rows(2000, 3)
    given = curved(x, np.abs(x @ SLOPE))
    builder = grown(given, 1)
    assert_array_equal(builder.leaves, [1, 2])
    weight = builder.weight[0] / np.linalg.norm(builder.weight[0])
    assert abs(weight @ SLOPE) / np.linalg.norm(SLOPE) > 0.99
    assert error(builder, given) < 0.01 * given.wanted.var()


def test_more_levels_follow_a_bent_function_better() -> None:
    x = rows(2000)
    given = curved(x, np.stack((np.sin(2 * x[:, 0]), x[:, 0] * x[:, 1]), 1))
    builders = [grown(given, depth) for depth in range(6)]
    assert all(builder.leaves.max() < 2 ** (depth + 1) - 1 for depth, builder in enumerate(builders))
    errors = [error(builder, given) for builder in builders[1:]]
    assert all(after < 0.9 * before for before, after in itertools.pairwise(errors))


@pytest.mark.parametrize("n", [1, 2, 5, 500])
def test_lines_and_few_rows_are_not_split(n: int) -> None:
    x = rows(n, 3)
    for wanted in (x @ SLOPE, np.zeros(n), *([np.abs(x[:, 0])] if n < 10 else [])):
        assert_array_equal(grown(curved(x, wanted), 3).leaves, [0])


@pytest.mark.parametrize("most", [1, 2, 5])
def test_splits_where_functions_bend_have_few_columns(most: int) -> None:
    x, owner = rows(1000, 4), np.array([0, 0, 1, 2])
    builder = grown(curved(x, np.abs(x.sum(1)), most=most, owner=owner), 3)
    assert len(builder.leaves) > 1
    for weight in builder.weight[np.flatnonzero(builder.kept[1::2])]:
        assert len(set(owner[weight != 0])) <= most


def test_the_other_coordinates_of_models_are_taken_into_account() -> None:
    x = rows(500)
    given = curved(x, np.abs(x[:, 0]), matrix=np.array([[2.0, 0.0], [0.0, 0.5]]))
    assert error(grown(given, 1), given) < 0.1 * given.wanted.var()


def test_what_the_models_know_already_is_not_split() -> None:
    x, builder = rows(500), root(3)
    builder.split(0, np.array([1.0, 0.0]), 0.0)
    builder.models.slope[1, 0, 0], builder.models.slope[2, 0, 0] = -1.0, 1.0
    grow_where_curved(builder, curved(x, np.abs(x[:, 0])))
    assert_array_equal(builder.leaves, [1, 2])


def test_weights_choose_the_bends() -> None:
    x = rows(2000)
    left = x[:, 0] < 0
    wanted = np.where(left, np.abs(x[:, 0] + 1), np.abs(x[:, 1]))
    for side, column in ((left, 0), (~left, 1)):
        builder = grown(curved(x, wanted, weight=np.where(side, 1.0, 1e-9)), 1)
        assert np.abs(builder.weight[0]).argmax() == column


@pytest.mark.parametrize("width", [1, 2, 3])
def test_copies_of_a_column_get_equal_weights(width: int) -> None:
    x = rows(800, width)  # broke: with few columns, directions that only tell copies apart were tried
    copied = np.concatenate((x, x[:, :1], x[:, :1]), axis=1)
    builder = grown(curved(copied, np.sin(3 * x[:, 0]) + np.random.default_rng(1).normal(size=800)), 5)
    weight = builder.weight[np.flatnonzero(builder.kept[1::2])]
    assert len(weight)
    for copy in (width, width + 1):
        assert_allclose(weight[:, copy], weight[:, 0], rtol=1e-6, atol=1e-6 * np.abs(weight).max())


def test_constant_columns_make_no_trouble() -> None:
    x = np.concatenate((rows(500, 1), np.ones((500, 2), dtype=np.float32)), axis=1)
    given = curved(x, np.abs(x[:, 0]))
    builder = grown(given, 2)
    assert np.isfinite(builder.weight).all()
    assert error(builder, given) < 0.1 * given.wanted.var()
