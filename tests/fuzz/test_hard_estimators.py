"""Random tables, targets and limits for hard trees, and limits for soft ones: what is promised holds for all."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from prunus import ArgminTreeClassifier, ArgminTreeRegressor, export_text, load, save
from prunus.fitting import recipe as defaults
from prunus.hardening import lessons
from tests.fuzz.test_estimators import EXPECTED, run_cases, table
from tests.tolerances import SAME_ROW

FEW, MANY = 40, 2_000


@pytest.fixture(autouse=True)
def _few_lessons(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lessons, "FEWEST_MADE", 200)
    monkeypatch.setattr(defaults, "FEWEST_STEPS", 10)


def estimator(random: np.random.Generator, n: int) -> tuple[Any, Any]:
    """An estimator with random limits, and targets for it."""
    options: dict[str, Any] = {
        "routing": str(random.choice(["soft", "hard", "hard", "hard"])),
        "max_split_features": [None, 1, 2, 100][random.integers(4)],
        "max_leaf_nodes": [None, None, 1, 2, 5][random.integers(5)],
        "depth": int(random.choice([0, 1, 2, 3, 6])),
        "leaf": str(random.choice(["constant", "additive", "linear"])),
        "pieces": int(random.choice([0, 0, 3])),
        "pruning_strength": float(random.choice([0.0, 0.1, 1.0, 100.0])),
        "batch_size": int(random.choice([1, 7, 64])),
        "early_stopping_rounds": [None, 1][random.integers(2)],
        "max_epochs": 2,
        "random_state": 0,
    }
    if random.random() < 0.5:
        names = [["a"], ["a", "b"], ["x", "y", "\ud800"]][random.integers(3)]
        weight = [None, "balanced"][random.integers(2)]
        return ArgminTreeClassifier(class_weight=weight, **options), random.choice(names, n)
    y = random.normal(size=(n, 2) if random.random() < 0.3 else n) * 10.0 ** random.integers(-300, 150)
    loss = str(random.choice(["squared_error", "squared_error", "absolute_error"]))
    return ArgminTreeRegressor(loss=loss, **options), y if random.random() < 0.8 else np.full(n, 1e17)


def assert_limits(tree: Any) -> None:
    """The tree is as small as its options say."""
    assert tree.get_depth() <= tree.depth
    assert tree.max_leaf_nodes is None or tree.get_n_leaves() <= tree.max_leaf_nodes
    owner = np.array([column.feature for column in tree.encoder_.columns_])
    for weight in tree.tree_.weight:
        assert tree.max_split_features is None or len(set(owner[weight != 0])) <= tree.max_split_features
    assert tree.tree_.routing == tree.routing


def assert_one_path(tree: Any, x: Any) -> None:
    """In a hard tree every row ends in a leaf, and `hard` changes nothing."""
    ends = tree.apply(x)
    assert tree.tree_.is_leaf[ends].all()
    np.testing.assert_array_equal(tree.predict(x), tree.predict(x, hard=True))
    if tree.leaf == "constant":
        predicted = tree.predict(x)
        for end in np.unique(ends):
            assert len(np.unique(predicted[ends == end], axis=0)) == 1


def run_case(seed: int, folder: Path) -> str:
    """One case; the name of the error that ended it, or "done"."""
    random = np.random.default_rng(seed)
    n = int(random.choice([1, 2, 3, 10, 40]))
    try:
        x = table(random, n)
    except (pl.exceptions.PolarsError, UnicodeError):
        return "no table"
    tree, y = estimator(random, n)
    weight = random.choice([0.0, 1.0, 2.0, 1e-3], n, p=[0.1, 0.5, 0.2, 0.2]) if random.random() < 0.3 else None
    try:
        tree.fit(x, y, sample_weight=weight)
    except EXPECTED as error:
        return type(error).__name__
    assert_limits(tree)
    predicted = tree.predict(x)
    assert len(predicted) == n
    assert predicted.dtype.kind != "f" or np.isfinite(predicted).all()
    if tree.routing == "hard":
        assert_one_path(tree, x)
    row = int(random.integers(n))
    alone = tree.predict(x[row : row + 1] if not isinstance(x, pd.DataFrame) else x.iloc[row : row + 1])
    if predicted.dtype.kind == "f":
        atol = SAME_ROW * max(tree.target_.deviation.max(), np.abs(predicted).max())
        np.testing.assert_allclose(alone[0], predicted[row], rtol=SAME_ROW, atol=atol)
    else:
        assert alone[0] == predicted[row]
    assert export_text(tree)
    save(tree, folder / "tree.prunus")
    np.testing.assert_array_equal(load(folder / "tree.prunus").predict(x), predicted)
    return "done"


def test_some_cases(tmp_path: Path) -> None:
    run_cases(run_case, range(FEW), tmp_path)


@pytest.mark.slow
def test_many_cases(tmp_path: Path) -> None:
    run_cases(run_case, range(FEW, MANY), tmp_path)
