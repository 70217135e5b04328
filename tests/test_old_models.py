"""Models that earlier versions of prunus saved: they load, and predict what they predicted then.

`tests/models/of_0_1_0` holds a small model of each kind, made by version 0.1.0, and in `expected.json` a table with
what each model predicted for its rows.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

import prunus
from prunus.nn import SparseMLPSplit

FOLDER = Path(__file__).parent / "models" / "of_0_1_0"
EXPECTED = json.loads((FOLDER / "expected.json").read_text())
SAME = 1e-6


def rows() -> Any:
    frame = pd.DataFrame(EXPECTED["rows"])
    return frame.assign(since=pd.to_datetime(frame["since"]), color=frame["color"].astype(object))


def test_there_is_a_file_for_each_kind_of_model() -> None:
    assert {path.stem for path in FOLDER.glob("*.prunus")} == set(EXPECTED["models"])
    kinds = {name.partition("_")[0] for name in EXPECTED["models"]}
    assert kinds == {"classifier", "regressor", "clusterer", "tree"}


ESTIMATORS = [name for name in EXPECTED["models"] if name != "tree_model"]


@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_estimator_predicts_what_it_predicted(name: str) -> None:
    model, known = prunus.load(FOLDER / f"{name}.prunus"), EXPECTED["models"][name]
    X = rows()  # noqa: N806
    assert_array_equal(model.apply(X), known["apply"])
    for method in ("predict_proba", "transform"):
        if method in known:
            assert_allclose(getattr(model, method)(X), known[method], rtol=SAME, atol=SAME)
    if name.startswith("regressor"):
        assert_allclose(model.predict(X), known["predict"], rtol=SAME, atol=SAME)
        assert_allclose(model.predict(X, hard=True), known["hard"], rtol=SAME, atol=SAME)
    else:
        assert_array_equal(model.predict(X), known["predict"])
    if name.startswith("classifier"):
        assert_allclose(model.predict_proba(X, hard=True), known["hard"], rtol=SAME, atol=SAME)


@pytest.mark.parametrize("name", [name for name in ESTIMATORS if name.startswith("clusterer")])
def test_a_hierarchy_is_what_it_was(name: str) -> None:
    model, known = prunus.load(FOLDER / f"{name}.prunus"), EXPECTED["models"][name]
    assert_array_equal(model.labels_, known["labels_"])
    assert_allclose(model.linkage_matrix(), known["linkage"])
    assert model.score(rows()) == pytest.approx(known["score"][0], rel=SAME)
    assert len(model.cut(1)) == len(model.labels_)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_estimator_is_saved_in_the_format_of_today_and_shown(name: str, tmp_path: Path) -> None:
    model = prunus.load(FOLDER / f"{name}.prunus")
    prunus.save(model, tmp_path / "again.prunus")
    again = prunus.load(tmp_path / "again.prunus")
    assert_array_equal(again.predict(rows()), model.predict(rows()))
    assert prunus.export_text(again) == prunus.export_text(model)


def test_the_layers_of_a_network_become_options() -> None:
    model = prunus.load(FOLDER / "regressor_elu_mlp.prunus")
    assert (list(model.hidden_layer_sizes), model.dropout) == ([256], 0.25)


@pytest.mark.parametrize("name", ["classifier_sparse_constant", "regressor_sparse_linear"])
def test_a_split_has_the_name_of_today(name: str) -> None:
    model = prunus.load(FOLDER / f"{name}.prunus")
    assert model.split == "sparse_mlp"
    assert isinstance(model.model_.tree.split, SparseMLPSplit)


def test_an_estimator_is_trained_further() -> None:
    model = prunus.load(FOLDER / "regressor_linear_constant.prunus").set_params(warm_start=True)
    assert model.fit(rows(), np.arange(20.0)).n_iter_ == 10


def test_a_torch_model_predicts_what_it_predicted() -> None:
    model, known = prunus.load(FOLDER / "tree_model.prunus"), EXPECTED["models"]["tree_model"]
    with torch.inference_mode():
        assert_allclose(model(torch.tensor(known["x"])).numpy(), known["forward"], rtol=SAME)
