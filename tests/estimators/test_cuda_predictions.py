"""Predictions on an NVIDIA GPU are those of the CPU."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_blobs, make_classification, make_friedman1
from torch import nn

from prunus import (
    ArgminForestClassifier,
    ArgminForestRegressor,
    ArgminTreeClassifier,
    ArgminTreeClusterer,
    ArgminTreeRegressor,
)
from prunus.data import FileTable
from prunus.errors import InputValueError
from prunus.fitting import devices
from prunus.training import Samples
from prunus.training.gpu import host_samples
from prunus.training.gpu.host_samples import on_device
from prunus.training.samples import SampleStream
from prunus.tree.prediction import device_path_outputs, find_ends, path_outputs
from tests.estimators.problems import made

pytestmark = pytest.mark.gpu

GPU = torch.device("cuda")
KINDS = [(split, leaf) for split in ("linear", "elu", "mlp", "sparse_mlp") for leaf in ("constant", "linear", "mlp")]
KINDS += [("linear", "additive"), ("mlp", "additive")]
CLASSES = make_classification(3000, 8, n_informative=5, n_classes=3, random_state=0)
VALUES = make_friedman1(3000, noise=0.1, random_state=0)
BLOBS = make_blobs(2000, 5, centers=6, random_state=0)[0]
CLOSE: dict[str, Any] = {"rtol": 1e-5, "atol": 1e-5}
FAST: dict[str, Any] = {"max_epochs": 3, "random_state": 0, "device": "cpu"}


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows go through the GPU in several chunks, the last of which is smaller."""
    monkeypatch.setattr("prunus.tree.prediction.CELLS", 1)
    monkeypatch.setattr("prunus.tree.prediction.FEWEST_ROWS", 400)


def network(**options: Any) -> ArgminTreeRegressor:
    return made(ArgminTreeRegressor, FAST | {"leaf": "mlp"} | options)


def assert_same_there(tree: Any, x: Any) -> None:
    assert_allclose(tree.predict(x, device="cuda"), tree.predict(x), **CLOSE)


def nearly_all_close(found: Any, expected: Any) -> None:
    """All but rows on the edge of a split, which rounding may send another way."""
    far = ~np.isclose(found, expected, **CLOSE)
    assert far.reshape(len(far), -1).any(1).mean() < 1e-3


@pytest.mark.parametrize(("split", "leaf"), KINDS)
def test_numbers_and_classes(split: str, leaf: str) -> None:
    tree: Any = ArgminTreeRegressor(split=split, leaf=leaf, depth=4, **FAST).fit(*VALUES)
    for dtype in (np.float64, np.float32):
        x = VALUES[0].astype(dtype)
        assert_same_there(tree, x)
        nearly_all_close(tree.predict(x, hard=True, device="cuda"), tree.predict(x, hard=True))
    tree, x = ArgminTreeClassifier(split=split, leaf=leaf, depth=4, **FAST).fit(*CLASSES), CLASSES[0]
    for method in ("predict_proba", "predict_log_proba", "decision_function"):
        predicted = getattr(tree, method)
        assert_allclose(predicted(x, device="cuda"), predicted(x), rtol=1e-5, atol=2e-5)
    assert np.mean(tree.predict(x, device=GPU) != tree.predict(x)) < 1e-3
    nearly_all_close(tree.predict_proba(x, hard=True, device="cuda"), tree.predict_proba(x, hard=True))


@pytest.mark.parametrize("leaf", ["constant", "linear", "mlp"])
def test_hard_trees_and_forests(leaf: str) -> None:
    if leaf != "mlp":
        tree = ArgminTreeRegressor(leaf=leaf, routing="hard", **FAST).fit(*VALUES)
        nearly_all_close(tree.predict(VALUES[0], device="cuda"), tree.predict(VALUES[0]))
    options = FAST | {"n_trees": 3, "depth": 3, "leaf": leaf, "pieces": 0, "max_features": 0.7}
    numbers = ArgminForestRegressor(**options).fit(*VALUES)
    assert_same_there(numbers, VALUES[0])
    quantiles = [numbers.predict_quantiles(VALUES[0], [0.1, 0.9], device=device) for device in ("cuda", "cpu")]
    assert_allclose(*quantiles, **CLOSE)
    classes = ArgminForestClassifier(**options).fit(*CLASSES)
    for hard in (False, True):
        nearly_all_close(*(classes.predict_proba(CLASSES[0], hard=hard, device=device) for device in ("cuda", "cpu")))


@pytest.mark.parametrize("split", ["linear", "mlp"])
def test_clusters(split: str) -> None:
    tree = ArgminTreeClusterer(depth=4, split=split, random_state=0, device="cpu").fit(BLOBS)
    assert np.mean(tree.predict(BLOBS, device="cuda") != tree.predict(BLOBS)) < 1e-3
    assert_allclose(tree.transform(BLOBS, device="cuda"), tree.transform(BLOBS), **CLOSE)


def test_tables_with_categories_and_missing_values() -> None:
    random = np.random.default_rng(0)
    frame = pd.DataFrame(VALUES[0], columns=[f"x{k}" for k in range(10)])
    frame["color"] = random.choice(["red", "green", "blue"], len(frame))
    frame.loc[::7, ["x2", "color"]] = None
    holes = VALUES[0].copy()
    holes[::7, 2] = np.nan
    for x in (frame, holes):
        assert_same_there(network().fit(x, VALUES[1]), x)


def test_tables_of_other_libraries_and_in_files(tmp_path: Path) -> None:
    pytest.importorskip("polars")
    pa = pytest.importorskip("pyarrow")
    from tests.data.file_tables import write
    from tests.estimators.problems import as_pandas, as_polars, mixed

    columns = mixed(2500)
    frame = as_pandas(columns)
    tree = network().fit(frame, np.arange(2500.0))
    for table in (frame, as_polars(columns), pa.Table.from_pandas(frame, preserve_index=False)):
        assert_allclose(tree.predict(table, device="cuda"), tree.predict(frame), **CLOSE)
    numbers = pd.DataFrame(VALUES[0], columns=[f"x{k}" for k in range(10)])
    write(pa.Table.from_pandas(numbers, preserve_index=False), tmp_path / "rows.parquet", rows=500)
    on_frame = network().fit(numbers, VALUES[1])
    found = on_frame.predict(FileTable(tmp_path / "rows.parquet"), device="cuda")
    assert_allclose(found, on_frame.predict(numbers), **CLOSE)


def test_splits_of_ones_own_and_mistakes() -> None:
    tree = network(split=lambda d, depth: nn.Linear(d, 2**depth - 1)).fit(*VALUES)
    assert_same_there(tree, VALUES[0])
    bad = VALUES[0].copy()
    bad[-1, 0] = np.inf
    with pytest.raises(InputValueError, match="contains infinity"):
        tree.predict(bad, device="cuda")
    with pytest.raises(InputValueError, match="device must be one that torch finds"):
        tree.predict(VALUES[0], device="cuda:99")
    assert_same_there(tree, VALUES[0])  # no harm was done


def test_products_keep_all_their_digits() -> None:
    tree = network(hidden_layer_sizes=(256, 256)).fit(*VALUES)
    expected = tree.predict(VALUES[0])
    torch.set_float32_matmul_precision("high")
    try:
        assert_allclose(tree.predict(VALUES[0], device="cuda"), expected, **CLOSE)
    finally:
        torch.set_float32_matmul_precision("highest")


def test_the_device_of_the_option_and_of_auto(monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[str] = []
    real = devices.prediction_device

    def spy(*given: Any, **sizes: Any) -> torch.device:
        used.append(real(*given, **sizes).type)
        return real(*given, **sizes)

    monkeypatch.setattr("prunus.estimators.tree.prediction_device", spy)
    tree, x = network().fit(*VALUES), VALUES[0]
    tree.predict(x)
    tree.set_params(device="cuda").predict(x)  # few rows
    monkeypatch.setattr(devices, "GPU_PREDICTED_ROWS", 100)
    tree.predict(x)
    tree.set_params(device="auto").predict(x)
    monkeypatch.setattr(devices, "GPU_PREDICTED_PRODUCTS", 1.0)
    tree.predict(x)
    assert used == ["cpu", "cpu", "cuda", "cpu", "cuda"]


def test_outputs_along_given_paths() -> None:
    tree = network().fit(*VALUES)
    x = tree.encoder_.transform(VALUES[0])
    ends = find_ends(tree.tree_, x)
    expected = path_outputs(tree.tree_.leaves, tree.tree_.mass, x, ends).numpy()
    assert_allclose(device_path_outputs(tree.tree_, x, ends, GPU), expected, **CLOSE)


@pytest.mark.parametrize("weighted", [False, True])
def test_samples_come_to_the_gpu_unharmed(weighted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_samples, "CHUNK_BYTES", 20_000)
    monkeypatch.setattr(host_samples, "LOCKED_FROM", 1)
    n = 10_000
    all_rows = Samples(torch.rand(n, 3), torch.arange(n), torch.rand(n) if weighted else None)

    def check(chunks: list[Samples], rows: int = n) -> None:
        y = torch.cat([chunk.y for chunk in chunks]).cpu()
        assert y.sort().values.tolist() == list(range(n)) if rows == n else len(y) == rows
        assert all(chunk.x.device.type == "cuda" for chunk in chunks)
        assert_array_equal(torch.cat([chunk.x for chunk in chunks]).cpu(), all_rows.x[y])
        if all_rows.weight is not None:
            weight = [chunk.weight for chunk in chunks if chunk.weight is not None]
            assert_array_equal(torch.cat(weight).cpu(), all_rows.weight[y])

    moved = on_device(all_rows, GPU)
    assert isinstance(moved, Samples)
    check([moved])
    stream = on_device(all_rows, GPU, free=50_000, seed=1)
    assert isinstance(stream, SampleStream)
    check([stream.sample], len(stream.sample))
    for _ in range(3):
        check(list(stream.epoch(0, 64)))
        check(list(stream.scan()))
    first = next(iter(stream.epoch(1, 64)))  # the rest of the epoch is never asked for
    assert len(first) % 64 == 0


def test_a_fit_to_more_rows_than_the_gpu_can_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = make_friedman1(20_000, noise=0.1, random_state=1)
    options: dict[str, Any] = {"leaf": "linear", "max_epochs": 10, "random_state": 0, "device": "cuda"}
    expected = ArgminTreeRegressor(**options).fit(x, y)
    monkeypatch.setattr(host_samples, "_free_memory", lambda _device: 1_000_000)
    monkeypatch.setattr(host_samples, "CHUNK_BYTES", 100_000)
    streamed = ArgminTreeRegressor(**options).fit(x, y)
    assert streamed.score(x, y) == pytest.approx(expected.score(x, y), abs=0.02)
