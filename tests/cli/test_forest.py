"""Forests on the command line."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import prunus
from prunus.cli import main
from tests.cli.tables import QUICK, SOFT, Shell, csv, frame

MANY = frame(400)
TREES: Any = {"leaf": "constant", "depth": 4, "random_state": 0}
OPTIONS = ("--leaf", "constant", "--depth", 4, "--pieces", 0)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with table.csv."""
    folder = tmp_path_factory.mktemp("forest")
    csv(folder / "table.csv", MANY)
    return folder


def fitted(shell: Shell, folder: Path, target: str, *options: object) -> Path:
    out = folder / f"{target}.prunus"
    other = "kind" if target == "price" else "price"
    data = ("fit", folder / "table.csv", "--target", target, "--drop", other, "--out", out, "--force")
    shell(*data, "--forest", 8, *OPTIONS, *QUICK, *options)
    return out


@pytest.mark.parametrize("target", ["price", "kind"])
def test_the_model_is_the_forest_of_the_estimator(shell: Shell, made: Path, target: str) -> None:
    table = MANY[["size", "color"]]
    kind = prunus.ArgminForestRegressor if target == "price" else prunus.ArgminForestClassifier
    expected = kind(n_trees=8, pieces=0, max_epochs=2, **TREES).fit(table, MANY[target])
    loaded = prunus.load(fitted(shell, made, target))
    assert len(loaded.estimators_) == 8
    np.testing.assert_array_equal(loaded.predict(table), expected.predict(table))


def test_fit_says_what_a_forest_is_and_how_good_it_is(shell: Shell, made: Path) -> None:
    data = ("fit", made / "table.csv", "--target", "kind", "--out", made / "new.prunus", "--force", *OPTIONS, *QUICK)
    record = shell.json(*data, "--forest", 8)
    assert record["model"]["trees"] == 8
    assert record["model"]["kind"] == "ArgminForestClassifier"
    forest = prunus.ArgminForestClassifier(n_trees=8, pieces=0, max_epochs=2, oob_score=True, **TREES)
    forest.fit(MANY[["size", "color", "price"]], MANY["kind"])
    assert record["hold_out"]["rows"] == 400
    assert record["hold_out"]["accuracy"] == pytest.approx(forest.oob_score_)
    assert "8 trees of depth" in shell(*data, "--forest", 8)
    assert "no rows: training used all of them" in shell(*data, "--forest", 2, "--validation-fraction", 0)
    assert "80 rows: accuracy" in shell(*data, "--forest", 2, "--validation-fraction", 0.2)


def test_predict_evaluate_and_export(shell: Shell, made: Path) -> None:
    model, table = fitted(shell, made, "kind"), MANY[["size", "color"]]
    forest = prunus.load(model)
    found = shell.json("predict", model, made / "table.csv", "--proba")
    np.testing.assert_array_equal(found["prediction"], forest.predict(table))
    np.testing.assert_allclose(found["probability large"], forest.predict_proba(table)[:, 0])
    scores = shell.json("evaluate", model, made / "table.csv")
    assert scores["accuracy"] == pytest.approx(forest.score(table, MANY["kind"]))
    assert shell.json("export", model, "--onnx", made / "kind.onnx", "--force")["hard"] is False
    price = fitted(shell, made, "price", "--routing", "hard")
    assert shell.json("export", price, "--onnx", made / "price.onnx", "--force")["hard"] is True
    assert shell.json("evaluate", price, made / "table.csv")["r2"] == pytest.approx(
        prunus.load(price).score(table, MANY["price"])
    )


def test_show_takes_one_tree_of_a_forest(shell: Shell, made: Path) -> None:
    model = fitted(shell, made, "kind")
    trees = prunus.load(model).estimators_
    assert shell("show", model).strip() == prunus.export_text(trees[0]).strip()
    assert shell("show", model, "--tree", 3).strip() == prunus.export_text(trees[3]).strip()
    page = made / "tree.html"
    shell("show", model, "--tree", 1, "--html", page, "--force", "--data", made / "table.csv", "--target", "kind")
    assert page.stat().st_size > 1000
    assert '"n_trees"' not in page.read_text()


def test_show_writes_a_page_of_all_trees(shell: Shell, made: Path) -> None:
    model, page = fitted(shell, made, "kind"), made / "forest.html"
    shell("show", model, "--html", page, "--force", "--data", made / "table.csv", "--target", "kind")
    assert '"n_trees":8' in page.read_text()


def test_predict_gives_the_reasons_of_a_forest(shell: Shell, made: Path) -> None:
    model, table = fitted(shell, made, "price"), MANY[["size", "color"]]
    found = shell.json("predict", model, made / "table.csv", "--explain")
    forest = prunus.load(model)
    assert found["prediction"] == pytest.approx(forest.predict(table).tolist())
    expected = [why.reason_texts(1)[0] for why in prunus.explain_rows(forest, table.iloc[:5])]
    assert found["reason 1"][:5] == expected
    assert "--explain must be left out with --hard" in shell.mistake(
        "predict", model, made / "table.csv", "--explain", "--hard"
    )


def test_an_interrupted_run_is_resumed(shell: Shell, made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_interrupted: Any, record: Any) -> None:
        if record["epoch"] == 12:
            raise KeyboardInterrupt

    out = made / "resumed.prunus"
    command: tuple[object, ...] = ("fit", made / "table.csv", "--target", "price", "--out", out, "--forest", 2)
    command = (*command, *OPTIONS, "--max-epochs", 15, "--quiet")
    with monkeypatch.context() as patch:
        patch.setattr("prunus.fitting.forest._stop_if", interrupt)
        assert main([str(word) for word in command]) == 130
    assert (made / "resumed.prunus.checkpoint.0").exists()
    shell(*command, "--resume")
    assert not list(made.glob("*.checkpoint*"))
    table = MANY.drop(columns=["id", "unit", "price"])
    forest = prunus.ArgminForestRegressor(n_trees=2, pieces=0, max_epochs=15, **TREES).fit(table, MANY["price"])
    np.testing.assert_array_equal(prunus.load(out).predict(table), forest.predict(table))


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (("show", "kind.prunus", "--tree", 8), "--tree must be from 0 to 7 for"),
        (("show", "kind.prunus", "--tree", -1), "--tree must be from 0 to 7 for"),
        (("show", "tree.prunus", "--tree", 0), "--tree must be left out for"),
        (("fit", "table.csv", "--target", "kind", "--out", "x.prunus", "--forest", 0), "--forest must be at least 1"),
        (
            ("fit", "table.csv", "--target", "kind", "--out", "x.prunus", "--forest", 2, "--resume"),
            "there is no interrupted run to resume: x.prunus.checkpoint.0 does not exist",
        ),
    ],
)
def test_mistakes(
    shell: Shell, made: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[object, ...], message: str
) -> None:
    fitted(shell, made, "kind")
    shell("fit", made / "table.csv", "--target", "kind", "--out", made / "tree.prunus", "--force", *OPTIONS, *SOFT)
    monkeypatch.chdir(made)
    assert message in shell.mistake(*command)
