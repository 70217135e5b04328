"""Random tables, options and targets: results are finite and the same for one row alone, or an error says why not.

In another part something is wrong: an option, the table, the targets, the weights or the validation rows. What comes
out is an error that was raised on purpose, or an estimator with which everything can be done.
"""

import sys
import warnings
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from prunus import ArgminTreeClassifier, ArgminTreeRegressor, PrunusError, export_text, load, save
from tests.estimators.problems import made
from tests.fuzz.attempts import run_mistake
from tests.tolerances import SAME_ROW

FEW, MANY = 100, 3_000
FEW_MISTAKES, MANY_MISTAKES, CHUNK = 150, 3_000, 500
EXPECTED = (PrunusError, ValueError, TypeError)


def column(random: np.random.Generator, n: int) -> list[Any]:
    """A column of one of the kinds that tables have, perhaps with missing values."""
    plain = random.normal(size=n)
    kinds: list[list[Any]] = [
        plain.tolist(),
        plain.round().astype(int).tolist(),
        (plain > 0).tolist(),
        [7.5] * n,
        (plain * 10.0 ** random.integers(-320, 308)).tolist(),
        (np.sign(plain) * np.finfo(np.float64).max).tolist(),
        random.choice(["red", "blue", "", "\ud800", "ä"], n).tolist(),
        [str(i) for i in range(n)],
        [date(2024, 1, 1) + timedelta(days=int(100 * value)) for value in plain],
        [timedelta(seconds=float(value)) for value in plain],
    ]
    values = kinds[random.integers(len(kinds))]
    if random.random() < 0.3:
        values = [None if random.random() < 0.2 else value for value in values]
    return values


def table(random: np.random.Generator, n: int) -> Any:
    """A table in a random container; its rows are sometimes repeated."""
    columns = {f"c{i}": column(random, n) for i in range(random.choice([1, 1, 2, 3, 8]))}
    if n > 2 and random.random() < 0.3:
        rows = random.integers(0, max(1, n // 3), n)
        columns = {name: [values[row] for row in rows] for name, values in columns.items()}
    container = random.integers(4)
    if container == 0:
        return pl.DataFrame(columns, strict=False)
    if container == 1:
        return np.array(list(columns.values()), dtype=object).reshape(len(columns), n).T
    if container == 2:
        return random.normal(size=(n, len(columns))).astype(random.choice(["f4", "f8"]))
    return pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in columns.items()})


def estimator(random: np.random.Generator, n: int) -> tuple[Any, Any]:
    """An estimator with random options, and targets for it."""
    options: dict[str, Any] = {
        "depth": int(random.integers(0, 4)),
        "split": str(random.choice(["linear", "elu", "mlp", "sparse_mlp"])),
        "leaf": str(random.choice(["constant", "additive", "linear", "mlp"])),
        "hidden_layer_sizes": (8,),
        "dropout": float(random.choice([0.0, 0.3])),
        "pieces": int(random.choice([0, 0, 3])),
        "pruning_strength": float(random.choice([0.0, 0.1, 1.0, 100.0])),
        "batch_size": int(random.choice([1, 7, 64])),
        "max_epochs": 2,
        "random_state": 0,
    }
    if random.random() < 0.5:
        labels = random.choice([["a"], ["a", "b"], ["x", "y", "\ud800"]][random.integers(3)], n)
        return made(ArgminTreeClassifier, options), labels
    y = random.normal(size=(n, 2) if random.random() < 0.3 else n) * 10.0 ** random.integers(-300, 150)
    return made(ArgminTreeRegressor, options), y if random.random() < 0.8 else np.full(n, 1e17)


def same(alone: Any, among: Any, tree: Any, largest: float) -> None:
    """A row has the same prediction alone and among others, but for rounding."""
    if among.dtype.kind != "f":
        assert alone == among
        return
    atol = SAME_ROW * max(tree.target_.deviation.max(), largest)
    np.testing.assert_allclose(alone, among, rtol=SAME_ROW, atol=atol)


def run_case(seed: int, folder: Path, new: Any = estimator, check: Any = None) -> str:
    """One case; the name of the error that ended it, or "done"."""
    random = np.random.default_rng(seed)
    n = int(random.choice([1, 2, 3, 10, 40]))
    try:
        x = table(random, n)
    except (pl.exceptions.PolarsError, UnicodeError):
        return "no table"
    tree, y = new(random, n)
    weight = random.choice([0.0, 1.0, 2.0, 1e-3], n, p=[0.1, 0.5, 0.2, 0.2]) if random.random() < 0.3 else None
    try:
        tree.fit(x, y, sample_weight=weight)
    except EXPECTED as error:
        return type(error).__name__
    for hard in (False, True):
        predicted = tree.predict(x, hard=hard)
        assert len(predicted) == n
        assert predicted.dtype.kind != "f" or np.isfinite(predicted).all()
        row = int(random.integers(n))
        alone = tree.predict(x[row : row + 1] if not isinstance(x, pd.DataFrame) else x.iloc[row : row + 1], hard=hard)
        same(alone[0], predicted[row], tree, np.abs(predicted).max() if predicted.dtype.kind == "f" else 0.0)
    if check is not None:
        check(tree, x)
    assert export_text(tree)
    save(tree, folder / "tree.prunus")
    np.testing.assert_array_equal(load(folder / "tree.prunus").predict(x), tree.predict(x))
    return "done"


def run_cases(run_case: Callable[[int, Path], str], seeds: range, folder: Path) -> None:
    found: dict[str, int] = {}
    for seed in seeds:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                result = run_case(seed, folder)
            except Exception as error:
                error.add_note(f"seed {seed}")
                raise
        found[result] = found.get(result, 0) + 1
    assert found["done"] > len(seeds) // 2, found


def test_some_cases(tmp_path: Path) -> None:
    run_cases(run_case, range(FEW), tmp_path)


@pytest.mark.slow
def test_many_cases(tmp_path: Path) -> None:
    run_cases(run_case, range(FEW, MANY), tmp_path)


def run_mistakes(first: int, last: int, folder: Path) -> None:
    found = {"refused": 0, "done": 0}
    for seed in range(first, last):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                found[run_mistake(seed, folder)] += 1
            except Exception as error:
                error.add_note(f"seed {seed}")
                raise
    sys.stdout.write(f"{found}\n")  # shown by pytest -rP
    assert min(found.values()) > (last - first) // 5, found


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, in which files with odd names may be written."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_some_mistakes(here: Path) -> None:
    run_mistakes(0, FEW_MISTAKES, here)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(FEW_MISTAKES, FEW_MISTAKES + MANY_MISTAKES, CHUNK))
def test_many_mistakes(first: int, here: Path) -> None:
    run_mistakes(first, first + CHUNK, here)
