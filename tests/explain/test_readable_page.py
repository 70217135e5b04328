"""The page of a readable tree in a browser: words, thresholds and predictions are those of the estimator."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from prunus import ReadableTreeClassifier, ReadableTreeRegressor, explain_rows, export_html
from tests.estimators.readable_problems import CLARITY, COLOR, SIZE, SPLITS, classes, examples, fitted, stones, tree_of
from tests.estimators.readable_problems import values as values_of
from tests.explain.browser import CHROMIUM, DRIVER, Page, browser

pytestmark = pytest.mark.skipif(CHROMIUM is None or DRIVER is None, reason="needs chromium and chromedriver")

X = stones(200)
ROUNDING = 1e-12
"""The page computes the same sums in double precision; exponentials may differ in their last digit."""


@cache
def trees() -> dict[str, Any]:
    """Trees made by hand with every form of split and leaf, and two that a search has found."""
    noisy = values_of(X) + np.random.default_rng(0).normal(size=len(X))
    found = {
        "searched values": ReadableTreeRegressor(max_leaf_nodes=5, random_state=0).fit(X, noisy),
        "searched classes": ReadableTreeClassifier(max_leaf_nodes=5, random_state=0).fit(X, classes(X, "abc")),
    }
    return examples() | {name: fitted(tree_of(split)) for name, split in SPLITS.items()} | found


@pytest.fixture(scope="module")
def opened() -> Iterator[Page]:
    with browser() as page:
        yield page


@pytest.fixture
def page(opened: Page) -> Iterator[Page]:
    opened.driver.set_window_size(1280, 900)
    opened.errors()
    yield opened
    assert opened.errors() == []


def predicted(tree: Any, frame: pd.DataFrame) -> npt.NDArray[np.float64]:
    found = tree.predict_proba(frame) if hasattr(tree, "classes_") else tree.predict(frame)
    return np.asarray(found, dtype=np.float64).reshape(len(frame), -1)


def steps(page: Page) -> list[str]:
    """The sentences of the path, without that of the leaf."""
    return [step.text for step in page.all("#path [data-step]")][:-1]


@pytest.mark.parametrize("name", sorted([*examples(), *SPLITS, "searched values", "searched classes"]))
def test_picked_rows_have_the_path_and_the_prediction_of_the_estimator(page: Page, tmp_path: Path, name: str) -> None:
    tree = trees()[name]
    page.open(export_html(tree, tmp_path / "tree.html", X))
    expected = predicted(tree, X)
    page.click("#tab-sample")
    for row, why in zip(range(0, 60, 13), explain_rows(tree, X.iloc[0:60:13]), strict=True):
        page.pick(row)
        assert_allclose(page.outputs(), expected[row], rtol=ROUNDING, atol=0)
        assert steps(page) == [step.sentence for step in why.path]
        assert page.text('#path [data-step="end"]') == f"ends in leaf {why.leaf}"


@pytest.mark.parametrize("name", ["formulas", "two classes", "scores", "searched values"])
def test_reasons_and_sums_come_to_the_prediction(page: Page, tmp_path: Path, name: str) -> None:
    tree = trees()[name]
    page.open(export_html(tree, tmp_path / "tree.html", X))
    for row, why in zip(range(0, 60, 13), explain_rows(tree, X.iloc[0:60:13]), strict=True):
        page.pick(row)
        script = "return [...document.querySelectorAll('#reasons .ladder .number')].map((cell) => cell.dataset.amount)"
        first, *added, last = map(float, page.driver.execute_script(script))
        assert first + sum(added) == pytest.approx(last)
        assert last == pytest.approx(max(page.outputs()))
        shown = [float(reason.added) for reason in why.reasons if isinstance(reason.added, float)]
        assert_allclose(added[:6], shown[:6], atol=1e-9)
        formulas = [part.formula for part in why.sums if part.formula]
        assert not formulas or any(formula in page.text("#sum") for formula in formulas)


@pytest.mark.parametrize("name", ["values", "formulas", "three classes", "searched values"])
def test_boxes_and_panels_have_the_printed_words(page: Page, tmp_path: Path, name: str) -> None:
    tree = trees()[name]
    page.open(export_html(tree, tmp_path / "tree.html", X, tree.predict(X)))
    for t in page.nodes():
        page.click_node(t)
        if t in tree.record_.splits:
            box, panel = page.text(f'[data-node="{t}"] .contents'), page.text("#node")
            assert "left" in panel
            assert "right" in panel
            if len(tree.record_.splits[t].terms) == 1 and tree.record_.splits[t].terms[0].levels is None:
                assert box
        elif tree.record_.leaves[t].outputs[0].terms:
            assert str(tree.record_.leaves[t].outputs[0].constant).removesuffix(".0") in page.text("#formula, .formula")
        elif hasattr(tree, "classes_"):
            shares = [formula.constant for formula in tree.record_.leaves[t].outputs]
            assert all(f"= {share:g}" in page.text("#node") for share in shares if share)
        else:
            assert f"{tree.record_.leaves[t].outputs[0].constant:.10g}" in page.text(f'[data-node="{t}"] .contents')


def test_an_entered_row_is_predicted(page: Page, tmp_path: Path) -> None:
    tree = trees()["values"]
    page.open(export_html(tree, tmp_path / "tree.html"))
    row = pd.DataFrame(
        {"size": [4.5], "age": [33], "color": ["E"], "clarity": ["VS"], "member": [True], "since": ["2021-03-04"]}
    ).astype({"since": "datetime64[ns]"})
    for field, text in enumerate(["4.5", "33", "E", "VS", "true", "2021-03-04"]):
        if field in (COLOR, CLARITY, 4):
            page.click("#tab-sample")
            script = (
                "const box = document.getElementById(arguments[0]);"
                "box.value = [...box.options].find((option) => option.text === arguments[1]).value;"
                "box.dispatchEvent(new Event('change', { bubbles: true }));"
            )
            page.driver.execute_script(script, f"field-{field}", text)
        else:
            page.enter(field, text)
    assert page.outputs() == predicted(tree, row)[0].tolist()
    (why,) = explain_rows(tree, row)
    assert steps(page) == [step.sentence for step in why.path]
    page.enter(SIZE, " ")
    assert page.outputs() == predicted(tree, row.assign(size=np.nan))[0].tolist()
    page.enter(SIZE, "much")
    assert "size: enter a number" in page.text("#mistakes")


def test_an_unseen_level_counts_as_none_of_a_group(page: Page, tmp_path: Path) -> None:
    rows = X[:20].assign(color="unseen")
    tree = trees()["levels and missing"]
    page.open(export_html(tree, tmp_path / "tree.html", rows))
    page.pick(3)
    assert page.outputs() == predicted(tree, rows)[3].tolist()
    assert steps(page) == ["color = unseen: left"]
