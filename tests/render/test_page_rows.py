"""A row on the page: its prediction, reasons, path and sums are those of the estimator."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from prunus import ArgminTreeClassifier, ArgminTreeClusterer, ArgminTreeRegressor, explain_rows, export_html
from prunus.describe.numbers import percent, plain_number
from prunus.describe.read import describe
from prunus.describe.reasons import column_orders
from tests.estimators.problems import labels, table, values
from tests.render.browser import Page, record
from tests.render.problems import EXAMPLES, X, dates, example, of_frame, predicted, target, towns, tree


@pytest.mark.parametrize("name", EXAMPLES)
def test_rows_are_told_as_the_estimator_predicts_them(page: Page, tmp_path: Path, name: str) -> None:
    (estimator, frame), shown = example(name), EXAMPLES[name]
    page.open(export_html(estimator, tmp_path / "tree.html", frame))
    passing = estimator.decision_path(frame).toarray() > 0
    for row in shown.rows:
        page.find(row)
        assert page.row() == row
        assert page.nodes("lit") == np.flatnonzero(passing[row]).tolist()
        _check_path(page, np.flatnonzero(passing[row]).tolist())
        _check_prediction(page, estimator, frame.iloc[[row]], shown.exact)
        if shown.computed and not isinstance(estimator, ArgminTreeClusterer):
            _check_sums(page, estimator, frame.iloc[[row]])
    if shown.change is None:
        return
    if not shown.computed:
        assert not page.all("#fields, #reasons, #sum")
        return
    row, change = shown.rows[-1], {column: value for column, value in shown.change.items() if column in frame}
    for column, value in change.items():
        page.enter(list(frame.columns).index(column), str(value))
    _check_prediction(page, estimator, frame.iloc[[row]].assign(**change), shown.exact)


def _check_path(page: Page, path: list[int]) -> None:
    """The sentences of the path say to which side the row goes."""
    steps = page.collect("#path [data-step]", "textContent")
    for t, child, sentence in zip(path, path[1:], steps, strict=False):
        assert sentence.endswith(": left" if child == 2 * t + 1 else ": right")
    assert f" {path[-1]}" in steps[-1]


def _check_prediction(page: Page, estimator: Any, row: pd.DataFrame, exact: float) -> None:
    if isinstance(estimator, ArgminTreeClusterer):
        assert page.text("#prediction") == f"cluster {estimator.predict(row)[0]}"
        assert not page.all("#reasons, #sum")
        return
    (expected,) = predicted(estimator, row)
    unit = max(1.0, float(np.abs(expected).max()))
    assert_allclose(page.outputs(), expected, rtol=0, atol=max(exact, 1e-5 * (not page.all("#reasons"))) * unit)
    if hasattr(estimator, "classes_"):
        assert page.text("#prediction") == str(estimator.predict(row)[0])
    else:
        assert_allclose([float(part) for part in page.text("#prediction").split(", ")], expected, rtol=1e-3)


def _check_sums(page: Page, estimator: Any, row: pd.DataFrame) -> None:
    """Reasons and sums come to the prediction, and are those of `explain_rows`."""
    (expected,), (why,), tree = predicted(estimator, row), explain_rows(estimator, row), describe(estimator)
    unit, k = max(1.0, float(np.abs(expected).max())), 0 if tree.classes is None else int(expected.argmax())
    page.show_all("#reasons")
    first, *added, last = page.amounts("#reasons")
    assert last == page.outputs()[k]
    assert_allclose(first + sum(added), last, rtol=0, atol=1e-9 * unit)
    own = [part.added if isinstance(part.added, float) else part.added[k] for part in why.reasons]
    assert_allclose(sorted(added), sorted([*own, *[0.0] * (len(added) - len(own))]), rtol=0, atol=2e-4 * unit)
    page.show_all("#sum")
    if page.all("#sum .ladder"):
        first, *added, last = page.amounts("#sum")
        if "limited" not in page.text("#sum"):
            assert_allclose(first + sum(added), last, rtol=0, atol=1e-9 * max(unit, abs(first)))
    if tree.exact:
        steps = page.collect("#path [data-step]", "textContent")
        assert steps[:-1] == [step.sentence for step in why.path]
        formulas = [part.formula for part in why.sums if part.formula]
        assert not formulas or any(formula in page.text("#sum") for formula in formulas)
        return
    score = float(page.one("#sum .result").get_attribute("data-score"))
    told = next(
        part for part in why.sums if tree.classes is None or len(why.sums) == 1 or tree.outputs[k] in part.output
    )
    assert score == pytest.approx(told.total, abs=1e-4 * max(unit, abs(told.total)))
    assert bool(page.all("#routes")) == (tree.routing == "soft")


def test_reasons_follow_their_definition(page: Page, tmp_path: Path) -> None:
    estimator, typical = tree("three"), pd.DataFrame([X.median()])
    page.open(export_html(estimator, tmp_path / "tree.html", X, target("three")))
    page.find(7)
    page.show_all("#reasons")
    k, orders, expected = int(predicted(estimator, X)[7].argmax()), column_orders(4), np.zeros(4)
    for order in orders:
        steps = [typical.copy()]
        for i in order:
            steps.append(steps[-1].copy())
            steps[-1].isetitem(i, X.iloc[[7], i].to_numpy())
        expected[order] += np.diff(predicted(estimator, pd.concat(steps))[:, k]) / len(orders)
    found = dict(zip((name.split(" = ")[0] for name in page.names("#reasons")), page.amounts("#reasons"), strict=True))
    assert_allclose([found.get(name, 0.0) for name in X.columns], expected, atol=2e-4)
    assert found["typical row"] == pytest.approx(predicted(estimator, typical)[0, k], abs=1e-4)
    for other in range(3):  # the class that is explained can be chosen
        page.click(f'#which option[value="{other}"]')
        assert page.amounts("#reasons")[-1] == page.outputs()[other]
        assert f"score of {estimator.classes_[other]}" in page.text("#sum .result")


def test_a_step_of_the_path_opens_its_split(page: Page, tmp_path: Path) -> None:
    estimator = tree("numbers", "linear", "hard")
    page.open(export_html(estimator, tmp_path / "tree.html", X))
    page.pick(3)
    path = np.flatnonzero(estimator.decision_path(X).toarray()[page.row()]).tolist()
    steps = page.all("#path [data-step]")
    assert [step.get_attribute("data-step") for step in steps] == [*map(str, path[:-1]), "end"]
    texts = [step.text for step in steps]
    for text in texts[:-1]:
        value = float(text.split("= ")[1].split(",")[0])
        threshold = float(text.removesuffix(": left").removesuffix(": right").split()[-1])
        assert (value < threshold) == text.endswith("left") == (" below " in text)
    steps[1].click()
    assert page.text("#node h2") == f"Split {path[1]}"
    assert page.text("#row-here .sentence") == texts[1]
    first, *added, last = page.amounts("#row-here")
    assert first + sum(added) == pytest.approx(last, abs=1e-9)
    page.click("#row-here h3 .link")
    assert page.one("#prediction").is_displayed()
    page.click_node(3 - path[1])  # the row does not come here
    assert not page.all("#row-here")


def test_undecided_rows_go_both_ways(page: Page, tmp_path: Path) -> None:
    page.open(export_html(tree("numbers"), tmp_path / "tree.html", X, target("numbers")))
    page.click("#tab-sample")
    page.click('#list option[value="uncertain"]')
    assert page.text("#list option:checked") == "most divided"
    page.click("#pick option:nth-child(2)")
    assert "within the margin" in page.text("#path")
    assert page.nodes("touched")
    adds = [float(cell.text) for cell in page.all("#routes tr td:last-child")]
    assert sum(adds[:-1]) == pytest.approx(adds[-1], abs=0.05)
    assert adds[-1] == pytest.approx(page.outputs()[0], rel=1e-3)


@pytest.mark.parametrize("name", ["numbers, linear, hard", "single columns", "log, hard"])
def test_nothing_of_a_hard_tree_speaks_of_routes(page: Page, tmp_path: Path, name: str) -> None:
    estimator, frame = example(name)
    page.open(export_html(estimator, tmp_path / "tree.html", frame))
    page.find(3)
    assert page.nodes("touched") == []
    said = " ".join(page.one("#panel").get_attribute("textContent").split())
    assert not any(word in said for word in ("mass", "routes", "undecided", "margin", "soft"))
    page.all("#path [data-step]")[-1].click()
    assert any(sign in page.text("#way") for sign in (" < ", " >= ", " > ", " <= "))


def test_missing_values_are_named(page: Page, tmp_path: Path) -> None:
    estimator, frame = example("mixed, linear")
    page.open(export_html(estimator, tmp_path / "tree.html", frame))
    for row, column in ((3, "size"), (5, "color"), (7, "since")):
        page.find(row)
        page.show_all("#sum")
        assert f"{column} is missing" in " ".join(page.names("#sum"))


def test_dates_are_dates(page: Page, tmp_path: Path) -> None:
    days = pd.date_range("2021-01-01", periods=100, freq="D")
    frame = pd.DataFrame({"since": days, "noise": np.random.default_rng(0).normal(size=100)})
    y = np.where(days < "2021-03-01", 1.0, 9.0)
    estimator = of_frame(frame, y, routing="hard", max_split_features=1, depth=1)
    page.open(export_html(estimator, tmp_path / "tree.html", frame, y))
    page.pick(10)
    assert page.text('#path [data-step="0"]').startswith("since = 2021-01-11, below 2021-0")
    page.enter(0, "2021-02-31")
    assert "since: enter a date such as 2024-01-31" in page.text("#mistakes")
    page.enter(0, "2021-03-30")
    assert float(page.text("#prediction")) == pytest.approx(9, abs=0.5)


def test_weekdays_are_named(page: Page, tmp_path: Path) -> None:
    frame = pd.DataFrame({"sold": pd.date_range("2023-01-01", periods=800)})
    y = 5.0 * (frame["sold"].dt.day_of_week == 6)
    sundays = of_frame(frame, y, routing="hard", leaf="constant", depth=1, max_split_features=1, max_epochs=50)
    page.open(
        export_html(sundays, tmp_path / "tree.html", pd.DataFrame({"sold": pd.date_range("2024-05-01", periods=9)}))
    )
    page.find(4)
    assert "weekday of sold = Sunday" in page.text("#path")


def test_all_hours_are_drawn(page: Page, tmp_path: Path) -> None:
    frame, y, new = dates()
    page.open(export_html(of_frame(frame, y, leaf="additive", depth=1), tmp_path / "tree.html", new))
    page.click("#tab-curves")
    words = page.text("#curves")
    assert all(name in words for name in ("weekday of sold", "month of sold", "hour of sold", "September", "Wednesday"))
    assert "more levels" not in words


def test_every_level_with_an_effect_can_be_entered(page: Page, tmp_path: Path) -> None:
    frame, y, _ = towns()
    found = of_frame(frame, y, leaf="linear")
    named = {column.category for column in found.encoder_.columns_ if column.kind == "category"}
    level = next(town for town in frame["town"].dropna() if town not in named)
    page.open(export_html(found, tmp_path / "tree.html", frame[:20], y[:20]))
    page.find(0)
    page.click("#entry summary")
    page.click(f'#field-0 option[value="{level}"]')
    assert_allclose(page.outputs(), found.predict(frame.iloc[[0]].assign(town=level)), rtol=1e-5)
    assert f"town = {level}" in page.names("#reasons")
    estimator, new = example("towns, single columns")
    page.open(export_html(estimator, tmp_path / "tree.html", new))
    page.find(0)
    assert "mean of the target for town = " in page.text("#path")


def test_values_beyond_the_range_count_as_its_end(page: Page, tmp_path: Path) -> None:
    page.open(export_html(tree("numbers", "linear"), tmp_path / "tree.html"))
    page.enter(0, "1000")
    assert any("age = 1000 (counts as " in name for name in page.names("#reasons"))
    frame = pd.DataFrame([X.median()]).assign(age=1000.0)
    assert_allclose(page.outputs(), tree("numbers", "linear").predict(frame), rtol=1e-5)


def test_limits_of_leaves_are_told(page: Page, tmp_path: Path) -> None:
    estimator = tree("numbers", "linear", "hard")
    page.open(export_html(estimator, tmp_path / "tree.html"))
    for end in ("9", "-9"):
        page.enter(0, end)
        page.enter(3, end)
        changed = X.median().to_frame().T.assign(age=float(end), size=float(end))
        assert_allclose(page.outputs(), estimator.predict(changed), rtol=1e-5)
    assert "limited to the range from" in page.text("#sum .result")
    assert "of this leaf" in page.text("#sum .result")


def test_a_wrong_entry_clears_the_prediction(page: Page, tmp_path: Path) -> None:
    page.open(export_html(tree("numbers"), tmp_path / "tree.html", X))
    page.pick(0)
    page.enter(1, "many")
    assert page.text("#mistakes") == "rooms: enter a number"
    assert "wrong" in page.one("#field-1").get_attribute("class")
    assert not page.all("#prediction, #reasons, #path")
    assert page.nodes("lit") == page.nodes("touched") == []
    page.enter(1, "5100")
    assert page.nodes("lit")
    assert page.text("#outcome h2") == "This row"
    page.pick(1)
    page.click("#pick option:nth-child(1)")  # none
    assert not page.all("#prediction, #path, #row-here")
    assert page.nodes("lit") == []


def test_an_unseen_level_counts_as_none_of_a_group(page: Page, tmp_path: Path) -> None:
    estimator, frame = example("readable, levels and missing")
    rows = frame[:20].assign(color="unseen")
    page.open(export_html(estimator, tmp_path / "tree.html", rows))
    page.find(3)
    assert page.outputs() == predicted(estimator, rows)[3].tolist()
    assert page.text('#path [data-step="0"]') == "color = unseen: left"
    page.enter(list(frame.columns).index("size"), " ")
    assert page.outputs() == predicted(estimator, rows.assign(size=np.nan))[3].tolist()


def test_levels_without_a_name(page: Page, tmp_path: Path) -> None:
    frame = pd.DataFrame({"sex": ["f", "m", "m", "m"] * 20, "color": list("rgbk") * 20, "age": np.arange(80.0)})
    y = 5.0 * (frame["sex"] == "f") + (frame["color"] == "r") + frame["age"] / 80
    estimator, other = of_frame(frame, y, leaf="linear", depth=1), frame.assign(color="purple")
    page.open(export_html(estimator, tmp_path / "tree.html", other))
    page.pick(0)
    assert_allclose(page.outputs(), estimator.predict(other)[[0]], rtol=1e-5)
    assert {"sex = f", "color = purple"} <= set(page.names("#reasons"))
    page.click("#entry summary")
    assert page.text("#field-1 option:checked") == "purple"
    page.click("#field-0 option:nth-child(2)")
    assert page.text("#field-0 option:checked") == "(not f)"
    assert_allclose(page.outputs(), estimator.predict(other.assign(sex="m"))[[0]], rtol=1e-5)
    assert not any("sex" in name for name in page.names("#reasons"))  # it is typical


def test_lists_of_rows(page: Page, tmp_path: Path) -> None:
    estimator, y = tree("three"), target("three").copy()
    y[[3, 8]] = np.where(y[[3, 8]] == "red", "blue", "red")
    page.open(export_html(estimator, tmp_path / "tree.html", X.set_axis([f"house {i}" for i in range(150)]), y))
    page.click("#tab-sample")
    for expected in ("Row 0 (house 0)", "Row 1 (house 1)"):
        page.one("#pick").send_keys("\ue015")  # down
        assert page.text("#outcome h2") == expected
    shares = np.sort(estimator.predict_proba(X), axis=1)
    known = estimator.predict_proba(X)[np.arange(150), np.searchsorted(estimator.classes_, y)]
    for name, order in (("worst", known), ("uncertain", shares[:, -1] - shares[:, -2])):
        page.click(f'#list option[value="{name}"]')
        listed = page.collect("#pick option", "textContent")[1:]
        assert len(listed) == 15
        assert listed[0].startswith(f"row {order.argmin()} (house {order.argmin()})")
    leaf = int(np.flatnonzero(estimator.tree_.is_leaf)[0])
    page.click_node(leaf)
    page.click("#tab-sample")
    page.click('#list option[value="here"]')
    assert page.text("#list option:checked") == f"rows of leaf {leaf}"
    passing = np.flatnonzero(estimator.decision_path(X).toarray()[:, leaf])
    assert {int(text.split()[1]) for text in page.collect("#pick option", "textContent")[1:]} == set(passing.tolist())
    page.find("house 77")
    assert page.text("#outcome h2") == "Row 77 (house 77)"
    page.find("900")
    assert "900 is none of the 150 rows" in page.text("#find-said")


@pytest.mark.parametrize("task", ["numbers", "three"])
def test_a_leaf_shows_its_formula(page: Page, tmp_path: Path, task: str) -> None:
    estimator = tree(task, "linear", "hard")
    page.open(export_html(estimator, tmp_path / "tree.html", X))
    leaf = int(np.flatnonzero(estimator.tree_.is_leaf)[0])
    page.click_node(leaf)
    assert len(page.all("#formula .bars .name")) == X.shape[1]
    assert sum(name in page.text("#formula .formula") for name in X.columns) >= 3
    rows = int(estimator.decision_path(X).toarray()[:, leaf].sum())
    assert f"{rows} rows, " in page.text("#node dl")
    if task == "three":
        before = page.text("#formula .formula")
        shown = page.one("#formula-of").get_attribute("value")
        page.click(f'#formula-of option[value="{(int(shown) + 1) % 3}"]')
        assert page.text("#formula-of option:checked").startswith("score of ")
        assert page.text("#formula .formula") != before


@pytest.mark.parametrize("routing", ["soft", "hard"])
def test_the_formula_of_a_leaf_predicts(page: Page, tmp_path: Path, routing: str) -> None:
    estimator = of_frame(X, 3.0 * X["age"] + 20.0, leaf="linear", depth=0, routing=routing, max_epochs=50)
    page.open(export_html(estimator, tmp_path / "tree.html", X))
    weights = map(float, page.collect("#formula .number", "textContent"))
    terms = dict(zip(page.collect("#formula .name", "textContent"), weights, strict=True))
    constant = float(page.text("#formula .formula").split("= ")[1].split()[0])
    found = constant + sum(weight * X[name] for name, weight in terms.items())
    assert_allclose(found, estimator.predict(X), atol=0.3)


def test_additive_leaves_point_to_the_curves(page: Page, tmp_path: Path) -> None:
    estimator = tree("log", "additive")
    page.open(export_html(estimator, tmp_path / "tree.html", X))
    page.click_node(int(np.flatnonzero(estimator.tree_.is_leaf)[0]))
    assert "+ the curves of the columns" in page.text("#formula .formula")
    page.click("#formula .link")
    assert "adds to the logarithm of the value of a leaf" in page.text("#curves")


def test_clusters_differ_from_all_rows(page: Page, tmp_path: Path) -> None:
    page.open(export_html(example("clusters")[0], tmp_path / "tree.html", X))
    page.pick(0)
    assert "How its cluster differs" in page.one("#result").get_attribute("textContent")


def test_classes_that_are_numbers_are_right_or_wrong(page: Page, tmp_path: Path) -> None:
    y = labels(table(150, 4), (1.0, 2.0))
    estimator = ArgminTreeClassifier(depth=1, max_epochs=15, random_state=0).fit(X, y)
    page.open(export_html(estimator, tmp_path / "tree.html", X, y))
    right = estimator.predict(X) == y
    for row in (int(right.argmax()), int(right.argmin())):
        page.find(row)
        assert page.text("#truth").endswith("right" if right[row] else "wrong")


def test_numbers_are_written_as_python_writes_them(page: Page, tmp_path: Path) -> None:
    numbers = [
        0.0,
        1.0,
        -2.5,
        0.1 + 0.2,
        1234.5,
        1234.56789,
        -0.00031415926,
        31415.926,
        3.14e-9,
        2e9,
        1 / 3,
        12345678.9,
    ]
    shares = [0.0, 0.0002, 0.1234, 1 / 3, 0.5, 0.99949, 1.0]
    page.open(export_html(tree("numbers"), tmp_path / "tree.html", X))
    text = (Path(__file__).parents[2] / "src/prunus/render/page/data.js").read_text()
    script = text[text.index("const trimmed") : text.index("const withSign")]
    script += "return [arguments[0].map((x) => plain(x)), arguments[1].map(percent)];"
    assert page.run(script, numbers, shares) == [list(map(plain_number, numbers)), list(map(percent, shares))]


@pytest.mark.parametrize("routing", ["soft", "hard"])
def test_rows_are_a_mixture_within_a_bound(tmp_path: Path, routing: Any) -> None:
    x = table(4_000, 3)
    y = values(x)
    estimator = ArgminTreeRegressor(depth=3, routing=routing, max_epochs=3, random_state=0).fit(x, y)
    found = record(export_html(estimator, tmp_path / "tree.html", x, y))
    rows, steps = [sample["row"] for sample in found["samples"]], found["lists"]["steps"]
    assert len(rows) == len(set(rows)) <= 200
    assert (rows[steps[0]], rows[steps[-1]]) == (0, 3_999)
    assert found["samples"][steps[-1]]["values"] == x[-1].tolist()
    error = np.abs(estimator.predict(x) - y)
    assert_allclose(error[[rows[i] for i in found["lists"]["worst"]]], np.sort(error)[::-1][:20])
    assert {sample["end"] for sample in found["samples"]} == set(np.flatnonzero(estimator.tree_.is_leaf).tolist())
    assert ("uncertain" in found["lists"]) == (routing == "soft")
    assert found["nodes"][0]["rows"] == found["n_rows"] == len(x)
