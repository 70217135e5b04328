"""The corpus: recordings of the same code are equal, and what differs is told file by file."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.harness.corpus import __main__ as corpus
from benchmarks.harness.corpus.differences import differences

NAMES = ("soft-linear-three-classes", "nn-linear-mlp-dropout", "ops-rewards-pruning")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus") / "recorded"
    assert corpus.main(["record", str(folder), "--only", *NAMES]) == 0
    return folder


@pytest.fixture
def changed(recorded: Path, tmp_path: Path) -> Path:
    """A copy of the recording, to be changed."""
    for path in recorded.rglob("*.*"):
        copy = tmp_path / path.relative_to(recorded)
        copy.parent.mkdir(exist_ok=True)
        copy.write_bytes(path.read_bytes())
    return tmp_path


def test_a_second_recording_is_equal(recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert corpus.record(tmp_path, reversed(NAMES)) == 0
    capsys.readouterr()
    assert corpus.main(["compare", str(recorded), str(tmp_path)]) == 0
    assert capsys.readouterr().out == "nothing differs\n"


def test_a_recording_has_predictions_texts_and_files(recorded: Path) -> None:
    names = {path.name for path in (recorded / NAMES[0]).iterdir()}
    assert {"predict.npy", "predict_proba_hard.npy", "apply.npy", "dict.json", "text.txt", "page.json"} < names
    assert "model.head.weight float32" in (recorded / NAMES[0] / "saved_tensors.txt").read_text()
    assert (recorded / NAMES[0] / "sql.txt").read_text().startswith("InputValueError: the tree for export_sql must")
    assert "same" in (recorded / NAMES[0] / "loaded.txt").read_text()


def test_a_changed_array_is_told(recorded: Path, changed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = changed / NAMES[0] / "predict_proba.npy"
    values = np.load(path)
    values[3, 1] += 0.25
    np.save(path, values)
    assert corpus.main(["compare", str(recorded), str(changed)]) == 1
    told = f"{NAMES[0]}/predict_proba.npy: 1 of {values.size} values differ, by at most 0.25\n"
    assert capsys.readouterr().out == told


def test_files_and_entries_that_are_missing_are_told(recorded: Path, changed: Path) -> None:
    (changed / NAMES[0] / "text.txt").unlink()
    for path in (changed / NAMES[1]).iterdir():
        path.unlink()
    (changed / NAMES[1]).rmdir()
    assert list(differences(recorded, changed)) == [
        f"{NAMES[1]}: only in {recorded}",
        f"{NAMES[0]}/text.txt: only in {recorded / NAMES[0]}",
    ]
    assert next(differences(changed, recorded)) == f"{NAMES[1]}: only in {recorded}"
