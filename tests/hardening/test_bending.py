"""Leaves with linear models are split where the function that they should follow bends."""

import itertools
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from prunus.hardening.bending import Bent, grow_where_bent
from prunus.hardening.sketch import Sketch
from tests.hardening.problems import Doubles, Floats, root, rows


def bent(x: Floats, wanted: Any, *, weight: Any = None, max_columns: int | None = None, owner: Any = None) -> Bent:
    d = x.shape[1]
    return Bent(
        x,
        np.eye(d),
        np.zeros(d),
        np.asarray(wanted, dtype=np.float64).reshape(len(x), -1),
        np.ones(len(x)) if weight is None else weight,
        max_columns,
        np.arange(d) if owner is None else np.asarray(owner),
    )


def grown(given: Bent, depth: int) -> Sketch:
    sketch = root(depth, d=given.x.shape[1], k=given.wanted.shape[1])
    grow_where_bent(sketch, given)
    return sketch


def error(sketch: Sketch, given: Bent) -> float:
    found: Doubles = sketch.models.outputs(given.x, sketch.ends(given.x)) - given.wanted
    return float(np.square(found).mean())


def test_a_function_is_split_across_its_bend() -> None:
    x = rows(2000, 3)
    direction = np.array([1.0, -2.0, 0.5])
    given = bent(x, np.abs(x @ direction))
    sketch = grown(given, 1)
    assert_array_equal(sketch.leaves, [1, 2])
    weight = sketch.weight[0] / np.linalg.norm(sketch.weight[0])
    assert abs(weight @ direction) / np.linalg.norm(direction) > 0.99
    assert error(sketch, given) < 0.01 * given.wanted.var()


def test_more_levels_leave_a_smaller_error() -> None:
    x = rows(2000)
    given = bent(x, np.stack((np.sin(2 * x[:, 0]), x[:, 0] * x[:, 1]), 1))
    errors = [error(grown(given, depth), given) for depth in range(1, 6)]
    assert all(after < 0.9 * before for before, after in itertools.pairwise(errors))


def test_a_tree_is_never_deeper_than_its_sketch() -> None:
    given = bent(rows(1000), np.sin(5 * rows(1000)[:, 0]))
    for depth in (0, 1, 3):
        assert grown(given, depth).leaves.max() < 2 ** (depth + 1) - 1


def test_a_line_is_not_split() -> None:
    x = rows(500, 3)
    for wanted in (x @ [1.0, 2.0, 3.0], np.zeros(500)):
        assert_array_equal(grown(bent(x, wanted), 3).leaves, [0])


@pytest.mark.parametrize("n", [1, 2, 5])
def test_few_rows_are_not_split(n: int) -> None:
    assert_array_equal(grown(bent(rows(n), np.abs(rows(n)[:, 0])), 3).leaves, [0])


@pytest.mark.parametrize("max_columns", [1, 2, 5])
def test_splits_have_few_columns(max_columns: int) -> None:
    x = rows(1000, 4)
    owner = np.array([0, 0, 1, 2])
    sketch = grown(bent(x, np.abs(x.sum(1)), max_columns=max_columns, owner=owner), 3)
    assert len(sketch.leaves) > 1
    for weight in sketch.weight[np.flatnonzero(sketch.kept[1::2])]:
        assert len(set(owner[weight != 0])) <= max_columns


def test_the_other_coordinates_of_models_are_taken_into_account() -> None:
    x = rows(500)
    plain = bent(x, np.abs(x[:, 0]))
    matrix, offset = np.array([[2.0, 0.0], [0.0, 0.5]]), np.array([1.0, -1.0])
    mapped = Bent(x, matrix, offset, plain.wanted, plain.weight, None, np.arange(2))
    assert error(grown(mapped, 1), mapped) < 0.1 * plain.wanted.var()


def test_what_the_models_know_already_is_not_split() -> None:
    x = rows(500)
    sketch = root(3)
    sketch.split(0, np.array([1.0, 0.0]), 0.0)
    sketch.models.slope[1, 0, 0], sketch.models.slope[2, 0, 0] = -1.0, 1.0
    grow_where_bent(sketch, bent(x, np.abs(x[:, 0])))
    assert_array_equal(sketch.leaves, [1, 2])


def test_weights_choose_the_splits() -> None:
    x = rows(2000)
    left = x[:, 0] < 0
    wanted = np.where(left, np.abs(x[:, 0] + 1), np.abs(x[:, 1]))
    for side, column in ((left, 0), (~left, 1)):
        sketch = grown(bent(x, wanted, weight=np.where(side, 1.0, 1e-9)), 1)
        assert np.abs(sketch.weight[0]).argmax() == column


@pytest.mark.parametrize("width", [1, 2, 3])
def test_copies_of_a_column_get_equal_weights(width: int) -> None:
    x = rows(800, width)  # broke: with few columns, directions that only tell copies apart were tried
    copied = np.concatenate((x, x[:, :1], x[:, :1]), axis=1)
    noise = np.random.default_rng(1).normal(size=800)
    sketch = grown(bent(copied, np.sin(3 * x[:, 0]) + noise), 5)
    weight = sketch.weight[np.flatnonzero(sketch.kept[1::2])]
    assert len(weight)
    for copy in (width, width + 1):
        assert_allclose(weight[:, copy], weight[:, 0], rtol=1e-6, atol=1e-6 * np.abs(weight).max())


def test_constant_columns_make_no_trouble() -> None:
    x = np.concatenate((rows(500, 1), np.ones((500, 2), dtype=np.float32)), axis=1)
    given = bent(x, np.abs(x[:, 0]))
    sketch = grown(given, 2)
    assert np.isfinite(sketch.weight).all()
    assert error(sketch, given) < 0.1 * given.wanted.var()
