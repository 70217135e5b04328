"""Summaries of levels keep the frequent ones, with the error that is documented."""

import numpy as np
import pytest

from prunus.data import TableEncoder
from prunus.data.outputs import OutputColumn
from prunus.data.sketch import LevelCounts, QuantileSketch
from prunus.data.statistics import TableStatistics


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


def test_counts_are_too_small_by_no_more_than_documented() -> None:
    counts, exact = zipf_counts(limit=200, seed=0)
    total = sum(exact.values())
    assert len(counts.weights) <= 200
    assert sum(counts.weights.values()) + counts.others == pytest.approx(total)
    for level, weight in exact.items():
        assert -1e-6 <= weight - counts.weights.get(level, 0.0) <= total / 200


def test_merged_counts_are_too_small_by_no_more_than_documented() -> None:
    (one, exact), (other, exact_other) = zipf_counts(200, seed=1), zipf_counts(200, seed=2)
    one.merge(other)
    total = sum(exact.values()) + sum(exact_other.values())
    assert len(one.weights) <= 200
    assert sum(one.weights.values()) + one.others == pytest.approx(total)
    for level in exact | exact_other:
        true = exact.get(level, 0.0) + exact_other.get(level, 0.0)
        assert -1e-6 <= true - one.weights.get(level, 0.0) <= total / 200


def test_levels_that_were_not_kept_are_infrequent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prunus.data.statistics._FEWEST_LEVELS", 50)
    statistics = TableStatistics(TableEncoder(max_categories=2))
    for k in range(10):
        statistics.add([["red"]] * 40 + [["blue"]] * 30 + [[f"rare {k} {i}"] for i in range(30)])
    red, blue, others = sorted(statistics.encoder().columns_, key=lambda column: column.label, reverse=True)
    assert [column.label for column in (red, blue, others)] == ["x0 is infrequent", "x0 = red", "x0 = blue"]
    assert share(red) + share(blue) + share(others) == pytest.approx(1.0)
    assert share(red) == pytest.approx(0.3, abs=2 * 1 / 50 + 1e-9)


def share(column: OutputColumn) -> float:
    return column.scale**2


def test_a_sketch_of_few_numbers_has_all_of_them() -> None:
    sketch = QuantileSketch()
    sketch.add(np.array([3.0, 1.0]), None)
    sketch.add(np.array([2.0], dtype=np.float32), None)
    assert sketch.sample().tolist() == [1.0, 2.0, 3.0]
