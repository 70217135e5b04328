"""Tables with more columns than rows, of which few matter."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from prunus import ArgminForestClassifier, ArgminTreeClassifier, ArgminTreeRegressor
from prunus.data import TableEncoder
from prunus.fitting.rows import Rows
from prunus.fitting.screening import noise_columns
from prunus.targets import Numbers

Floats = npt.NDArray[np.float64]
N, D = 400, 450
TELLING = 5


def wide(seed: int, n: int = N, d: int = D) -> tuple[Floats, Floats]:
    """Independent columns, of which the first five matter."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(n, d))
    return x, x[:, :TELLING] @ np.array([1.0, -0.9, 0.8, -0.8, 0.7]) + 0.7 * random.normal(size=n)


def left_out(x: Any, y: Floats, weight: Floats | None = None, *, pieces: int = 0) -> npt.NDArray[np.bool_] | None:
    """The inputs that are left out if numbers are to be predicted."""
    encoder = TableEncoder(pieces=pieces).fit(x)
    train = Rows(encoder.transform(x), y[:, None].astype(np.float32), weight)
    return noise_columns(train, Numbers(one_dimensional=True), encoder)


def used(tree: Any) -> list[int]:
    """The inputs that splits or leaves have weights for."""
    leaves = tree.tree_.leaves
    parts = [tree.tree_.splits.layers.weights[0], leaves.slope, leaves.shared]
    weighted = [(part != 0).reshape(-1, part.shape[-1]).any(0) for part in parts if part is not None]
    found: list[int] = np.flatnonzero(np.any(weighted, axis=0)).tolist()
    return found


@pytest.mark.parametrize(("leaf", "seed"), [("constant", 0), ("linear", 1), ("additive", 2)])
def test_predictions_are_about_as_good_as_if_it_were_known_which_columns_matter(leaf: str, seed: int) -> None:
    x, y = wide(seed, N + 1000)
    label = y > 0
    known = LogisticRegression().fit(x[:N, :TELLING], label[:N]).score(x[N:, :TELLING], label[N:])
    classes = ArgminTreeClassifier(leaf=leaf, random_state=seed).fit(x[:N], label[:N])
    assert classes.score(x[N:], label[N:]) > known - 0.05
    known = LinearRegression().fit(x[:N, :TELLING], y[:N]).score(x[N:, :TELLING], y[N:])
    numbers = ArgminTreeRegressor(leaf=leaf, random_state=seed).fit(x[:N], y[:N])
    assert numbers.score(x[N:], y[N:]) > known - 0.1


@pytest.mark.parametrize("seed", range(2))
def test_thresholds_and_an_interaction_are_found(seed: int) -> None:
    x, _ = wide(seed, 2 * N + 1000, 2 * D)
    n, above = 2 * N, x[:, :TELLING] > 0
    label = above[:, :3].sum(1) + 1.5 * (above[:, 3] & above[:, 4]) > 1.5
    known = LogisticRegression().fit(x[:n, :TELLING], label[:n]).score(x[n:, :TELLING], label[n:])
    assert ArgminTreeClassifier(random_state=seed).fit(x[:n], label[:n]).score(x[n:], label[n:]) > known - 0.03


@pytest.mark.parametrize("options", [{"leaf": "additive"}, {"leaf": "linear"}, {"leaf": "linear", "routing": "hard"}])
def test_columns_that_are_left_out_have_no_weight_also_when_training_continues(options: dict[str, Any]) -> None:
    x, y = wide(0)
    tree = ArgminTreeClassifier(max_epochs=3, random_state=0, **options).fit(x, y > 0)
    before = used(tree)
    assert set(range(TELLING)) <= set(before)
    assert len(before) < 10
    assert np.count_nonzero(tree.feature_importances_) < 10
    if "routing" not in options:
        assert used(tree.partial_fit(x, y > 0)) == before


def test_more_columns_than_can_be_decorrelated_and_forests() -> None:
    x, y = wide(0, 300, 2_100)
    tree = ArgminTreeRegressor(leaf="linear", max_epochs=3, random_state=0).fit(x, y)
    assert len(used(tree)) < 10
    noise = x.copy()
    noise[:, np.setdiff1d(np.arange(2_100), used(tree))] = 4.0
    np.testing.assert_array_equal(tree.predict(noise), tree.predict(x))
    x, y = wide(0)
    forest = ArgminForestClassifier(n_trees=2, max_epochs=3, random_state=0).fit(x, y > 0)
    assert all(len(used(one)) < 10 for one in forest.estimators_)


@pytest.mark.slow
def test_candidates_leave_columns_out() -> None:
    x, y = wide(0, N + 1000)
    tree = ArgminTreeClassifier(leaf="auto", depth=2, max_epochs=40, random_state=0).fit(x[:N], y[:N] > 0)
    assert tree.score(x[N:], y[N:] > 0) > 0.75
    assert min(one["loss"] for one in tree.chosen_["candidates"]) < 0.6


def test_nothing_is_left_out_if_columns_are_few() -> None:
    x, y = wide(0, N, N)
    assert left_out(x, y) is None
    found = left_out(np.hstack((x, x[:, -1:] ** 2)), y)
    assert found is not None
    assert not found[:TELLING].any()
    x, y = wide(0, N, N // 2)
    assert left_out(x, y, pieces=4) is None, "pieces do not count as columns"


def test_nothing_is_left_out_if_many_columns_matter_a_little_or_none() -> None:
    x, _ = wide(0)
    strength = np.random.default_rng(1).normal(size=D)
    strength[:TELLING] = 8.0
    for y in (x @ strength, np.random.default_rng(1).normal(size=N), np.zeros(N)):
        assert left_out(x, y) is None


def test_all_inputs_of_a_column_are_kept() -> None:
    x, y = wide(0)
    level = np.random.default_rng(1).integers(6, size=N)
    frame = pd.DataFrame(x[:, TELLING:]).add_prefix("x").assign(color=pd.Series(level).map(dict(enumerate("abcdef"))))
    found = left_out(frame, np.where(level == 2, 3.0, 0.0) + 0.1 * y)
    assert found is not None
    assert np.count_nonzero(~found[-6:]) == 6


def test_rows_of_little_weight_hardly_matter() -> None:
    x, y = wide(0)
    random = np.random.default_rng(1)
    weight = np.where(random.random(N) < 0.7, 1.0, 1e-6)
    spoiled = np.where(weight == 1.0, y, 1_000 * random.normal(size=N))
    assert left_out(x, spoiled) is None
    found = left_out(x, spoiled, weight)
    assert found is not None
    assert not found[:TELLING].any()
