"""The methods: each learns, each is asked in the same way, and those said to be optimal are."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

from benchmarks.harness.methods import find_method
from benchmarks.harness.methods.axis_tree import depth_of, n_splits
from benchmarks.harness.methods.interface import Task
from benchmarks.harness.methods.split_scores import Evidence, best_split, score_of

Matrix = npt.NDArray[np.float32]
Vector = npt.NDArray[Any]

BOTH: dict[str, dict[str, Any]] = {
    "CART": {"max_depth": 6},
    "XGBoost": {"n_estimators": 40},
    "LightGBM": {"n_estimators": 40},
    "CatBoost": {"n_estimators": 40},
    "EBM": {"max_rounds": 60, "outer_bags": 2, "smoothing_rounds": 0, "learning_rate": 0.1},
    "obliquetree": {"max_depth": 6},
    "Optree": {"depth": 3},
    "Optree-LS": {"depth": 3, "restarts": 2},
    "prunus": {"depth": 3, "max_epochs": 20},
}
CLASSES = BOTH | {"GOSDT": {"max_questions": 12}, "Optree-MIP": {"depth": 1}}
EVERY = [(name, task) for task, names in (("classes", CLASSES), ("values", BOTH)) for name in names]


PACKAGES = {"EBM": "interpret", "GOSDT": "gosdt", "Optree": "pystreed", "obliquetree": "obliquetree"}
"""Not to be had for every Python."""


def method(name: str) -> Any:
    """A method, if its package is there."""
    if name in PACKAGES:
        pytest.importorskip(PACKAGES[name])
    return find_method(name)


def table(n: int, task: Task, seed: int = 0) -> tuple[Matrix, Vector]:
    """Two features that matter, of which one much, and two that do not."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 4)).astype(np.float32)
    if task == "classes":
        return x, (x[:, 0] > 0.3).astype(np.int64) + ((x[:, 0] > 0.3) & (x[:, 1] > 0))
    return x, 10 + 3.0 * (x[:, 0] > 0.3) + 1.0 * (x[:, 1] > 0) + rng.normal(scale=0.1, size=n)


def tiny(seed: int) -> tuple[Matrix, npt.NDArray[np.int64]]:
    """Few rows in which the best split at the root is not the best for the tree."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 4, (24, 2)).astype(np.float32)
    y = ((x[:, 0] > 1) ^ (x[:, 1] > 1)).astype(np.int64)
    y[rng.random(24) < 0.15] = 2
    return x, y


def least(x: Matrix, y: Vector, depth: int, alpha: float) -> float:
    """The least objective of all trees, each of which is tried: errors, or squares of values, and alpha a split."""
    wrong = y != np.bincount(y).argmax() if y.dtype.kind == "i" else (y - y.mean()) ** 2
    best = float(wrong.sum())
    if depth:
        for column in x.T:
            for value in np.unique(column)[:-1]:
                left = column <= value
                sides = (least(x[side], y[side], depth - 1, alpha) for side in (left, ~left))
                best = min(best, alpha + sum(sides))
    return best


def fitted(name: str, task: Task, n: int) -> Any:
    """On rows of the table above; the MIP can only take few."""
    x, y = table(n if name != "Optree-MIP" else 40, task)
    return method(name)(task, random_state=0, **CLASSES[name]).fit(x, y)


@pytest.mark.parametrize(("name", "task"), EVERY)
def test_new_rows_are_predicted_better_than_by_a_constant(name: str, task: Task) -> None:
    model = fitted(name, task, 400)
    x, y = table(200, task, seed=1)
    predicted = model.predict(x)
    assert predicted.shape == (200,)
    assert predicted.dtype == (np.int64 if task == "classes" else np.float64)
    if task == "classes":
        assert (predicted != y).mean() < (0.4 if name == "Optree-MIP" else 0.12)
    else:
        assert ((predicted - y) ** 2).mean() < 0.2 * y.var()
    assert np.array_equal(model.predict(x[::-1])[::-1], predicted)


@pytest.mark.parametrize("name", ["CART", "XGBoost", "LightGBM", "CatBoost", "EBM", "obliquetree", "prunus"])
def test_a_log_loss_says_how_sure_a_method_is(name: str) -> None:
    x, y = table(300, "classes")
    y = 2 * y + 1  # with gaps
    fitted = method(name)("classes", **CLASSES[name]).fit(x, y)
    right, wrong = fitted.log_loss(x, y), fitted.log_loss(x, np.roll(y, 1))
    assert right is not None
    assert wrong is not None
    assert 0 <= right < 0.3 < wrong
    assert fitted.log_loss(x[:1], np.array([100])) == pytest.approx(-np.log(1e-12))  # a class that is not there


def frame(n: int, seed: int = 0) -> Any:
    """Two numbers, one with missing values, and a category with missing values and a level that no row has."""
    rng = np.random.default_rng(seed)
    kinds = pd.Categorical.from_codes(rng.integers(-1, 3, n), categories=["a", "b", "c", "d"])
    x = pd.DataFrame({"size": rng.normal(size=n), "noise": rng.normal(size=n), "kind": kinds})
    x.loc[::7, "size"] = np.nan
    return x


@pytest.mark.parametrize("name", ["CART", "EBM", "obliquetree", "prunus"])
def test_categories_and_missing_values_are_learned_from(name: str) -> None:
    x = frame(400)
    y = 2.0 * (x["kind"] == "a").to_numpy() + 1.0 * x["kind"].isna().to_numpy() + 1.0 * (x["size"] > 0).to_numpy()
    model = method(name)("values", **BOTH[name]).fit(x[:300], y[:300])
    assert ((model.predict(x[300:]) - y[300:]) ** 2).mean() < 0.25 * y.var()
    assert np.isfinite(model.predict(x[:5].assign(kind=pd.Categorical(["d"] * 5, x["kind"].cat.categories)))).all()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("alpha", [0.0, 0.05])
@pytest.mark.parametrize("name", ["Optree", "Optree-MIP", "Optree-LS"])
def test_trees_of_classes_are_as_good_as_the_best_of_all(name: str, alpha: float, seed: int) -> None:
    x, y = tiny(seed)
    model: Any = method(name)("classes", depth=2, alpha=alpha).fit(x, y)
    objective = (model.predict(x) != y).sum() + alpha * len(y) * n_splits(model.tree_)
    assert objective == pytest.approx(least(x, y, 2, alpha * len(y)))
    assert depth_of(model.tree_) <= 2
    if name == "Optree-LS":
        assert model.objective_ == pytest.approx(objective / len(y))
    else:
        assert model.optimal_


@pytest.mark.parametrize("seed", range(3))
def test_gosdt_is_as_good_as_the_best_of_all(seed: int) -> None:
    x, y = tiny(seed)
    model: Any = method("GOSDT")("classes", max_depth=2, regularization=0.05).fit(x, y)
    objective = (model.predict(x) != y).mean() + 0.05 * n_splits(model.tree_)
    assert objective == pytest.approx(least(x, y, 2, 0.05 * len(y)) / len(y))
    assert model.optimal_


@pytest.mark.parametrize("features", [[0, 1, 2], [2, 3]])
@pytest.mark.parametrize("task", ["classes", "values"])
def test_the_best_split_is_that_of_all_splits(task: Task, features: list[int]) -> None:
    rng = np.random.default_rng(0)
    x = np.stack([*rng.integers(0, 9, (2, 60)), *rng.integers(3, 5, (2, 60))], axis=1).astype(np.float32)[:, features]
    y = rng.integers(0, 3, 60) if task == "classes" else rng.normal(size=60)
    left, right = rng.integers(0, 4, 60), rng.integers(0, 3, 60)
    evidence = Evidence.of(x, y, task)
    found = best_split(x, evidence, left, right)
    assert found is not None
    scores = {
        (feature, value + 0.5): score_of(np.where(x[:, feature] <= value, left, 4 + right), evidence)
        for feature in range(len(features))
        for value in np.unique(x[:, feature])[:-1]
    }
    assert found.score == pytest.approx(max(scores.values()))
    assert scores[found.feature, found.threshold] == pytest.approx(found.score)
