"""The last levels of a tree: linear models become constants."""

import itertools
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from prunus.hardening.growing import FEWEST_ROWS, Guide, grow_along_models, node_means, set_constants
from prunus.hardening.sketch import Sketch
from prunus.targets.links import IDENTITY, SOFTMAX
from tests.hardening.problems import Doubles, Floats, by_thresholds, root, rows


def guide(values: Any, weight: Any = None, *, is_share: bool = False) -> Guide:
    values = np.asarray(values, dtype=np.float64)
    weights = np.ones(len(values)) if weight is None else np.asarray(weight, dtype=np.float64)
    return Guide(values, weights, SOFTMAX if is_share else IDENTITY)


def start(x: Floats) -> Any:
    return np.zeros(len(x), dtype=np.int64)


def softmax(outputs: Doubles) -> Doubles:
    shares: Doubles = np.exp(outputs) / np.exp(outputs).sum(1, keepdims=True)
    return shares


def stepped(sketch: Sketch, x: Floats, values: Doubles) -> float:
    """The mean squared error of the means of the leaves."""
    ends = sketch.ends(x)
    set_constants(sketch, ends, values, values, np.ones(len(x)), 0.0)
    return float(np.square(sketch.models.constant[ends] - values).mean())


def grown(depth: int, x: Floats, slope: Any, *, k: int = 1) -> tuple[Sketch, Doubles]:
    """A sketch grown along one linear model, and the outputs of that model."""
    sketch = root(depth, d=x.shape[1], k=k, constant=0.5, slope=slope)
    values = sketch.models.outputs(x, start(x))
    grow_along_models(sketch, x, start(x), guide(values))
    return sketch, values


def test_a_line_becomes_steps() -> None:
    x = np.linspace(-1, 1, 64, dtype=np.float32)[:, None]
    for depth in range(4):
        sketch, values = grown(depth, x, [2.0])
        assert len(sketch.leaves) == 2**depth
        assert np.bincount(sketch.ends(x))[sketch.leaves].tolist() == [64 // 2**depth] * 2**depth
        steps = values.reshape(2**depth, -1)  # equal steps are best
        expected = np.square(steps - steps.mean(1, keepdims=True)).mean()
        assert stepped(sketch, x, values) == pytest.approx(expected)


def test_more_levels_leave_a_smaller_error() -> None:
    x = rows(500, 3)
    errors = [stepped(*_with_rows(depth, x)) for depth in range(6)]
    assert all(after < 0.6 * before for before, after in itertools.pairwise(errors))


def _with_rows(depth: int, x: Floats) -> tuple[Sketch, Floats, Doubles]:
    sketch, values = grown(depth, x, [1.0, -2.0, 0.5])
    return sketch, x, values


def test_splits_are_along_the_slope() -> None:
    x, slope = rows(200, 3), np.array([1.0, -2.0, 0.5])
    sketch, _ = grown(2, x, slope)
    assert_allclose(sketch.weight, np.tile(slope, (3, 1)))


def test_a_tree_is_never_deeper_than_its_sketch() -> None:
    x = rows(500)
    sketch = root(2, slope=[1.0, 1.0])
    sketch.split(0, np.array([1.0, 0.0]), 0.0)
    ends = sketch.ends(x)
    grow_along_models(sketch, x, ends, guide(sketch.models.outputs(x, ends)))
    assert_array_equal(sketch.leaves, [3, 4, 5, 6])
    before = sketch.weight.copy()
    grow_along_models(sketch, x, sketch.ends(x), guide(sketch.models.outputs(x, sketch.ends(x))))
    assert_array_equal(sketch.weight, before)


def test_two_outputs_are_split_where_they_vary_most() -> None:
    x = rows(300)
    sketch, values = grown(1, x, [[10.0, 0.0], [0.0, 1.0]], k=2)
    weight = sketch.weight[0] / np.linalg.norm(sketch.weight[0])
    assert abs(weight[0]) > 0.99
    assert stepped(sketch, x, values) < 0.5 * values.var(0).sum()


def test_more_levels_suit_two_outputs_better() -> None:
    x = rows(300)
    errors = []
    for depth in range(5):
        sketch, values = grown(depth, x, [[1.0, 0.3], [-0.5, 1.0]], k=2)
        errors.append(stepped(sketch, x, values))
    assert all(after < 0.75 * before for before, after in itertools.pairwise(errors))


@pytest.mark.parametrize("k", [2, 3, 5])
def test_classes_are_split_between_two_of_them(k: int) -> None:
    x = rows(400, k)
    errors = []
    for depth in range(4):
        sketch = root(depth, d=k, k=k, slope=4 * np.eye(k))
        shares = softmax(sketch.models.outputs(x, start(x)))
        grow_along_models(sketch, x, start(x), guide(shares, is_share=True))
        for node in range(2**depth - 1):
            assert sorted(sketch.weight[node])[:: k - 1] == [-4.0, 4.0]  # a difference of two outputs
            assert np.count_nonzero(sketch.weight[node]) == 2
        errors.append(stepped(sketch, x, shares))
    assert all(after < 0.95 * before for before, after in itertools.pairwise(errors))


def test_leaves_have_enough_rows() -> None:
    x = rows(37)
    sketch, _ = grown(6, x, [1.0, 2.0])
    assert np.bincount(sketch.ends(x), minlength=127)[sketch.leaves].min() >= FEWEST_ROWS


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_rows_are_not_split(n: int) -> None:
    assert_array_equal(grown(3, rows(n), [1.0, 2.0])[0].leaves, [0])


@pytest.mark.parametrize("slope", [[0.0, 0.0], [1e-9, 0.0]])
def test_a_constant_is_not_split(slope: list[float]) -> None:
    x = rows(100)
    sketch = root(3, slope=[slope])
    varied = guide(np.ones((100, 1)))
    grow_along_models(sketch, x, start(x), varied)
    assert_array_equal(sketch.leaves, [0])


def test_equal_rows_stay_together() -> None:
    x = np.repeat(np.array([[0.0], [1.0]], dtype=np.float32), 10, axis=0)
    sketch, _ = grown(4, x, [3.0])
    assert_array_equal(sketch.leaves, [1, 2])
    assert_array_equal(np.bincount(sketch.ends(x)), [0, 10, 10])


def test_weights_choose_the_splits() -> None:
    x = np.arange(12, dtype=np.float32)[:, None]
    weight = np.where(x[:, 0] < 6, 1.0, 1e-6)
    sketch = root(1, d=1, slope=[1.0])
    grow_along_models(sketch, x, start(x), guide(x, weight))
    assert_array_equal(sketch.ends(x), [1] * 3 + [2] * 9)


@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_the_unit_of_weights_does_not_matter(scale: float) -> None:
    x = rows(100)
    weight = np.random.default_rng(1).random(100)
    found = []
    for w in (weight, scale * weight):
        sketch = root(4, slope=[1.0, 2.0])
        grow_along_models(sketch, x, start(x), guide(sketch.models.outputs(x, start(x)), w))
        found.append(sketch.ends(x))
    assert_array_equal(found[0], found[1])


def test_rows_of_little_weight_do_not_make_others_seem_alike() -> None:
    x = np.concatenate((np.linspace(0, 1, 50), [1e4])).astype(np.float32)[:, None]  # the last row weighs nothing
    weight = np.append(np.ones(50), 1e-12)
    sketch = root(2, d=1, slope=[1.0])
    grow_along_models(sketch, x, start(x), guide(x, weight))
    assert len(sketch.leaves) == 4


def test_constants_are_the_weighted_means_of_the_rows() -> None:
    sketch = by_thresholds(1, [0.0], [9.0, 9.0, 9.0])
    x = np.array([[-2], [-1], [1], [2]], dtype=np.float32)
    prior, wanted = np.array([[1.0], [3], [5], [7]]), np.array([[0.0], [0], [10], [20]])
    weight = np.array([1.0, 3.0, 1.0, 1.0])
    for strength, expected in ((0.0, [0.0, 15.0]), (np.inf, [2.5, 6.0]), (4.0, [2.5 - 10 / 8, 6 + 18 / 6])):
        set_constants(sketch, sketch.ends(x), prior, wanted, weight, strength)
        assert_allclose(sketch.models.constant[1:, 0], expected)
        assert not sketch.models.slope.any()


def test_constants_of_shares_are_their_logarithms() -> None:
    sketch = root(1, k=2)
    sketch.split(0, np.array([1.0, 0.0]), 0.0)
    ends = np.array([1, 1, 2])
    shares = np.array([[0.2, 0.8], [0.4, 0.6], [1.0, 0.0]])
    set_constants(sketch, ends, shares, shares, np.ones(3), 0.0, link=SOFTMAX)
    assert_allclose(np.exp(sketch.models.constant[1]), [0.3, 0.7])
    assert_allclose(np.exp(sketch.models.constant[2]), [1.0, 0.0], atol=2e-6)


@pytest.mark.parametrize("is_share", [False, True])
def test_a_leaf_without_rows_has_the_value_of_those_around_it(is_share: bool) -> None:
    sketch = root(2, k=2, constant=[1e3, -1e3], slope=[[50.0, 0.0], [0.0, 1.0]])
    sketch.split(0, np.array([1.0, 0.0]), 0.0)
    sketch.split(2, np.array([1.0, 0.0]), -5.0)
    values = np.array([[0.25, 0.75], [0.5, 0.5], [0.75, 0.25]])
    link = SOFTMAX if is_share else IDENTITY
    set_constants(sketch, np.array([1, 5, 5]), values, values, np.ones(3), 0.0, link=link)
    found = np.exp(sketch.models.constant) if is_share else sketch.models.constant
    assert_allclose(found[6], found[5])
    assert_allclose(found[5], [0.625, 0.375])


def test_nodes_without_rows_have_the_mean_of_their_parents() -> None:
    values = np.array([[1.0], [3.0], [8.0]])
    means = node_means(np.array([3, 3, 2]), values, values, np.ones(3), 0.0, 7)
    assert_allclose(means[:, 0], [4, 2, 8, 2, 2, 8, 8])
