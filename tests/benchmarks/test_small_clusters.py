"""The benchmark of clusters that short rules explain: units, scores, bars, and the command."""

import numpy as np
import pandas as pd
import pytest

from benchmarks.small_clusters import KMEANS, ONE_COLUMN, ClusterRow, explained_variance, measure, standard_units
from benchmarks.small_lists import CLASSES, VALUES
from benchmarks.small_tables import SmallSplit


def groups() -> SmallSplit:
    """Two classes that are far apart in one column."""
    rng = np.random.default_rng(0)
    y = np.arange(80) % 2
    x = pd.DataFrame({"a": y + rng.normal(size=80) / 100, "b": rng.normal(size=80) / 100})
    return SmallSplit(CLASSES, x, y, np.arange(60), np.arange(60, 80))


def row(name: str, method: str, explained: float, agreement: float | None = None, seed: int = 0) -> ClusterRow:
    task = VALUES if agreement is None else CLASSES
    return ClusterRow(name, task, 100, 3, seed, method, 4, "ok", 1, explained, agreement)


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
