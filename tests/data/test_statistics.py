"""An encoder that is learned in chunks is the one that is learned at once, or close to it if the table is long."""

import pickle
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal

from prunus import PrunusError
from prunus.data import TableEncoder
from prunus.data.sketch import LevelCounts, QuantileSketch
from prunus.data.statistics import TableStatistics
from tests.data.file_tables import TABLE

ROWS = 3000
RANK_ERROR = 0.005  # what the documentation promises


def mixed_table(rows: int = ROWS) -> pa.Table:
    rng = np.random.default_rng(rows)
    picks = rng.integers(0, 5, size=rows)
    columns = {name: [values[k] for k in picks] for name, values in TABLE.items()}
    columns["normal"] = np.where(rng.random(rows) < 0.1, np.nan, rng.normal(size=rows)).tolist()
    columns["mostly_zero"] = np.where(rng.random(rows) < 0.6, 0.0, rng.exponential(size=rows)).tolist()
    columns["many"] = [f"level {k}" for k in rng.geometric(0.03, size=rows)]
    return pa.table(columns)


def weights(kind: str) -> npt.NDArray[np.float64] | None:
    weight = np.random.default_rng(1).exponential(size=ROWS)
    return {"none": None, "all": weight, "some zero": np.where(weight < 0.2, 0.0, weight)}[kind]


def chunks(table: Any, weight: Any, size: int) -> Iterator[tuple[Any, Any]]:
    for start, stop in pairwise([*range(0, len(table), size), len(table)]):
        part = table.slice(start, stop - start) if isinstance(table, pa.Table) else table[start:stop]
        yield part, None if weight is None else weight[start:stop]


def statistics(table: Any, weight: Any = None, size: int = 700, **options: Any) -> TableStatistics:
    found = TableStatistics(TableEncoder(**options))
    for part, of_part in chunks(table, weight, size):
        found.add(part, of_part)
    return found


@pytest.mark.parametrize("weighted", ["none", "all", "some zero"])
def test_short_tables_are_learned_exactly(weighted: str) -> None:
    table, weight = mixed_table(), weights(weighted)
    for pieces in (0, 7):
        expected = TableEncoder(pieces=pieces, max_categories=6).fit(table, sample_weight=weight)
        found = statistics(table, weight, pieces=pieces, max_categories=6).encoder()
        assert found.get_state() == expected.get_state()
        assert_array_equal(found.transform(table), expected.transform(table))
    x = np.random.default_rng(0).standard_t(3, size=(70_000, 3))  # memory takes a sample of its quantiles
    x[::7, 1] = np.nan
    assert statistics(x, size=9000, pieces=4).encoder().columns_ == TableEncoder(pieces=4).fit(x).columns_


def test_statistics_of_processes_are_merged() -> None:
    table, weight = mixed_table(), weights("some zero")
    parts = [pickle.loads(pickle.dumps(statistics(*part))) for part in chunks(table, weight, 1000)]
    merged = TableStatistics().merge(parts[0]).merge(parts[1].merge(parts[2]))
    expected = TableEncoder().fit(table, sample_weight=weight)
    for column, other in zip(merged.encoder().columns_, expected.columns_, strict=True):
        assert column.label == other.label
        assert (column.center, column.scale) == pytest.approx((other.center, other.scale), rel=1e-12)


DISTRIBUTIONS: dict[str, Callable[[np.random.Generator, int], npt.NDArray[Any]]] = {
    "normal": lambda rng, n: rng.normal(size=n),
    "heavy": lambda rng, n: rng.standard_cauchy(size=n),
    "skewed": lambda rng, n: rng.lognormal(sigma=3, size=n),
    "sorted": lambda rng, n: np.sort(rng.normal(size=n)),
    "waves": lambda rng, n: np.sin(np.arange(n) / 8192 * 2 * np.pi) + 0.01 * rng.random(n),
    "drifting": lambda rng, n: np.linspace(0, 10, n) ** 3 + rng.normal(size=n),
    "whole": lambda rng, n: rng.poisson(7, size=n).astype(float),
    "mostly_zero": lambda rng, n: np.where(rng.random(n) < 0.6, 0.0, rng.exponential(size=n)),
}
LONG = 1_300_000


def rank_error(value: float, x: npt.NDArray[Any], weight: npt.NDArray[Any], share: float) -> float:
    """How far a share lies outside the shares of rows below and up to a value."""
    below, up_to = weight[x < value].sum() / weight.sum(), weight[x <= value].sum() / weight.sum()
    return float(max(below - share, share - up_to, 0.0))


@pytest.mark.parametrize(
    ("name", "weighted"), [*((name, False) for name in DISTRIBUTIONS), ("skewed", True), ("drifting", True)]
)
def test_quantiles_of_long_columns_are_close(name: str, weighted: bool) -> None:
    rng = np.random.default_rng(3)
    x = DISTRIBUTIONS[name](rng, LONG)
    weight = rng.exponential(size=LONG) * (1 + np.arange(LONG) / LONG) if weighted else np.ones(LONG)
    found = statistics(x[:, None], weight if weighted else None, size=65_536)
    assert len(pickle.dumps(found)) < 2_000_000  # the numbers alone are 10 MB
    numbers = found.columns[0].numbers
    sample = numbers.sketch.sample()
    for share in (0.001, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999):
        assert rank_error(float(np.quantile(sample, share, method="inverted_cdf")), x, weight, share) < RANK_ERROR
    spread = numbers.spread()
    assert rank_error(spread.center, x, weight, 0.5) < RANK_ERROR
    assert spread.mean == pytest.approx(np.average(x, weights=weight), rel=1e-9, abs=1e-9)


def test_scales_and_pieces_of_long_columns_are_close() -> None:
    rng = np.random.default_rng(0)
    x = np.stack([DISTRIBUTIONS[name](rng, 400_000) for name in ("normal", "whole", "mostly_zero")], axis=1)
    x[rng.random(len(x)) < 0.125, 0] = np.nan
    found, expected = statistics(x, size=50_000, pieces=8).encoder().columns_, TableEncoder(pieces=8).fit(x).columns_
    assert [column.kind for column in found] == [column.kind for column in expected]
    for column, other in zip(found, expected, strict=True):
        if not other.piece:
            assert (column.center, column.scale) == pytest.approx((other.center, other.scale), rel=0.02, abs=0.02)
        if other.kind == "missing":
            assert column.scale == other.scale
    present = x[~np.isnan(x[:, 0]), 0]
    edges = [column.center for column in found if column.piece and column.feature == 0]
    assert all(rank_error(edge, present, np.ones(present.size), k / 8) < RANK_ERROR for k, edge in enumerate(edges))


def test_long_tables_are_merged_closely_in_any_order() -> None:
    x = np.random.default_rng(0).normal(size=(600_000, 1))
    parts = [statistics(part, size=40_000) for part in np.array_split(x, 5)]
    one = TableStatistics()
    for part in parts:
        one.merge(part)
    other = pickle.loads(pickle.dumps(parts[4])).merge(parts[3]).merge(parts[0])
    other.merge(pickle.loads(pickle.dumps(parts[2])).merge(parts[1]))
    for merged in (one, other):
        assert merged.rows == merged.columns[0].numbers.rows == len(x)
        assert rank_error(merged.encoder().columns_[0].center, x[:, 0], np.ones(len(x)), 0.5) < RANK_ERROR


def test_a_sketch_of_few_numbers_has_all_of_them() -> None:
    sketch = QuantileSketch()
    sketch.add(np.array([3.0, 1.0]), None)
    sketch.add(np.array([2.0], dtype=np.float32), None)
    assert sketch.sample().tolist() == [1.0, 2.0, 3.0]


def zipf_counts(limit: int, seed: int) -> tuple[LevelCounts, dict[str, float]]:
    rng = np.random.default_rng(seed)
    counts, exact = LevelCounts(limit), dict[str, float]()
    for _ in range(20):
        values, codes = np.unique(rng.zipf(1.3, size=3000) % 50_000, return_inverse=True)
        weight = rng.random(codes.size) + 0.5
        counts.add(codes, [str(value) for value in values], weight)
        for value, amount in zip(values, np.bincount(codes, weights=weight), strict=True):
            exact[str(value)] = exact.get(str(value), 0.0) + float(amount)
    return counts, exact


def test_counts_of_levels_are_too_small_by_no_more_than_documented() -> None:
    (one, exact), (other, exact_other) = zipf_counts(200, seed=1), zipf_counts(200, seed=2)
    both = {level: exact.get(level, 0.0) + exact_other.get(level, 0.0) for level in exact | exact_other}
    for true, merge in ((exact, False), (both, True)):
        if merge:
            one.merge(other)
        total = sum(true.values())
        assert len(one.weights) <= 200
        assert sum(one.weights.values()) + one.others == pytest.approx(total)
        assert all(-1e-6 <= amount - one.weights.get(level, 0.0) <= total / 200 for level, amount in true.items())


def test_levels_that_were_not_kept_are_infrequent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prunus.data.statistics._FEWEST_LEVELS", 50)
    found = TableStatistics(TableEncoder(max_categories=2))
    for k in range(10):
        found.add([["red"]] * 40 + [["blue"]] * 30 + [[f"rare {k} {i}"] for i in range(30)])
    shares = {column.label: column.scale**2 for column in found.encoder().columns_}
    assert set(shares) == {"x0 = blue", "x0 = red", "x0 is infrequent"}
    assert sum(shares.values()) == pytest.approx(1.0)
    assert shares["x0 is infrequent"] == pytest.approx(0.3, abs=2 * 1 / 50 + 1e-9)


@pytest.mark.parametrize(
    ("columns", "kind"),
    [
        ([[None, None], [1, 2]], "number"),
        ([[1, 2], [1.5, None]], "number"),
        ([[True, False], [1, 2.5]], "number"),
        ([[None, None], ["a", "b"]], "category"),
        ([["a", "b"], [None, None], ["a", "c"]], "category"),
        ([[None, None], [pd.Timestamp("2024-01-01"), pd.Timestamp("2024-01-05")]], "datetime"),
        ([[None, True], [False, None]], "boolean"),
        ([[None, None], [None, None]], "number"),
    ],
)
def test_kinds_that_change_are_those_of_the_whole_column(columns: list[list[Any]], kind: str) -> None:
    whole = pd.DataFrame({"x": pd.Series([value for values in columns for value in values], dtype=object)})
    found, merged = TableStatistics(), TableStatistics()
    for values in columns:
        found.add(pd.DataFrame({"x": pd.Series(values)}))
        merged.merge(TableStatistics().add(pd.DataFrame({"x": pd.Series(values)})))
    expected = TableEncoder().fit(whole).columns_
    assert found.encoder().columns_ == merged.encoder().columns_ == expected
    assert expected[0].kind == kind


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ([[1, 2], ["a", "b"]], "'x' must hold one kind of values, got text after number"),
        ([["a", "b"], [1, 2]], "'x' must hold one kind of values, got number after text"),
        ([[1, 2], pd.to_datetime(["2024-01-01", "2024-01-02"])], "got datetime after number"),
        ([[1.0, np.inf]], "Input X contains infinity .* column 'x'"),
    ],
)
def test_columns_that_cannot_be_learned(columns: list[Any], words: str) -> None:
    found = TableStatistics()
    for values in columns[:-1]:
        found.add(pd.DataFrame({"x": values}))
    with pytest.raises(PrunusError, match=words):
        found.add(pd.DataFrame({"x": columns[-1]}))


def test_mistakes() -> None:
    found = TableStatistics().add(pd.DataFrame({"x": [1.0]}))
    with pytest.raises(ValueError, match="same columns"):
        found.add(pd.DataFrame({"z": [1.0]}))
    with pytest.raises(ValueError, match="same columns"):
        found.merge(TableStatistics().add([[1.0, 2.0]]))
    with pytest.raises(ValueError, match="finite"):
        found.add(pd.DataFrame({"x": [1.0]}), [-1.0])
    with pytest.raises(ValueError, match="clip must be"):
        TableStatistics(TableEncoder(clip=-1.0))
    for empty in (TableStatistics(), TableStatistics().add([[1.0]], [0.0])):
        with pytest.raises(ValueError, match="rows of positive weight"):
            empty.encoder()
