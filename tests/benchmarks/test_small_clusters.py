"""The benchmark of clusters that short rules explain: units, scores, bars, and the command."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.small_clusters import (
    KAURI,
    KMEANS,
    METHODS,
    ONE_COLUMN,
    SEEDS,
    ClusterRow,
    bars,
    explained_variance,
    main,
    measure,
    standard_units,
)
from benchmarks.small_lists import CLASSES, LEAVES, VALUES
from benchmarks.small_tables import SmallSplit
from tests.benchmarks.harness.folders import write_tables


def groups() -> SmallSplit:
    """Two classes that are far apart in one column."""
    rng = np.random.default_rng(0)
    y = np.arange(80) % 2
    x = pd.DataFrame({"a": y + rng.normal(size=80) / 100, "b": rng.normal(size=80) / 100})
    return SmallSplit(CLASSES, x, y, np.arange(60), np.arange(60, 80))


def row(name: str, method: str, explained: float, agreement: float | None = None, seed: int = 0) -> ClusterRow:
    task = VALUES if agreement is None else CLASSES
    return ClusterRow(name, task, 100, 3, seed, method, 4, "ok", 1, explained, agreement)


def rows(ours: float, others: float) -> list[ClusterRow]:
    """A table with classes on which both methods are equal, and one without on which they are not."""
    same = [row("a", method, 50.0, 20.0, seed) for method in (ONE_COLUMN, KAURI) for seed in SEEDS]
    scores = ((ONE_COLUMN, ours), (KAURI, others))
    return same + [row("b", method, score, None, seed) for method, score in scores for seed in SEEDS]


def test_units_are_those_of_the_training_rows() -> None:
    x = pd.DataFrame({"a": [1.0, 3.0, np.nan, 5.0], "b": pd.Categorical(["u", "v", "u", "w"]), "c": [7.0] * 4})
    train, test = standard_units(SmallSplit(VALUES, x, np.zeros(4), np.arange(3), np.array([3])))
    np.testing.assert_allclose(train.mean(0), 0.0, atol=1e-12)
    assert train.shape == (3, 3)  # the level "w" and the column "c" do not vary
    assert train[2, 0] == 0.0
    np.testing.assert_allclose(test[0, 0], 3 / np.sqrt(2 / 3))


def test_the_means_of_training_rows_explain_test_rows() -> None:
    train, clusters = np.array([[-1.0], [-3.0], [4.0]]), np.array([0, 0, 2])
    test = np.array([[-2.0], [4.0], [5.0]])
    assert explained_variance(train, clusters, test, np.array([0, 2, 2])) == pytest.approx(1 - 1 / 45)
    assert explained_variance(train, clusters, test, np.array([1, 1, 1])) == 0.0  # no training row is there


@pytest.mark.parametrize("method", [ONE_COLUMN, KMEANS])
def test_far_classes_are_found(method: str) -> None:
    found = measure(method, 2, groups(), 0)
    assert (found["agreement"], found["found"]) == (100.0, 2)
    assert 40 < found["explained"] < 60  # one of two columns


@pytest.mark.parametrize(("ours", "others", "met"), [(60.0, 55.0, True), (55.0, 60.0, False)])
def test_bars_compare_means_over_sets(ours: float, others: float, met: bool) -> None:
    explained, agreement = bars(rows(ours, others))
    assert (explained.met, explained.value, explained.limit) == (met, (50 + ours) / 2, (50 + others) / 2)
    assert (agreement.value, agreement.limit) == (20.0, 20.0)


def test_sizes_are_judged_when_all_their_cells_are_there() -> None:
    (agreement,) = bars(rows(60.0, 55.0)[:-1])  # the set without classes lacks a cell
    assert "Rand" in agreement.claim
    assert bars(rows(60.0, 55.0)[1:]) == []


def test_a_second_run_computes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = write_tables(tmp_path) / "out"
    arguments = [f"--data={tmp_path}", f"--out={out}", "--sets=pets", f"--methods={KMEANS}"]
    assert main(arguments) == 0
    first, cells = (out / "small_clusters.csv").read_text(), len(SEEDS) * len(LEAVES)
    assert len(first.splitlines()) == cells + 1
    assert main(arguments) == 0
    assert (out / "small_clusters.csv").read_text() == first
    assert f"{cells} of {cells} cells are there already" in capsys.readouterr().err
    report = (out / "small_clusters.md").read_text()
    assert "Not judged: cells are missing." in report
    assert all(f"| 4 | {method} |" in report for method in METHODS)
