"""Random estimators and tables: exported code predicts what `predict` does."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from prunus import ArgminTreeClassifier, ArgminTreeClusterer, ArgminTreeRegressor, export_sql
from prunus.fitting import recipe as defaults
from prunus.hardening import distillation
from tests.render.test_code import assert_written

SEEDS = range(20)
NAMES = ('x"; DROP TABLE t; --', "select", "größe", "two\nlines", " ", "it's", "row", "class", "a" * 90, "a" * 91)
LABELS: tuple[list[Any], ...] = (["no", "it's"], ["a", 'b"', "\n--"], [3, 7, 9], [False, True], [0.0, 1.0, 2.0])


def column(random: np.random.Generator, n: int) -> Any:
    """A column of any kind, some of whose values may be missing."""
    kind = random.choice(["number", "far", "whole", "boolean", "category", "many", "date", "duration"])
    values: Any = random.normal(size=n) * 10.0 ** random.integers(-3, 4)
    if kind == "far":
        values = values / abs(values).max() + 1.7e9
    elif kind == "whole":
        values = random.integers(-3, 9, size=n).astype(float)
    elif kind == "boolean":
        values = (random.random(n) < 0.4).astype(object)
    elif kind in ("category", "many"):
        levels = ["red", "o'blue", 'g"', "new\nline", "ß"] if kind == "category" else [f"level {i}" for i in range(60)]
        values = random.choice(levels[: random.integers(2, len(levels) + 1)], size=n).astype(object)
    elif kind in ("date", "duration"):
        seconds = pd.Series(random.integers(0, 10**8, size=n).astype(float))
        values = pd.to_datetime(seconds, unit="s") if kind == "date" else pd.to_timedelta(seconds, unit="s")
    values = pd.Series(values)
    return values.mask(random.random(n) < 0.15) if random.random() < 0.5 else values


def frames(random: np.random.Generator) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A table, and rows of the same columns with unseen levels, missing values and numbers far out."""
    names = random.permutation(np.array(NAMES, dtype=object))[: random.integers(1, 7)]
    table = pd.DataFrame({name: column(random, 250) for name in names})
    train, test = table[:150].reset_index(drop=True), table[150:].reset_index(drop=True)
    for name in names:
        values = test[name].copy()
        if values.dtype == object and values.map(type).eq(str).any():
            values[:20] = "unseen"
        elif values.dtype.kind == "f":
            values[:20] = values[:20] * 1e3
        values[20:30] = None
        test[name] = values
    return train, test


def estimator(random: np.random.Generator, train: pd.DataFrame, seed: int) -> Any:
    options: dict[str, Any] = {
        "routing": str(random.choice(["soft", "hard", "hard"])),
        "max_split_features": [None, 1, 2][random.integers(3)],
        "depth": int(random.choice([0, 1, 2, 3])),
        "pieces": int(random.choice([0, 0, 3])),
        "pruning_strength": float(random.choice([0.0, 1.0, 30.0])),
        "max_epochs": 3,
        "random_state": 0,
    }
    leaf = str(random.choice(["constant", "additive", "linear"]))
    signal = random.normal(size=len(train)) + np.arange(len(train)) / 100
    if seed % 4 == 0:
        known = ArgminTreeClusterer().get_params()
        return ArgminTreeClusterer(**{name: value for name, value in options.items() if name in known}).fit(train)
    if seed % 4 == 1:
        losses = ["squared_error", "poisson", "absolute_error"]
        tree = ArgminTreeRegressor(leaf=leaf, loss=str(random.choice(losses)), **options)
        y = np.abs(signal) * 10
        return tree.fit(train, np.column_stack((y, y**2)) if random.random() < 0.3 else y)
    labels = LABELS[random.integers(len(LABELS))]
    place = (np.argsort(np.argsort(signal)) * len(labels)) // len(signal)
    loss = "binary_cross_entropy" if len(labels) == 2 and random.random() < 0.5 else "cross_entropy"
    return ArgminTreeClassifier(leaf=leaf, loss=loss, **options).fit(train, np.array(labels)[place])


@pytest.fixture(scope="module", params=SEEDS)
def case(request: pytest.FixtureRequest) -> tuple[Any, pd.DataFrame]:
    random = np.random.default_rng(request.param)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(distillation, "FEWEST_SYNTHETIC", 200)
        patch.setattr(defaults, "FEWEST_STEPS", 10)
        train, test = frames(random)
        tree = estimator(random, train, request.param)
    return tree, test


@pytest.mark.parametrize("language", ["python", "sqlite", "duckdb"])
def test_code_of_random_trees_predicts_the_same(case: Any, language: str) -> None:
    tree, test = case
    assert_written(tree, test, language)
    if not hasattr(tree, "classes_"):
        with pytest.raises(ValueError, match="proba must be False unless classes are predicted"):
            export_sql(tree, "t", hard=True, proba=True)
