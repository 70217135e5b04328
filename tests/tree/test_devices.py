"""A tree on a device computes what it computes on the CPU, there by other products."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from prunus.tree import Splits
from prunus.tree.prediction import (
    DeviceTree,
    device_path_outputs,
    find_ends,
    find_leaves,
    find_routes,
    has_network,
    has_split_network,
    path_outputs,
    row_outputs,
)
from tests.tolerances import ROUNDING
from tests.tree.problems import LEAVES, SPLITS, D, K, T, floats, tree

CPU = torch.device("cpu")
X = floats(50, D, seed=20)
CLOSE: dict[str, Any] = {"rtol": ROUNDING[torch.float32], "atol": ROUNDING[torch.float32]}


@pytest.mark.parametrize("routing", ["soft", "hard"])
@pytest.mark.parametrize("leaves", LEAVES)
@pytest.mark.parametrize("splits", SPLITS)
def test_outputs_leaves_and_routes_are_those_of_the_record(splits: str, leaves: str, routing: str) -> None:
    limits = np.stack((np.full((T, K), -0.8), np.full((T, K), 0.9)))
    record = tree(splits, leaves, routing=routing, limits=limits)
    placed, x = DeviceTree(record, CPU), torch.from_numpy(X)
    for hard in (False, True):
        assert_allclose(placed.outputs(x, hard=hard).numpy(), row_outputs(record, X, hard=hard), **CLOSE)
    assert_array_equal(placed.leaves(x).numpy(), find_leaves(record.splits, X))
    assert_allclose(placed.routes(x).numpy(), find_routes(record, X), **CLOSE)


@pytest.mark.parametrize("leaves", LEAVES)
def test_outputs_along_given_paths(leaves: str) -> None:
    record = tree("linear", leaves)
    ends = find_ends(record, X)
    expected = path_outputs(record.leaves, record.mass, X, ends).numpy()
    assert_allclose(device_path_outputs(record, X, ends, CPU), expected, **CLOSE)


def test_a_users_own_split_is_computed_by_its_function() -> None:
    weight = torch.from_numpy(floats(3, D, seed=1))
    record = replace(tree(leaves="network"), splits=Splits(None, function=lambda x: x @ weight.T))
    found = DeviceTree(record, CPU).outputs(torch.from_numpy(X)).numpy()
    assert_allclose(found, row_outputs(record, X), **CLOSE)


def test_which_trees_have_networks() -> None:
    found = {(s, v): (has_split_network(tree(s, v)), has_network(tree(s, v))) for s in SPLITS for v in LEAVES}
    assert found == {(s, v): (s == "network", "network" in (s, v)) for s in SPLITS for v in LEAVES}


def test_wide_trees_are_computed_for_fewer_rows_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prunus.tree.prediction.CELLS", 2_000 * T)
    assert DeviceTree(tree(), CPU).rows == 2_000
    assert DeviceTree(tree(leaves="slope"), CPU).rows == 1_024
