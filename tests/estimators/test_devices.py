"""Where fits and predictions are computed, and that rows go through a device unharmed."""

import pickle
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from prunus import ArgminForestClassifier, ArgminForestRegressor, ArgminTreeClusterer
from prunus.data import FileTable
from prunus.data.source import open_source
from prunus.errors import InputValueError
from prunus.estimators.device_rows import through_device
from prunus.estimators.predicting import rows_to_write
from prunus.fitting import devices
from prunus.fitting.devices import choose_device, prediction_device
from prunus.training.gpu.host_samples import on_device
from prunus.tree.prediction import DeviceTree
from tests.data.file_tables import write
from tests.estimators.problems import as_pandas, as_polars, classifier, labels, mixed, regressor, table, values
from tests.tolerances import ROUNDING

CPU, GPU = torch.device("cpu"), torch.device("cuda")
X = table(300, columns=4)
CLOSE: dict[str, Any] = {"rtol": ROUNDING[torch.float32], "atol": ROUNDING[torch.float32]}
FOREST: dict[str, Any] = {"n_trees": 2, "depth": 2, "leaf": "constant", "pieces": 0, "random_state": 0}


@pytest.fixture
def seem(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Makes it seem that the machine has so many NVIDIA GPUs."""

    def change(n: int) -> None:
        monkeypatch.setattr(torch.cuda, "is_available", lambda: n > 0)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: n)

    return change


def test_auto_trains_large_tables_on_a_gpu(seem: Any) -> None:
    seem(1)
    assert devices.GPU_NETWORK_ROWS < devices.GPU_ROWS
    for network, least in ((False, devices.GPU_ROWS), (True, devices.GPU_NETWORK_ROWS)):
        assert choose_device("auto", least - 1, network=network) == CPU
        assert choose_device("auto", least, network=network) == GPU
        assert choose_device("cpu", least, network=network) == CPU
    seem(0)
    assert choose_device("auto", 10**9) == CPU
    for asked in (None, "auto"):
        assert prediction_device("auto", asked, rows=10**9, parameters=10**6, network=True) == CPU


def test_fits_know_whether_they_have_a_network(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def choose(name: Any, rows: int, *, network: bool) -> torch.device:
        seen.append((name, rows, network))
        return CPU

    monkeypatch.setattr("prunus.fitting.prepare.choose_device", choose)
    for options in ({"leaf": "mlp"}, {"split": "mlp"}, {"split": "sparse_mlp"}, {"leaf": "linear"}):
        regressor(**options, max_epochs=1).fit(X, values(X))
    assert seen == [("auto", 300, network) for network in (True, True, True, False)]


@pytest.mark.parametrize(
    ("option", "asked", "rows", "network", "expected"),
    [
        ("auto", None, 10, True, CPU),
        ("auto", None, 10**8, True, GPU),
        ("auto", None, 10**8, False, CPU),
        ("cpu", None, 10**8, True, CPU),
        ("cpu", "auto", 10**8, True, GPU),
        ("cuda", None, 10, True, CPU),
        ("cuda", None, 10**8, False, GPU),
        (GPU, None, 10**8, False, GPU),
        ("cuda:7", None, 10**8, True, CPU),
        ("cuda", "cpu", 10**8, True, CPU),
        ("auto", "cuda", 10, False, GPU),
        ("cuda", "auto", 10, False, CPU),
    ],
)
def test_predictions_are_made_where_the_option_or_the_caller_says(
    option: Any, asked: Any, rows: int, network: bool, expected: torch.device, seem: Any
) -> None:
    seem(1)
    assert prediction_device(option, asked, rows=rows, parameters=1000, network=network) == expected


def test_a_gpu_that_is_asked_for_must_be_there(seem: Any) -> None:
    seem(0)
    tree = classifier().fit(X, labels(X))
    forest = ArgminForestRegressor(max_epochs=1, **FOREST).fit(X, values(X))
    clusters = ArgminTreeClusterer(depth=2, max_epochs=1).fit(X)
    methods: list[Any] = [tree.predict, tree.predict_proba, tree.predict_log_proba, tree.decision_function]
    methods += [forest.predict, partial(forest.predict_quantiles, quantiles=[0.5])]
    for method in (*methods, clusters.predict, clusters.transform):
        for device in ("cuda", GPU):
            with pytest.raises(InputValueError, match=r"device must be one that torch finds, got .*cuda.* 0 NVIDIA"):
                method(X, device=device)
        for wrong in ("card", 3.5, "meta"):
            with pytest.raises(InputValueError, match="device must"):
                method(X, device=wrong)
    with pytest.raises(InputValueError, match="device must be 'auto' or a device of torch"):
        tree.predict(X, device="card")
    assert_array_equal(forest.predict(X, device="cpu"), forest.predict(X))


def test_a_model_that_was_trained_on_a_gpu_predicts_on_a_machine_without_one(seem: Any) -> None:
    seem(0)
    tree = regressor(leaf="mlp").fit(X, values(X))
    expected = tree.predict(X)
    tree.set_params(device="cuda:1")
    assert_array_equal(tree.predict(X), expected)
    assert_array_equal(pickle.loads(pickle.dumps(tree)).predict(X), expected)
    assert clone(tree).device == "cuda:1"


@pytest.mark.parametrize("kind", ["array", "object array", "list", "pandas", "polars", "arrow"])
def test_all_tables_go_through_a_device(kind: str) -> None:
    columns = mixed(60)
    frame = as_pandas(columns)
    given = {
        "array": X,
        "object array": frame.to_numpy(dtype=object),
        "list": frame.to_numpy(dtype=object).tolist(),
        "pandas": frame,
        "polars": as_polars(columns),
        "arrow": pa.Table.from_pandas(frame, preserve_index=False),
    }[kind]
    has_names = kind in ("pandas", "polars", "arrow")
    tree = regressor(leaf="mlp").fit(frame if has_names else given, np.arange(float(open_source(given).n_rows)))
    found = tree._on_device(given, CPU, DeviceTree.outputs, tree.target_.answers)
    assert_allclose(found, tree.predict(given), **CLOSE)
    assert open_source(given).n_rows == len(found)


@pytest.mark.parametrize("n", [0, 1, 5, 6, 7, 18, 40])
def test_chunks_come_back_in_order(n: int) -> None:
    x = np.arange(2 * n, dtype=np.float32).reshape(n, 2)
    seen: list[tuple[int, int]] = []

    def write_rows(rows: slice, out: Any) -> None:
        seen.append((rows.start, rows.stop))
        out[:] = x[rows]

    found = through_device(
        write_rows, x.shape, lambda x: x.sum(1), lambda y: np.stack((y, -y), 1), device=CPU, chunk_rows=6
    )
    assert_array_equal(found, np.stack((x.sum(1), -x.sum(1)), 1))
    assert seen == [(k, min(k + 6, n)) for k in range(0, max(1, n), 6)]


def test_a_mistake_in_a_later_chunk_is_told() -> None:
    tree = regressor(leaf="mlp").fit(X, values(X))
    bad = X.copy()
    bad[250, 1] = np.inf
    writing, shape = rows_to_write(tree, bad)
    with pytest.raises(InputValueError, match="contains infinity"):
        through_device(writing, shape, lambda x: x, lambda y: y, device=CPU, chunk_rows=100)
    with pytest.raises(InputValueError, match="X has 3 features, but ArgminTreeRegressor is expecting 4"):
        tree._on_device(X[:, :3], CPU, DeviceTree.outputs)


def test_files_are_predicted_in_larger_parts_on_a_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pd.DataFrame(X, columns=list("abcd"))
    write(pa.Table.from_pandas(frame, preserve_index=False), tmp_path / "rows.parquet", rows=100)
    tree = regressor(leaf="mlp").fit(frame, values(X))
    sizes: list[int] = []

    def on_gpu(_tree: Any, rows: Any, device: torch.device, _compute: Any, read: Any) -> Any:
        assert device == GPU
        sizes.append(len(rows))
        return read(np.zeros((len(rows), 1)))

    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(type(tree), "_on_device", on_gpu)
    monkeypatch.setattr("prunus.estimators.predicting.ROWS", 7)
    assert_allclose(tree.predict(FileTable(tmp_path / "rows.parquet"), device="cuda"), tree.target_mean_[0])
    assert sum(sizes) == 300
    assert max(sizes) > 7


def test_a_fit_to_more_rows_than_the_device_can_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    x = table(3000, columns=4, seed=2)
    options: dict[str, Any] = {"leaf": "linear", "depth": 3, "max_epochs": 15, "batch_size": 64}
    expected = regressor(**options).fit(x, values(x)).score(x, values(x))
    monkeypatch.setattr("prunus.fitting.train.on_device", partial(on_device, free=100_000))
    assert regressor(**options).fit(x, values(x)).score(x, values(x)) == pytest.approx(expected, abs=0.03)
    assert regressor(**options, routing="hard").fit(x, values(x)).score(x, values(x)) > 0.5
    assert ArgminForestClassifier(max_epochs=5, **FOREST).fit(x, labels(x)).score(x, labels(x)) > 0.8
    assert ArgminTreeClusterer(depth=2, random_state=0).fit(x).labels_.shape == (3000,)


def test_settings_of_torch_do_not_make_products_less_precise() -> None:
    tree = regressor(leaf="mlp", max_epochs=1).fit(X, values(X))
    expected = tree.predict(X)
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    try:
        found = tree.predict(X)
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision(before)
    assert_array_equal(found, expected)
