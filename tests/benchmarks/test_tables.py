"""The data of the accuracy benchmark."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.published import PUBLISHED
from benchmarks.tables import read_index, read_split
from tests.benchmarks.tables import write_folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_folder(tmp_path)


def test_the_published_sets_come_first_then_all_with_classes(folder: Path) -> None:
    assert list(read_index(folder)) == [*PUBLISHED, "pets"]


def test_a_split_has_every_row_once(folder: Path) -> None:
    split = read_split(folder, read_index(folder)["airfoil"], seed=1)
    parts = [split.train.x["x0"], split.valid.x["x0"], split.test.x["x0"]]
    assert [len(part) for part in parts] == [60, 20, 20]
    assert len(np.unique(np.concatenate(parts))) == 100


def test_the_seed_decides_the_split(folder: Path) -> None:
    info = read_index(folder)["pets"]
    first, again, other = (read_split(folder, info, seed).test.x for seed in (1, 1, 2))
    assert first.equals(again)
    assert not first.equals(other)


def test_classes_keep_their_shares_and_categories_their_levels(folder: Path) -> None:
    split = read_split(folder, read_index(folder)["pets"], seed=1)
    assert split.n_classes == 3
    assert np.bincount(split.train.y).tolist() == [20, 20, 20]
    assert split.test.x["x2"].cat.categories.tolist() == ["cat", "none"]


def test_targets_are_scaled_by_the_training_part(folder: Path) -> None:
    split = read_split(folder, read_index(folder)["airfoil"], seed=1)
    assert abs(split.train.y.mean()) < 1e-9
    assert abs(split.train.y.std() - 1) < 1e-9
    assert np.corrcoef(split.test.x["x0"], split.test.y)[0, 1] > 1 - 1e-9
    assert abs(split.test.y.mean()) > 1e-9
