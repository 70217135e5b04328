"""The interactive page of a forest: one chooses the tree that is shown, and the row stays."""

import json
from copy import copy
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from prunus import ArgminForestClassifier, ArgminForestRegressor, export_html
from prunus.errors import InputValueError
from prunus.render import page_forest
from prunus.render.page_inputs import n_weights
from tests.estimators.problems import as_pandas, labels, mixed, table, values
from tests.render.browser import Page, record

X = pd.DataFrame(table(150, 4), columns=["age", "rooms", "tax", "size"])
EXACT = 1e-6
"""The page has the weights of the trees, in single precision, and adds in double precision."""
HOSTILE = "</script><img src=x onerror=alert(1)>"


def target(task: str) -> npt.NDArray[Any]:
    x = X.to_numpy()
    if task == "pairs":
        return np.column_stack([values(x), 3 - values(x)])
    if task in ("numbers", "log"):
        return 10 * values(x) + 50 if task == "numbers" else np.exp(values(x) / 2)
    return labels(x, ("no", "yes") if task == "logit" else ("red", "green", "blue"))


@cache
def forest(task: str, leaf: str = "constant", routing: str = "soft", n_trees: int = 4) -> Any:
    options: Any = {"leaf": leaf, "routing": routing, "depth": 2, "max_epochs": 10, "random_state": 0}
    options |= {"n_trees": n_trees, "max_features": 3, "n_jobs": 1}
    if task in ("numbers", "pairs", "log"):
        loss = "gamma" if task == "log" else "squared_error"
        return ArgminForestRegressor(loss=loss, **options).fit(X, target(task))
    loss = "binary_cross_entropy" if task == "logit" else "cross_entropy"
    return ArgminForestClassifier(loss=loss, **options).fit(X, target(task))


def predicted(estimator: Any, frame: Any) -> npt.NDArray[np.float64]:
    found = estimator.predict_proba(frame) if estimator.target_.task == "classes" else estimator.predict(frame)
    return np.asarray(found).reshape(len(frame), -1)


def choose(page: Page, number: int) -> None:
    page.click(f'#tree-number option[value="{number}"]')


def of_forest(page: Page) -> list[float]:
    found: list[float] = json.loads(page.one("#forest-prediction").get_attribute("data-outputs"))
    return found


def test_the_chosen_tree_is_shown(page: Page, tmp_path: Path) -> None:
    trees = forest("three").estimators_
    page.open(export_html(forest("three"), tmp_path / "forest.html", X, target("three")))
    assert page.text("h1") == "Classification forest"
    choices = [option.text for option in page.all("#tree-number option")]
    accuracy = [np.mean(tree.predict(X) == target("three")) for tree in trees]
    assert choices == [f"Tree {k + 1} of 4, accuracy {100 * share:.3g}%" for k, share in enumerate(accuracy)]
    for k in (0, 2, 3, 1):
        if k:
            choose(page, k)
        assert page.nodes() == np.flatnonzero(trees[k].tree_.kept).tolist()
        assert page.one("#tree-number").get_attribute("value") == str(k)
        assert len(page.all("header")) == len(page.all("main")) == 1


@pytest.mark.parametrize(
    ("task", "leaf"),
    [("log", "constant"), ("pairs", "linear"), ("three", "mlp")],
)
def test_a_picked_row_stays_and_has_both_predictions(page: Page, tmp_path: Path, task: str, leaf: str) -> None:
    estimator = forest(task, leaf)
    page.open(export_html(estimator, tmp_path / "forest.html", X, target(task)))
    page.pick(41)
    row = page.row()
    expected = predicted(estimator, X)[row]
    for k, tree in enumerate(estimator.estimators_):
        if k:
            choose(page, k)
        assert page.text("#outcome h2") == f"Row {row}"
        assert_allclose(of_forest(page), expected, rtol=EXACT, atol=EXACT)
        assert_allclose(page.outputs(), predicted(tree, X)[row], rtol=1e-5, atol=EXACT)
        assert page.nodes("lit") == np.flatnonzero(tree.decision_path(X.iloc[[row]]).toarray()[0]).tolist()
        assert page.one("#sample").is_displayed()


@pytest.mark.parametrize(
    ("task", "leaf", "routing"),
    [
        ("numbers", "linear", "hard"),
        ("log", "linear", "soft"),
        ("pairs", "additive", "hard"),
        ("logit", "constant", "hard"),
        ("three", "additive", "soft"),
    ],
)
def test_an_entered_row_stays_and_has_both_predictions(
    page: Page, tmp_path: Path, task: str, leaf: str, routing: str
) -> None:
    estimator = forest(task, leaf, routing, 3)
    page.open(export_html(estimator, tmp_path / "forest.html", X, target(task)))
    page.pick(7)
    row = page.row()
    page.enter(1, "0.75")
    entered = X.iloc[[row]].assign(rooms=0.75)
    for k, tree in enumerate(estimator.estimators_):
        if k:
            choose(page, k)
        assert page.text("#outcome h2") == "This row"
        assert page.one("#field-1").get_attribute("value") == "0.75"
        assert_allclose(of_forest(page), predicted(estimator, entered)[0], rtol=EXACT, atol=EXACT)
        assert_allclose(page.outputs(), predicted(tree, entered)[0], rtol=EXACT, atol=EXACT)


def test_levels_dates_and_missing_values_stay(page: Page, tmp_path: Path) -> None:
    frame = as_pandas(mixed(120))
    y = np.nan_to_num(frame["size"].to_numpy()) + (frame["color"] == "red").to_numpy(float)
    estimator = ArgminForestRegressor(n_trees=2, depth=2, leaf="linear", max_epochs=5, random_state=0, n_jobs=1).fit(
        frame, y
    )
    page.open(export_html(estimator, tmp_path / "forest.html", frame))
    for i in (0, 3, 11, 50):
        page.pick(i)
        row = page.row()
        page.enter(list(frame.columns).index("size"), "1.5")
        before = of_forest(page)
        assert_allclose(before, estimator.predict(frame.iloc[[row]].assign(size=1.5)), rtol=EXACT, atol=EXACT)
        choose(page, 1)
        assert_allclose(of_forest(page), before, rtol=1e-12)
        choose(page, 0)


def test_what_one_looks_at_stays(page: Page, tmp_path: Path) -> None:
    page.open(export_html(forest("numbers", "additive"), tmp_path / "forest.html", X, target("numbers")))
    page.click("#theme")
    theme = page.one("html").get_attribute("data-theme")
    page.click("#tab-curves")
    page.one("#search").send_keys("rooms")
    choose(page, 2)
    assert page.one("#curves").is_displayed()
    assert page.one("#search").get_attribute("value") == "rooms"
    assert page.one("html").get_attribute("data-theme") == theme
    page.press("0")
    page.click("#tab-help")
    assert "This is tree 3 of a forest of 4." in page.text("#help")


def test_keys_move_once_after_several_trees(page: Page, tmp_path: Path) -> None:
    page.open(export_html(forest("three"), tmp_path / "forest.html", X))
    for k in (1, 2, 0):
        choose(page, k)
    page.click_node(0)
    before = len(page.nodes())
    page.press(" ")
    assert page.nodes() == [0]
    page.press(" ")
    assert len(page.nodes()) == before


def test_names_do_not_become_markup(page: Page, tmp_path: Path) -> None:
    frame = X.set_axis([HOSTILE, "__proto__", "constructor", "<b>"], axis=1)
    y = np.array([HOSTILE, "constructor", "<i>"])[target("numbers").argsort().argsort() // 50]
    options: Any = {"n_trees": 2, "depth": 2, "leaf": "linear", "max_epochs": 10, "random_state": 0, "n_jobs": 1}
    estimator = ArgminForestClassifier(**options).fit(frame, y)
    page.open(export_html(estimator, tmp_path / "forest.html", frame, y, title=HOSTILE))
    page.pick(5)
    choose(page, 1)
    assert page.text("h1") == HOSTILE
    assert not page.all("img, b, i")
    assert page.text("#forest-prediction") in (HOSTILE, "constructor", "<i>")
    page.click("#entry summary")
    assert {HOSTILE, "__proto__", "constructor", "<b>"} == {label.text for label in page.all("#fields label")}


def test_trees_that_are_left_out_are_told_of(page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_forest, "MAX_TREES", 3)
    page.open(export_html(forest("numbers"), tmp_path / "forest.html", X, target("numbers")))
    assert page.all("#tree-number option")[-1].text == "1 more tree is not in this page"
    assert "the first 3 of which are in this page" in page.text("#subtitle")
    page.pick(5)
    row = page.row()
    assert_allclose(of_forest(page), forest("numbers").predict(X)[[row]], rtol=EXACT)
    page.enter(0, "0.5")
    assert "can compute only 3 of the 4 trees" in page.text("#forest-unknown")
    assert not page.all("#forest-prediction")


def test_trees_that_the_page_cannot_compute_are_among_others(page: Page, tmp_path: Path) -> None:
    estimator = copy(forest("numbers"))
    networks = forest("numbers", "mlp", n_trees=2).estimators_
    estimator.estimators_ = [*forest("numbers", "linear").estimators_[:2], networks[1]]
    page.open(export_html(estimator, tmp_path / "forest.html", X, target("numbers")))
    page.pick(5)
    row = page.row()
    page.enter(0, "0.5")
    before = page.outputs()
    assert "can compute only 2 of the 3 trees" in page.text("#forest-unknown")
    choose(page, 2)
    assert "cannot compute this tree for the values that you entered" in page.text("#waiting")
    choose(page, 0)
    assert_allclose(page.outputs(), before)
    page.pick(5)
    choose(page, 2)
    assert_allclose(of_forest(page), estimator.predict(X)[[row]], rtol=EXACT)
    assert_allclose(page.outputs(), networks[1].predict(X)[[row]], rtol=1e-5)


def test_without_rows_values_are_entered(page: Page, tmp_path: Path) -> None:
    page.open(export_html(forest("three"), tmp_path / "forest.html"))
    page.enter(0, "0.5")
    choose(page, 3)
    outputs = of_forest(page)
    assert sum(outputs) == pytest.approx(1.0)
    assert page.text("#forest-prediction") == forest("three").classes_[int(np.argmax(outputs))]


def test_the_page_fits_a_phone(page: Page, tmp_path: Path) -> None:
    page.resize(390, 844)
    page.open(export_html(forest("three"), tmp_path / "forest.html", X, target("three")))
    assert page.run("return document.documentElement.scrollWidth") <= 390
    assert page.one("#tree-number").is_displayed()
    choose(page, 1)
    assert page.one("#tree-number").rect["width"] <= 390


def test_a_single_tree_has_no_chooser(page: Page, tmp_path: Path) -> None:
    page.open(export_html(forest("three").estimators_[0], tmp_path / "tree.html", X, target("three")))
    page.pick(5)
    assert not page.one("#tree-number").is_displayed()
    assert not page.all("#forest-prediction")
    assert page.text("h1") == "Classification tree"
    assert "PREDICTION\n" in page.text("#outcome")


def test_what_trees_share_is_stored_once(tmp_path: Path) -> None:
    found = record(export_html(forest("three"), tmp_path / "forest.html", X, target("three")))
    shared = {"task", "colors", "outputs", "columns", "features", "orders", "coloring", "lists", "link"}
    assert shared <= set(found)
    assert len(found["trees"]) == found["n_trees"] == 4
    for tree in found["trees"]:
        assert not shared & set(tree)
        assert set(tree["samples"][0]) == {"outputs", "end"}
    assert [feature["importance"] for feature in found["features"]] == pytest.approx(
        forest("three").feature_importances_.tolist(), rel=1e-5
    )


def test_the_page_stays_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(0).normal(size=(500, 60))
    estimator = ArgminForestRegressor(n_trees=40, depth=5, max_epochs=1, pruning_strength=0.0, random_state=0, n_jobs=1)
    path = export_html(estimator.fit(x, x[:, 0]), tmp_path / "forest.html", x, x[:, 0])
    assert len(record(path)["trees"]) == 32
    assert path.stat().st_size < page_forest.MAX_SIZE
    monkeypatch.setattr(page_forest, "MAX_SIZE", 200_000)
    path = export_html(estimator, tmp_path / "forest.html", x, x[:, 0])
    assert 1 <= len(record(path)["trees"]) < 10
    monkeypatch.setattr(page_forest, "MAX_SIZE", 0)
    assert len(record(export_html(estimator, tmp_path / "forest.html", x))["trees"]) == 1


def test_weights_are_limited_for_all_trees_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    estimator = forest("three", "linear")
    total = sum(n_weights(tree.tree_) for tree in estimator.estimators_)
    monkeypatch.setattr(page_forest, "MAX_FOREST_WEIGHTS", total)
    assert all(tree["model"] for tree in record(export_html(estimator, tmp_path / "all.html"))["trees"])
    monkeypatch.setattr(page_forest, "MAX_FOREST_WEIGHTS", total - 1)
    found = record(export_html(estimator, tmp_path / "none.html"))
    assert all({**found, **tree}["model"] is None for tree in found["trees"])


def test_scores_are_those_of_validation_without_true_values(tmp_path: Path) -> None:
    x = table(400, 3)
    options: Any = {"n_trees": 2, "depth": 2, "max_epochs": 3, "random_state": 0, "n_jobs": 1}
    estimator = ArgminForestRegressor(**options).fit(x, values(x))
    found = record(export_html(estimator, tmp_path / "forest.html", x))
    for tree, own in zip(estimator.estimators_, found["trees"], strict=True):
        assert own["score"] == f"validation loss {min(tree.history_['valid_loss']):.4g}"
    assert record(export_html(forest("numbers"), tmp_path / "forest.html"))["trees"][0]["score"] == ""


def test_true_values_of_one_kind_have_no_score(tmp_path: Path) -> None:
    found = record(export_html(forest("numbers"), tmp_path / "forest.html", X, np.full(len(X), 3.0)))
    assert {tree["score"] for tree in found["trees"]} == {""}


def test_true_values_need_rows(tmp_path: Path) -> None:
    with pytest.raises(InputValueError, match="X must be given if y is"):
        export_html(forest("numbers"), tmp_path / "forest.html", y=target("numbers"))
