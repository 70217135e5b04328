"""Importances: how much the outputs of a tree change if the values of a column are shuffled."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from prunus.targets.links import SOFTMAX
from prunus.tree import Layers, Leaves, Splits, Tree
from prunus.tree.importances import MOST_ROWS, importances
from prunus.tree.prediction import row_outputs
from tests.tree.problems import KEPT, LEAVES, SPLITS, D, K, S, T, floats, tree

X = floats(300, D, seed=9)
OWNER = np.array([0, 1, 1])
LIMITS = np.stack([np.full((T, K), -0.5), np.full((T, K), 0.8)])
HARD_MASS = KEPT.astype(np.float32)


def same(outputs: Any) -> Any:
    return outputs


def found(of: Tree, x: Any = X, weight: Any = None, *, compared: Any = same, hard: bool = False) -> Any:
    return importances(of, x, weight, OWNER, 2, compared=compared, hard=hard)


def expected(of: Tree, compared: Any = same, *, hard: bool = False) -> Any:
    """The same from predictions of whole rows."""
    order = np.random.default_rng(0).permutation(len(X))
    other = np.empty_like(order)
    other[order] = np.roll(order, 1)
    before = compared(row_outputs(of, X, hard=hard))
    changes = np.zeros(2)
    for feature in (0, 1):
        shuffled = np.where(feature == OWNER, X[other], X)
        changes[feature] = np.sum((compared(row_outputs(of, shuffled, hard=hard)) - before) ** 2)
    return changes / changes.sum()


@pytest.mark.parametrize("leaves", LEAVES)
@pytest.mark.parametrize("splits", SPLITS)
@pytest.mark.parametrize("routing", ["soft", "by path", "hard"])
def test_they_are_shares_in_the_changes_of_predictions(routing: str, splits: str, leaves: str) -> None:
    made = tree(splits, leaves, **({"routing": "hard", "mass": HARD_MASS} if routing == "hard" else {}))
    by_path = routing == "by path"
    assert_allclose(found(made, hard=by_path), expected(made, hard=by_path), rtol=1e-4)


@pytest.mark.parametrize("changes", [{}, {"routing": "hard", "mass": HARD_MASS}], ids=["soft", "hard"])
def test_limits_hold(changes: Any) -> None:
    made = tree("linear", "slope", limits=LIMITS, **changes)
    assert_allclose(found(made), expected(made), rtol=1e-4)
    assert np.abs(found(made) - found(tree("linear", "slope", **changes))).max() > 0.01


def test_outputs_are_compared_on_the_scale_of_the_target() -> None:
    made = tree("linear", "slope")
    assert_allclose(found(made, compared=SOFTMAX.means), expected(made, SOFTMAX.means), rtol=1e-4)


def test_a_column_without_weights_has_no_importance() -> None:
    weight = floats(S, D, seed=1)
    weight[:, 0] = 0.0
    made = Tree(**(vars(tree()) | {"splits": Splits(Layers((weight,), (np.zeros(S, np.float32),)))}))
    assert_array_equal(found(made), [0.0, 1.0])


def test_columns_with_equal_values_and_weights_are_equally_important() -> None:
    weight, slope = floats(S, D, seed=1), floats(T, K, D, seed=5)
    weight[:, 2], slope[:, :, 2] = weight[:, 1], slope[:, :, 1]
    leaves = Leaves(floats(K), constant=floats(T, K, seed=3), slope=slope, kind="linear")
    splits = Splits(Layers((weight,), (np.zeros(S, np.float32),)))
    made = Tree(**(vars(tree()) | {"splits": splits, "leaves": leaves}))
    shares = importances(made, X[:, [0, 1, 1]], None, np.arange(3), 3, compared=same)
    assert shares[1] == shares[2] > 0


def test_without_splits_and_slopes_all_are_zero() -> None:
    made = tree(mass=np.eye(1, T, dtype=np.float32)[0])
    assert_array_equal(found(made), [0.0, 0.0])
    assert found(tree(leaves="slope", mass=np.eye(1, T, dtype=np.float32)[0])).sum() == pytest.approx(1.0)


def test_rows_count_by_their_weight() -> None:
    """Rows where the second feature varies have nearly all of the weight, or nearly none."""
    x = X.copy()
    x[::2, 0] = 0.0
    x[1::2, 1:] = 0.0
    first, second = (found(tree(), x, np.where(np.arange(300) % 2 == side, 1.0, 1e-4)) for side in (1, 0))
    assert first[0] > 0.9
    assert second[1] > 0.9


def test_many_rows_are_sampled_and_nearly_agree() -> None:
    x = floats(8 * MOST_ROWS, D, seed=11)
    assert_allclose(found(tree(), x), found(tree(), x[::-1].copy()), atol=0.05)
