"""What a record computes for rows, beside its definition written out for one row; no torch module is in sight."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from prunus.tree import Layers, Tree
from prunus.tree.prediction import find_ends, find_leaves, find_routes, hard_outputs, node_outputs, soft_outputs
from tests.tolerances import SAME_ROW
from tests.tree.problems import DEPTH, LEAVES, SPLITS, D, Floats, K, T, floats, tree

X = floats(50, D, seed=9)
EVERY = [(splits, leaves) for splits in SPLITS for leaves in LEAVES]
UNITS: dict[str, Callable[[Any], Any]] = {
    "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "relu": lambda x: np.maximum(x, 0),
}


def through(layers: Layers, x: Any) -> Any:
    for i, (weight, bias) in enumerate(zip(layers.weights, layers.biases, strict=True)):
        x = weight @ (UNITS[layers.unit](x) if i else x) + bias
    return x


def scores(record: Tree, x: Any) -> Any:
    assert record.splits.layers is not None
    found = through(record.splits.layers, x)
    return UNITS["elu"](found) if record.splits.bounded else found


def leaf(record: Tree, x: Floats) -> int:
    t, found = 0, scores(record, x)
    while t < len(found):
        t = 2 * t + (1 if found[t] < 0 else 2)
    return t


def routes(record: Tree, x: Any) -> Any:
    reward, found = np.ones(T), scores(record, x)
    for t in range(len(found)):
        reward[2 * t + 1], reward[2 * t + 2] = min(reward[t], -found[t]), min(reward[t], found[t])
    return np.clip(reward + 0.5, 0, record.mass)


def path(t: int) -> list[int]:
    return [t] if t == 0 else [*path((t - 1) // 2), t]


def outputs(record: Tree, x: Any, z: Any) -> Any:
    leaves = record.leaves
    out = leaves.bias.astype(np.float64)
    for t in range(T):
        if leaves.constant is not None:
            out = out + z[t] * leaves.constant[t]
        if leaves.slope is not None:
            out = out + z[t] * (leaves.slope[t] @ x)
    if leaves.shared is not None:
        out = out + leaves.shared @ x
    return out if leaves.network is None else out + through(leaves.network, np.concatenate((x, z)))


@pytest.mark.parametrize("splits", SPLITS)
def test_leaves_routes_and_ends(splits: str) -> None:
    record = tree(splits)
    assert_array_equal(find_leaves(record.splits, X), [leaf(record, x) for x in X])
    assert_array_equal(find_ends(record, X), [record.ends[leaf(record, x)] for x in X])
    assert_allclose(find_routes(record, X), [routes(record, x) for x in X], atol=1e-5)


@pytest.mark.parametrize(("splits", "leaves"), EVERY)
def test_outputs_along_all_routes(splits: str, leaves: str) -> None:
    record = tree(splits, leaves)
    expected = [outputs(record, x, routes(record, x)) for x in X]
    assert_allclose(soft_outputs(record, X), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("leaves", LEAVES)
def test_outputs_along_one_path(leaves: str) -> None:
    record = tree("linear", leaves)
    ends = find_ends(record, X)
    expected = []
    for x, end in zip(X, ends, strict=True):
        z = np.zeros(T)
        z[path(end)] = record.mass[path(end)]
        expected.append(outputs(record, x, z) + record.correction[end])
    assert_allclose(hard_outputs(record, X, ends), expected, rtol=1e-4, atol=1e-5)


def test_constant_leaves_have_the_outputs_of_their_nodes() -> None:
    record = tree()
    ends = find_ends(record, X)
    assert_array_equal(node_outputs(record)[ends], hard_outputs(record, X, ends))


@pytest.mark.parametrize(
    ("splits", "leaves"),
    [("linear", "slope"), ("linear", "shared"), ("linear", "slope and shared"), ("network", "network")],
)
def test_a_row_alone_has_the_outputs_it_has_among_many(splits: str, leaves: str) -> None:
    record, many = tree(splits, leaves), floats(2100, D, seed=11)
    ends = find_ends(record, many)
    for row in (0, 2047, 2048, 2099):
        alone = many[row : row + 1]
        soft, hard = soft_outputs(record, alone), hard_outputs(record, alone, ends[row : row + 1])
        assert_allclose(soft[0], soft_outputs(record, many)[row], rtol=SAME_ROW, atol=SAME_ROW)
        assert_allclose(hard[0], hard_outputs(record, many, ends)[row], rtol=SAME_ROW, atol=SAME_ROW)


def test_the_shape_of_the_tree_that_one_sees() -> None:
    record = tree()
    assert (record.depth, record.full_depth, record.n_leaves, record.n_nodes, record.n_outputs) == (2, DEPTH, 3, T, K)
    assert np.flatnonzero(record.is_leaf).tolist() == [1, 5, 6]


@pytest.mark.parametrize("splits", SPLITS)
def test_linear_models_of_many_outputs_are_computed_in_parts(monkeypatch: pytest.MonkeyPatch, splits: str) -> None:
    record = tree(splits, "slope")
    ends = find_ends(record, X)
    whole = soft_outputs(record, X), hard_outputs(record, X, ends)
    monkeypatch.setattr("prunus.tree.prediction.MAX_PRODUCTS", 1)
    assert_allclose(soft_outputs(record, X), whole[0], rtol=SAME_ROW, atol=SAME_ROW)
    assert_array_equal(hard_outputs(record, X, ends), whole[1])
