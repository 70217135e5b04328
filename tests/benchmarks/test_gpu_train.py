"""The benchmark of training on a GPU, as far as it runs without one: its parts on small tables, its files, its bars."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from benchmarks import gpu_train, gpu_train_parts
from benchmarks.gpu_train_parts import EPOCH_LIMITS, PARTS, WHOLE, Figure, Sizes, table
from benchmarks.harness.machine import this_machine
from benchmarks.harness.records import read_records
from tests.subprocesses import run_without

SMALL = Sizes(
    rows=9000,
    batches=(4096,),
    fit_rows=500,
    predict_rows=1000,
    together_rows=500,
    trees=3,
    hidden=(8,),
    auto_rows=(300, 400),
    repeats=1,
    device="cpu",
)


@pytest.fixture
def _made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with a GPU, and parts that have been measured: the bars of "epochs" are met, that of "fit" is not."""

    def epochs(_sizes: Sizes) -> Iterator[Figure]:
        """Epochs."""
        yield Figure("epochs", "mlp leaves, batch 512", 4.5, "s", note="engine fused", sign="<=", limit=5.0)
        yield Figure("epochs", "linear leaves, batch 4096", 0.5, "s")

    def fit(_sizes: Sizes) -> Iterator[Figure]:
        """Fits."""
        yield Figure("fit", "mlp leaves", 4.5, "s", sign="<=", limit=4.0)

    def predict(_sizes: Sizes) -> Iterator[Figure]:
        """Predictions."""
        yield Figure("predict", "over the CPU", 12.0, "times", sign=">=", limit=10.0)

    monkeypatch.setattr(gpu_train, "PARTS", {"fit": fit, "epochs": epochs, "predict": predict})
    machine = replace(this_machine(), gpu="Some GPU")
    monkeypatch.setattr(gpu_train, "this_machine", lambda: machine)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)


def test_without_a_gpu_it_says_so(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SystemExit, match="2"):
        gpu_train.main([])
    assert "torch sees no NVIDIA GPU on this machine" in capsys.readouterr().err


@pytest.mark.usefixtures("_made_up")
def test_figures_are_stored_and_judged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert gpu_train.main(["--out", str(tmp_path)]) == 1
    stored = read_records(tmp_path / "gpu_train.csv", gpu_train.Stored)
    assert [(row.part, row.value, row.limit, row.gpu) for row in stored] == [
        ("fit", 4.5, 4.0, "Some GPU"),
        ("epochs", 4.5, 5.0, "Some GPU"),
        ("epochs", 0.5, None, "Some GPU"),
        ("predict", 12.0, 10.0, "Some GPU"),
    ]
    told = capsys.readouterr().out
    assert "MISSED  fit, mlp leaves, s: 4.5 (bar <= 4)" in told
    assert "met     predict, over the CPU, times: 12 (bar >= 10)" in told
    text = (tmp_path / "gpu_train.md").read_text()
    assert "| mlp leaves, batch 512 | 4.5 s | <= 5: met | engine fused |" in text
    assert "| mlp leaves | 4.5 s | <= 4: **missed** |" in text
    assert "Measured on: Some GPU; " in text
    assert stored[0].date in text


@pytest.mark.usefixtures("_made_up")
def test_a_part_that_is_measured_again_replaces_its_figures(tmp_path: Path) -> None:
    assert gpu_train.main(["--out", str(tmp_path), "--only", "epochs", "--only", "predict"]) == 0
    assert gpu_train.main(["--out", str(tmp_path), "--only", "predict"]) == 0
    stored = read_records(tmp_path / "gpu_train.csv", gpu_train.Stored)
    assert [row.part for row in stored] == ["epochs", "epochs", "predict"]
    assert "## predict" in (tmp_path / "gpu_train.md").read_text()


@pytest.mark.usefixtures("_made_up")
def test_a_quick_run_stores_and_judges_nothing(tmp_path: Path) -> None:
    assert gpu_train.main(["--out", str(tmp_path), "--quick"]) == 0
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("part", ["fit", "epochs", "predict", "together", "auto"])
def test_each_part_measures(part: str) -> None:
    found = list(PARTS[part](SMALL))
    assert found
    assert {figure.part for figure in found} == {part}
    assert all(figure.value > 0 and figure.unit for figure in found)


def test_an_epoch_by_torch_is_extrapolated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_train_parts, "STEPS_BY_TORCH", 1)
    notes = {figure.what: figure.note for figure in PARTS["epochs"](SMALL)}
    assert notes["constant leaves, batch 4096, engine torch"] == "extrapolated from 1 steps"
    assert notes["constant leaves, batch 4096"].startswith("engine native, loss 0.")


def test_the_bars_of_a_whole_run() -> None:
    assert {batch for _, batch in EPOCH_LIMITS} <= set(WHOLE.batches)
    samples = table(1000, "cpu")
    assert samples.x.shape == (1000, 28)
    assert 0.3 < float(samples.y.mean()) < 0.7


def test_it_needs_no_packages_but_torch_and_scikit_learn() -> None:
    script = "import json, benchmarks.gpu_train; print(json.dumps(len(benchmarks.gpu_train.PARTS)))"
    assert run_without(("pandas", "matplotlib", "optuna", "xgboost", "rich"), script) == len(PARTS)
