"""Effects of levels in explanations, pictures and on the page."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from numpy.testing import assert_allclose

from prunus import ArgminTreeRegressor, export_html
from prunus.describe import explain_rows, tree_summary
from prunus.describe.functions import grouped, read_curve
from prunus.render import plot_curves
from prunus.render.as_dict import export_dict
from tests.explain.browser import CHROMIUM, DRIVER, Page, browser
from tests.explain.test_page_rows import amounts, names, row_of, show_all

RANDOM = np.random.default_rng(0)
CODES = RANDOM.integers(60, size=600)
TOWNS = np.array([None if c == 7 else "constructor" if c == 9 else f"town {c}" for c in CODES], dtype=object)
FRAME = pd.DataFrame({"town": TOWNS, "size": RANDOM.normal(size=600)})
Y = 10 + RANDOM.normal(size=60)[CODES] + 0.3 * FRAME["size"].to_numpy() + 0.3 * RANDOM.normal(size=600)
NEW = pd.concat(
    [FRAME[:40], pd.DataFrame({"town": ["__proto__", None, "constructor"], "size": [0.5, -0.5, 0.0]})],
    ignore_index=True,
)
browsers = pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="needs chromium and chromedriver")


def tree(**options: Any) -> Any:
    return ArgminTreeRegressor(**{"depth": 2, "max_epochs": 30, "random_state": 0} | options).fit(FRAME, Y)


@pytest.fixture(scope="module")
def opened() -> Iterator[Page]:
    with browser() as page:
        yield page


@pytest.fixture
def page(opened: Page) -> Iterator[Page]:
    opened.errors()
    yield opened
    assert opened.errors() == []


def test_the_curve_of_a_category_has_what_its_columns_add_together() -> None:
    encoder = tree(max_epochs=1).encoder_
    own = grouped(encoder.columns_)[0]
    assert "effect" in {encoder.columns_[i].kind for i in own}
    weight = np.random.default_rng(1).normal(size=(2, len(own)))
    curve = read_curve([encoder.columns_[i] for i in own], weight)
    expected = encoder.transform(NEW)[:, own].astype(float) @ weight.T
    levels = [None if pd.isna(level) else level for level in NEW["town"]]
    assert_allclose([curve.at(level) for level in levels], expected, atol=1e-5)
    assert len(curve.points) == 59
    assert curve.has_missing


def test_a_split_of_an_effect_is_told_by_the_mean_of_the_target() -> None:
    found = tree(routing="hard", max_split_features=1)
    (first,) = explain_rows(found, FRAME[:1])
    root = tree_summary(found).nodes[0]
    assert root.split[0].label == "mean of the target for town"
    column = found.encoder_.columns_[root.split[0].column]
    mean = (column.effects or {})[FRAME["town"][0]]
    words = first.path[0].sentence
    assert words.startswith("mean of the target for town = ")
    assert float(words.split(" = ")[1].split(",")[0]) == pytest.approx(mean, rel=1e-3)
    limit = float(words.split(" above ")[-1].split(" below ")[-1].split(":")[0])
    assert (mean < limit) == ("below" in words)


@pytest.mark.parametrize("options", [{"leaf": "linear"}, {"leaf": "linear", "routing": "hard"}, {"leaf": "additive"}])
def test_reasons_and_sums_add_up(options: dict[str, Any]) -> None:
    found = tree(**options)
    for told, prediction in zip(explain_rows(found, NEW), found.predict(NEW), strict=True):
        assert isinstance(told.typical, float)
        assert told.typical + sum(cast(float, reason.added) for reason in told.reasons) == pytest.approx(
            prediction, abs=1e-4
        )


def test_a_level_has_one_reason_for_its_column_and_its_effect() -> None:
    found = tree(leaf="linear", depth=0)
    level = FRAME["town"].value_counts().index[1]  # it has a column of its own, too
    rows = pd.DataFrame({"town": [level, FRAME["town"].value_counts().index[0]], "size": [0.0, 0.0]})
    told = explain_rows(found, rows)[0]
    reason = next(reason for reason in told.reasons if reason.column == "town")
    assert reason.value == level
    assert reason.added == pytest.approx(float(np.subtract(*found.predict(rows))), abs=1e-4)


def test_plain_types_and_curves_are_made() -> None:
    found = tree(leaf="additive", depth=1)
    assert "mean of the target for town" in json.dumps(export_dict(found))
    axes = plot_curves(found, X=FRAME, axes=Figure().subplots(1, 2))
    assert {ax.get_title() for ax in axes} == {"town", "size"}


@browsers
@pytest.mark.parametrize(
    "options",
    [
        {"leaf": "linear"},
        {"leaf": "additive", "pieces": 3},
        {"routing": "hard", "leaf": "linear"},
        {"routing": "hard", "max_split_features": 1},
    ],
)
def test_the_page_predicts_levels_with_effects(page: Page, tmp_path: Path, options: dict[str, Any]) -> None:
    found = tree(**options)
    expected = found.predict(NEW)
    page.open(export_html(found, tmp_path / "tree.html", NEW, np.zeros(len(NEW))))
    page.click("#tab-sample")
    for row in (0, 1, 5, 40, 41, 42):
        page.one("#find-row").clear()
        page.one("#find-row").send_keys(str(row))
        assert_allclose(page.outputs(), expected[[row]], rtol=1e-5)
        show_all(page, "#reasons")
        first, *added, last = amounts(page, "#reasons")
        assert first + sum(added) == pytest.approx(last, abs=1e-8)
    if options.get("max_split_features"):
        assert "mean of the target for town = " in page.text("#path")


@browsers
def test_every_level_with_an_effect_can_be_entered(page: Page, tmp_path: Path) -> None:
    found = tree(leaf="linear")
    named = {column.category for column in found.encoder_.columns_ if column.kind == "category"}
    level = next(town for town in FRAME["town"].dropna() if town not in named)
    page.open(export_html(found, tmp_path / "tree.html", FRAME[:20], Y[:20]))
    page.pick(0)
    row = FRAME.iloc[[row_of(page)]].assign(town=level)
    page.click("#entry summary")
    page.click(f'#field-0 option[value="{level}"]')
    assert_allclose(page.outputs(), found.predict(row), rtol=1e-5)
    assert f"town = {level}" in names(page, "#reasons")
