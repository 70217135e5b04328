"""Tables in files beyond memory that several processes learn from, each from a part of the rows."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch.distributed

from prunus import ArgminTreeClassifier, ArgminTreeRegressor
from prunus.data import FileTable
from prunus.data.source import scan
from prunus.fitting.target_statistics import TargetStatistics
from prunus.training.processes import processes
from tests.data.file_tables import write
from tests.estimators.test_files import COLUMNS, TEST, TRAIN
from tests.training.groups import call_in_group

pytestmark = pytest.mark.skipif(
    not torch.distributed.is_available(), reason="torch was built without torch.distributed"
)


def learn(folder: Path) -> dict[str, Any]:
    """What a process of a group learns from files."""
    options: dict[str, Any] = {"max_epochs": 8, "random_state": 0, "n_jobs": 1}
    numbers = FileTable(folder / "*.parquet", target="y", columns=COLUMNS, memory_limit=5e5)
    classes = FileTable(folder / "*.parquet", target="kind", weight="w", columns=COLUMNS, memory_limit=5e5)
    scanned = scan(numbers, 0.15, TargetStatistics, processes())
    linear = ArgminTreeRegressor(leaf="linear", **options).fit(numbers)
    labels = ArgminTreeClassifier(leaf="linear", class_weight="balanced", **options).fit(classes)
    by_torch = ArgminTreeRegressor(split="mlp", **options | {"max_epochs": 2}).fit(numbers)
    return {
        "rows": scanned.targets.total.tolist(),
        "moments": [scanned.targets.weight, scanned.targets.mean, scanned.targets.squares],
        "columns": [(column.label, column.center, column.scale) for column in scanned.encoder(0).columns_],
        "sample": scanned.sample.n_rows,
        "score": linear.score(TEST[COLUMNS], TEST["y"]),
        "accuracy": labels.score(TEST[COLUMNS], TEST["kind"]),
        "predictions": linear.predict(TEST[COLUMNS][:50]),
        "masses": linear.tree_.mass,
        "losses": by_torch.history_["valid_loss"],
    }


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What one process finds alone, then what each of two finds together."""
    folder = tmp_path_factory.mktemp("files")
    for k, (begin, end) in enumerate([(0, 5_000), (5_000, 12_000)]):
        rows = pa.Table.from_pandas(TRAIN.iloc[begin:end], preserve_index=False)
        write(rows, folder / f"{k}.parquet", rows=1_000 + 300 * k)
    return [learn(folder), *call_in_group(learn, 2, tmp_path_factory.mktemp("group"), folder)]


def test_processes_know_what_all_have_found(found: list[dict[str, Any]]) -> None:
    alone, *together = found
    for own in together:
        assert own["rows"] == alone["rows"]
        assert own["sample"] == alone["sample"]
        np.testing.assert_allclose(own["moments"], alone["moments"], rtol=1e-9)
        for (label, *numbers), (other, *others) in zip(own["columns"], alone["columns"], strict=True):
            assert label == other
            np.testing.assert_allclose(numbers, others, rtol=1e-6)


def test_processes_learn_the_same_tree(found: list[dict[str, Any]]) -> None:
    _, first, second = found
    np.testing.assert_array_equal(first["predictions"], second["predictions"])
    np.testing.assert_array_equal(first["masses"], second["masses"])
    assert first["losses"] == second["losses"]


def test_the_tree_is_as_accurate_as_that_of_one_process(found: list[dict[str, Any]]) -> None:
    alone, together, _ = found
    assert together["score"] > alone["score"] - 0.02 > 0.8
    assert together["accuracy"] > alone["accuracy"] - 0.03 > 0.7
