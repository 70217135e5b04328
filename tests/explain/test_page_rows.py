"""The interactive page tells why a row gets its prediction: in a real browser."""

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from prunus import ArgminTreeClassifier, ArgminTreeClusterer, ArgminTreeRegressor, export_html
from prunus.describe.reasons import column_orders
from tests.estimators.problems import as_pandas, labels, mixed, table, values
from tests.explain.browser import CHROMIUM, DRIVER, Page, browser

pytestmark = pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="needs chromium and chromedriver")

X = pd.DataFrame(
    table(150, 4) * [1.0, 100.0, 0.01, 1.0] + [0.0, 5000.0, 1.0, 0.0], columns=["age", "rooms", "tax", "size"]
)
EXACT = 1e-6
"""The page has the weights of the estimator, in single precision, and adds in double precision."""
TASKS = ("numbers", "log", "two", "logit", "three")


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


def target(task: str) -> npt.NDArray[Any]:
    y = values(table(150, 4))
    if task == "numbers":
        return 10 * y + 50
    if task == "log":
        return np.exp(y / 2)
    return labels(table(150, 4), ("no", "yes") if task in ("two", "logit") else ("red", "green", "blue"))


@cache
def tree(task: str, leaf: str = "constant", routing: str = "soft", columns: int | None = None) -> Any:
    options: Any = {"leaf": leaf, "routing": routing, "depth": 2, "max_epochs": 15, "random_state": 0}
    if columns is not None:
        options["max_split_features"] = columns
    if task in ("numbers", "log"):
        return ArgminTreeRegressor(loss="gamma" if task == "log" else "squared_error", **options).fit(X, target(task))
    loss = "binary_cross_entropy" if task == "logit" else "cross_entropy"
    return ArgminTreeClassifier(loss=loss, **options).fit(X, target(task))


def predicted(estimator: Any, frame: Any) -> npt.NDArray[np.float64]:
    if isinstance(estimator, ArgminTreeClassifier):
        return np.asarray(estimator.predict_proba(frame))
    return np.asarray(estimator.predict(frame)).reshape(len(frame), -1)


def collected(page: Page, selector: str, what: str) -> list[str]:
    """A property of all these elements, in one call of the browser."""
    script = f"return [...document.querySelectorAll(arguments[0])].map((element) => element.{what})"
    found: list[str] = page.driver.execute_script(script, selector)
    return found


def amounts(page: Page, where: str) -> list[float]:
    """The numbers of a sum with all digits: what it begins with, what is added, what it comes to."""
    return [float(amount) for amount in collected(page, f"{where} .ladder .number", "dataset.amount")]


def names(page: Page, where: str) -> list[str]:
    return collected(page, f"{where} .ladder .name", "textContent")


def row_of(page: Page) -> int:
    return int(page.text("#outcome h2").removeprefix("Row "))


def show_all(page: Page, where: str) -> None:
    for button in page.all(f"{where} .ladder button.name"):
        button.click()


def reasons(estimator: Any, frame: Any, row: int, typical: Any) -> npt.NDArray[np.float64]:
    """How much each column moves the prediction of a row, (columns, outputs), by the definition."""
    found = np.zeros((frame.shape[1], predicted(estimator, frame.iloc[[0]]).shape[1]))
    orders = column_orders(frame.shape[1])
    for order in orders:
        steps = [typical.copy()]
        for i in order:
            changed = steps[-1].copy()
            changed.isetitem(i, frame.iloc[[row], i].to_numpy())
            steps.append(changed)
        path = np.concatenate([predicted(estimator, step) for step in steps])
        found[order] += np.diff(path, axis=0) / len(orders)
    return found


@pytest.mark.parametrize("routing", ["soft", "hard"])
@pytest.mark.parametrize("leaf", ["constant", "linear", "additive"])
@pytest.mark.parametrize("task", TASKS)
def test_every_sum_comes_to_the_prediction(page: Page, tmp_path: Path, task: str, leaf: str, routing: str) -> None:
    estimator = tree(task, leaf, routing)
    page.open(export_html(estimator, tmp_path / "tree.html", X, target(task)))
    expected = predicted(estimator, X)
    unit = max(1.0, float(np.abs(expected).max()))
    for i in (0, 41):
        page.pick(i)
        row = row_of(page)
        assert_allclose(page.outputs(), expected[row], atol=3 * EXACT * unit)
        first, *added, last = amounts(page, "#reasons")
        shown = int(expected[row].argmax()) if task in ("two", "logit", "three") else 0
        assert last == page.outputs()[shown]
        assert_allclose(first + sum(added), last, rtol=0, atol=1e-9 * unit)
        said = float(page.one("#sum .result").get_attribute("data-score"))
        if leaf != "constant":
            first, *added, last = amounts(page, "#sum")
            assert_allclose(first + sum(added), last, rtol=0, atol=1e-9 * unit)
            if "limited" not in page.text("#sum"):
                assert last == pytest.approx(said, abs=1e-9 * unit)
        p = expected[row]
        if task == "numbers":
            assert said == pytest.approx(p[0], abs=3 * EXACT * unit)
        elif task == "log":
            assert said == pytest.approx(np.log(p[0]), abs=3 * EXACT * unit)
            assert "exp(" in page.text("#sum .result")
        elif task != "three":
            assert said == pytest.approx(np.log(p[1] / p[0]), abs=1e-4)
            assert "The log odds of yes are" in page.text("#sum .result")
        assert bool(page.all("#routes")) == (routing == "soft")


def test_reasons_follow_their_definition(page: Page, tmp_path: Path) -> None:
    for task, leaf, routing in (("numbers", "linear", "hard"), ("three", "constant", "soft")):
        estimator = tree(task, leaf, routing)
        typical = pd.DataFrame([X.median()])
        page.open(export_html(estimator, tmp_path / "tree.html", X, target(task)))
        page.pick(7)
        row = row_of(page)
        show_all(page, "#reasons")
        k = int(predicted(estimator, X)[row].argmax())
        expected = reasons(estimator, X, row, typical)[:, k]
        found = dict(
            zip((name.split(" = ")[0] for name in names(page, "#reasons")), amounts(page, "#reasons"), strict=True)
        )
        for name, amount in zip(X.columns, expected, strict=True):
            assert found.get(name, 0.0) == pytest.approx(amount, abs=2e-4)
        assert found["typical row"] == pytest.approx(predicted(estimator, typical)[0, k], abs=1e-4)


def test_the_class_that_is_explained_can_be_chosen(page: Page, tmp_path: Path) -> None:
    page.open(export_html(tree("three"), tmp_path / "tree.html", X, target("three")))
    page.pick(0)
    for k in range(3):
        page.click(f'#which option[value="{k}"]')
        assert amounts(page, "#reasons")[-1] == page.outputs()[k]
        assert f"score of {tree('three').classes_[k]}" in page.text("#sum .result")


def test_sentences_tell_the_side_of_every_split(page: Page, tmp_path: Path) -> None:
    estimator = tree("numbers", "linear", "hard")
    page.open(export_html(estimator, tmp_path / "tree.html", X))
    page.pick(3)
    path = np.flatnonzero(estimator.decision_path(X).toarray()[row_of(page)]).tolist()
    steps = page.all("#path [data-step]")
    assert [step.get_attribute("data-step") for step in steps] == [*map(str, path[:-1]), "end"]
    texts = [step.text for step in steps]
    for t, child, text in zip(path, path[1:], texts, strict=False):
        assert text.endswith(": left" if child == 2 * t + 1 else ": right")
        value, threshold = (
            float(part.split()[0].strip(",:")) for part in (text.split("= ")[1], text.split("e ")[-1].split("w ")[-1])
        )
        assert (value < threshold) == text.endswith("left") == ("below" in text)
    assert texts[-1] == f"ends in leaf {path[-1]}"
    steps[1].click()
    assert page.text("#node h2") == f"Split {path[1]}"
    assert page.text("#row-here .sentence") == texts[1]
    first, *added, last = amounts(page, "#row-here")
    assert first + sum(added) == pytest.approx(last, abs=1e-9)
    page.click("#row-here h3 .link")
    assert page.one("#prediction").is_displayed()


def test_a_split_that_the_row_does_not_reach_says_nothing_of_it(page: Page, tmp_path: Path) -> None:
    estimator = tree("numbers", "constant", "hard")
    page.open(export_html(estimator, tmp_path / "tree.html", X))
    page.pick(3)
    path = np.flatnonzero(estimator.decision_path(X).toarray()[row_of(page)]).tolist()
    page.click_node(3 - path[1])
    assert not page.all("#row-here")
    page.click_node(path[1])
    assert page.all("#row-here")


def test_splits_of_one_column_are_conditions(page: Page, tmp_path: Path) -> None:
    estimator = tree("numbers", "constant", "hard", 1)
    page.open(export_html(estimator, tmp_path / "tree.html", X))
    page.pick(3)
    row = X.iloc[row_of(page)]
    for step in page.all("#path [data-step]")[:-1]:
        name, rest = step.text.split(" = ")
        value, side = rest.split(", ")
        assert float(value) == pytest.approx(row[name], rel=1e-3)
        words, threshold = side.split(":")[0].split()
        assert (row[name] < float(threshold)) == (words == "below")
    page.all("#path [data-step]")[-1].click()
    assert re.search(" (<|>=|>|<=) ", page.text("#way"))
    assert "root" not in page.text("#way")


def test_undecided_rows_go_both_ways(page: Page, tmp_path: Path) -> None:
    estimator = tree("numbers")
    page.open(export_html(estimator, tmp_path / "tree.html", X, target("numbers")))
    page.click("#tab-sample")
    page.click('#list option[value="uncertain"]')
    assert page.text("#list option:checked") == "most divided"
    page.click("#pick option:nth-child(2)")
    assert "within the margin" in page.text("#path")
    adds = [float(cell.text) for cell in page.all("#routes tr td:last-child")]
    assert sum(adds[:-1]) == pytest.approx(adds[-1], abs=0.05)
    assert adds[-1] == pytest.approx(page.outputs()[0], rel=1e-3)
    assert {"amount", "adds"} <= set(page.text("#routes").split())


def test_mixed_columns_are_told_exactly(page: Page, tmp_path: Path) -> None:
    frame = as_pandas(mixed(80))
    y = frame["count"] ** 2 + 20.0 * (frame["color"] == "red") + 10.0 * frame["member"]
    for options in ({"leaf": "additive", "pieces": 4}, {"leaf": "linear", "routing": "hard"}):
        estimator = ArgminTreeRegressor(depth=2, max_epochs=15, random_state=0, **options).fit(frame, y)
        page.open(export_html(estimator, tmp_path / "tree.html", frame, y))
        page.click("#tab-sample")
        for row in (3, 5, 7, 20):
            page.one("#find-row").clear()
            page.one("#find-row").send_keys(str(row))
            assert row_of(page) == row
            assert_allclose(page.outputs(), estimator.predict(frame)[[row]], rtol=1e-5)
            show_all(page, "#sum")
            for where in ("#reasons", "#sum"):
                first, *added, last = amounts(page, where)
                assert first + sum(added) == pytest.approx(last, abs=1e-8)
            told = " ".join(names(page, "#sum"))
            assert (f"{frame.columns[{3: 0, 5: 2, 7: 4}.get(row, 0)]} is missing" in told) == (row != 20)


def test_dates_are_dates(page: Page, tmp_path: Path) -> None:
    days = pd.date_range("2021-01-01", periods=100, freq="D")
    frame = pd.DataFrame({"since": days, "noise": np.random.default_rng(0).normal(size=100)})
    y = np.where(days < "2021-03-01", 1.0, 9.0)
    options: Any = {"routing": "hard", "max_split_features": 1, "depth": 1, "max_epochs": 30, "random_state": 0}
    page.open(export_html(ArgminTreeRegressor(**options).fit(frame, y), tmp_path / "tree.html", frame, y))
    page.pick(10)
    assert page.text('#path [data-step="0"]').startswith("since = 2021-01-11, below 2021-0")
    page.enter(0, "2021-02-31")
    assert "since: enter a date such as 2024-01-31" in page.text("#mistakes")
    page.enter(0, "2021-03-30")
    assert float(page.text("#prediction")) == pytest.approx(9, abs=0.5)


def test_values_beyond_the_range_count_as_its_end(page: Page, tmp_path: Path) -> None:
    page.open(export_html(tree("numbers", "linear"), tmp_path / "tree.html"))
    page.enter(0, "1000")
    assert any("age = 1000 (counts as " in name for name in names(page, "#reasons"))
    frame = pd.DataFrame([X.median()]).assign(age=1000.0)
    assert_allclose(page.outputs(), tree("numbers", "linear").predict(frame), rtol=1e-5)


def test_limits_of_leaves_are_told(page: Page, tmp_path: Path) -> None:
    estimator = tree("numbers", "linear", "hard")
    page.open(export_html(estimator, tmp_path / "tree.html"))
    for age, size in (("9", "9"), ("-9", "-9")):
        page.enter(0, age)
        page.enter(3, size)
        assert_allclose(
            page.outputs(),
            estimator.predict(X.median().to_frame().T.assign(age=float(age), size=float(size))),
            rtol=1e-5,
        )
    assert "limited to the range from" in page.text("#sum .result")
    assert "of this leaf" in page.text("#sum .result")


def test_a_wrong_entry_clears_the_prediction(page: Page, tmp_path: Path) -> None:
    page.open(export_html(tree("numbers"), tmp_path / "tree.html", X))
    page.pick(0)
    assert page.nodes("lit")
    page.enter(1, "many")
    assert page.text("#mistakes") == "rooms: enter a number"
    assert not page.all("#prediction, #reasons, #path")
    assert page.nodes("lit") == page.nodes("touched") == []
    page.enter(1, "5100")
    assert page.nodes("lit")
    assert page.text("#outcome h2") == "This row"


def test_the_other_values_of_a_changed_row_keep_all_digits(page: Page, tmp_path: Path) -> None:
    estimator = tree("numbers", "linear")
    page.open(export_html(estimator, tmp_path / "tree.html", X))
    page.pick(2)
    row = X.iloc[[row_of(page)]].assign(age=0.5)
    page.enter(0, "0.5")
    assert_allclose(page.outputs(), estimator.predict(row), rtol=EXACT)


def test_lists_of_rows(page: Page, tmp_path: Path) -> None:
    estimator, y = tree("three"), target("three").copy()
    y[[3, 8]] = np.where(y[[3, 8]] == "red", "blue", "red")
    page.open(export_html(estimator, tmp_path / "tree.html", X.set_axis([f"house {i}" for i in range(150)]), y))
    page.click("#tab-sample")
    shares = np.sort(estimator.predict_proba(X), axis=1)
    known = estimator.predict_proba(X)[np.arange(150), np.searchsorted(estimator.classes_, y)]
    for name, order in (("worst", known), ("uncertain", shares[:, -1] - shares[:, -2])):
        page.click(f'#list option[value="{name}"]')
        listed = [option.text for option in page.all("#pick option")[1:]]
        assert len(listed) == 15
        assert listed[0].startswith(f"row {order.argmin()} (house {order.argmin()})")
    leaf = int(np.flatnonzero(estimator.tree_.is_leaf)[0])
    page.click_node(leaf)
    page.click("#tab-sample")
    page.click('#list option[value="here"]')
    assert page.text("#list option:checked") == f"rows of leaf {leaf}"
    passing = np.flatnonzero(estimator.decision_path(X).toarray()[:, leaf])
    found = {int(option.text.split()[1]) for option in page.all("#pick option")[1:]}
    assert found == set(passing.tolist())
    page.one("#find-row").send_keys("house 77")
    assert page.text("#outcome h2") == "Row 77 (house 77)"
    page.one("#find-row").clear()
    page.one("#find-row").send_keys("900")
    assert "900 is none of the 150 rows" in page.text("#find-said")


def test_rows_can_be_picked_by_keys(page: Page, tmp_path: Path) -> None:
    page.open(export_html(tree("numbers"), tmp_path / "tree.html", X))
    page.click("#tab-sample")
    page.one("#pick").send_keys("\ue015")  # down
    assert page.text("#outcome h2") == "Row 0"
    page.one("#pick").send_keys("\ue015")
    assert page.text("#outcome h2") == "Row 1"


@pytest.mark.parametrize("split", ["linear", "mlp"])
def test_what_the_page_cannot_compute_was_computed_before(page: Page, tmp_path: Path, split: str) -> None:
    options: Any = {"split": split, "leaf": "mlp", "depth": 2, "max_epochs": 5, "random_state": 0}
    estimator = ArgminTreeRegressor(**options).fit(X, target("numbers"))
    page.open(export_html(estimator, tmp_path / "tree.html", X, target("numbers")))
    page.pick(0)
    assert not page.all("#reasons, #sum")
    step = page.all("#path [data-step]")[0].text
    assert step.startswith("split 0 scores ") == (split == "mlp")
    child = int(page.nodes("lit")[1])
    assert step.endswith(": left" if child == 1 else ": right")


def test_rows_of_clusters_have_a_path(page: Page, tmp_path: Path) -> None:
    estimator = ArgminTreeClusterer(depth=2, n_clusters=3, random_state=0).fit(X)
    page.open(export_html(estimator, tmp_path / "tree.html", X))
    page.pick(0)
    assert len(page.all("#path [data-step]")) == len(page.nodes("lit"))
    assert not page.all("#reasons, #sum")
    assert "How its cluster differs" in page.one("#result").get_attribute("textContent")


@pytest.mark.parametrize("task", ["numbers", "three"])
def test_a_leaf_shows_its_formula(page: Page, tmp_path: Path, task: str) -> None:
    estimator = tree(task, "linear", "hard")
    page.open(export_html(estimator, tmp_path / "tree.html", X))
    leaf = int(np.flatnonzero(estimator.tree_.is_leaf)[0])
    page.click_node(leaf)
    assert len(page.all("#formula .bars .name")) == X.shape[1]
    text = page.text("#formula .formula")
    assert sum(name in text for name in X.columns) >= 3
    rows = int(estimator.decision_path(X).toarray()[:, leaf].sum())
    assert f"{rows} rows, " in page.text("#node dl")
    if task == "three":
        before = text
        page.click('#formula-of option[value="0"]')
        page.click('#formula-of option[value="1"]')
        page.click('#formula-of option[value="2"]')
        assert page.text("#formula-of option:checked").startswith("score of ")
        assert before


def test_the_formula_of_a_leaf_predicts(page: Page, tmp_path: Path) -> None:
    y = 3.0 * X["age"] + 20.0
    for routing in ("soft", "hard"):
        estimator = ArgminTreeRegressor(leaf="linear", depth=0, routing=routing, max_epochs=50, random_state=0).fit(
            X, y
        )
        page.open(export_html(estimator, tmp_path / "tree.html", X))
        terms = dict(
            zip(
                (cell.text for cell in page.all("#formula .name")),
                (float(cell.text) for cell in page.all("#formula .number")),
                strict=True,
            )
        )
        constant = float(page.text("#formula .formula").split("= ")[1].split()[0])
        found = constant + sum(weight * X[name] for name, weight in terms.items())
        assert_allclose(found, estimator.predict(X), atol=0.3)


def test_additive_leaves_point_to_the_curves(page: Page, tmp_path: Path) -> None:
    estimator = tree("numbers", "additive")
    page.open(export_html(estimator, tmp_path / "tree.html", X))
    leaf = int(np.flatnonzero(estimator.tree_.is_leaf)[0])
    page.click_node(leaf)
    assert "+ the curves of the columns" in page.text("#formula .formula")
    page.click("#formula .link")
    assert page.one("#curves").is_displayed()


def test_agreement_is_told_beside_the_largest_class(tmp_path: Path) -> None:
    def subtitle(task: str) -> str:
        text = export_html(tree(task), tmp_path / "tree.html", X).read_text()
        found: str = json.loads(text.split('id="record">')[1].split("</script>")[0])["subtitle"]
        return found

    assert "R^2 of one path against all routes: " in subtitle("numbers")
    assert "of rows; the largest class has " in subtitle("three")


def test_levels_without_a_name(page: Page, tmp_path: Path) -> None:
    frame = pd.DataFrame({"sex": ["f", "m", "m", "m"] * 20, "color": list("rgbk") * 20, "age": np.arange(80.0)})
    y = 5.0 * (frame["sex"] == "f") + (frame["color"] == "r") + frame["age"] / 80
    estimator = ArgminTreeRegressor(leaf="linear", depth=1, max_epochs=15, random_state=0).fit(frame, y)
    other = frame.assign(color="purple")
    page.open(export_html(estimator, tmp_path / "tree.html", other))
    page.pick(0)
    assert_allclose(page.outputs(), estimator.predict(other)[[0]], rtol=1e-5)
    assert {"sex = f", "color = purple"} <= set(names(page, "#reasons"))
    page.click("#entry summary")
    assert page.text("#field-1 option:checked") == "purple"
    page.click("#field-0 option:nth-child(2)")
    assert page.text("#field-0 option:checked") == "(not f)"
    assert_allclose(page.outputs(), estimator.predict(other.assign(sex="m"))[[0]], rtol=1e-5)
    first, *added, last = amounts(page, "#reasons")
    assert first + sum(added) == pytest.approx(last, abs=1e-9)
    assert not any("sex" in name for name in names(page, "#reasons"))  # it is typical


def test_classes_that_are_numbers_are_right_or_wrong(page: Page, tmp_path: Path) -> None:
    y = labels(table(150, 4), (1.0, 2.0))
    estimator = ArgminTreeClassifier(depth=1, max_epochs=15, random_state=0).fit(X, y)
    page.open(export_html(estimator, tmp_path / "tree.html", X, y))
    right = estimator.predict(X) == y
    for row in (int(right.argmax()), int(right.argmin())):
        page.pick(row)
        assert page.text("#truth").endswith("right" if right[row] else "wrong")


def test_no_row_is_shown_after_none_is_picked(page: Page, tmp_path: Path) -> None:
    page.open(export_html(tree("numbers"), tmp_path / "tree.html", X))
    page.pick(1)
    page.click("#pick option:nth-child(1)")
    assert not page.all("#prediction, #path, #row-here")
    assert page.nodes("lit") == []


def test_rows_are_a_mixture_within_a_bound(tmp_path: Path) -> None:
    x = table(4_000, 3)
    y = values(x)
    for routing in ("soft", "hard"):
        estimator = ArgminTreeRegressor(depth=3, routing=routing, max_epochs=3, random_state=0).fit(x, y)
        text = export_html(estimator, tmp_path / "tree.html", x, y).read_text()
        record = json.loads(text.split('id="record">')[1].split("</script>")[0])
        rows = [sample["row"] for sample in record["samples"]]
        assert len(rows) == len(set(rows)) <= 200
        error = np.abs(estimator.predict(x) - y)
        worst = [rows[i] for i in record["lists"]["worst"]]
        assert_allclose(error[worst], np.sort(error)[::-1][:20])
        assert {sample["end"] for sample in record["samples"]} == set(np.flatnonzero(estimator.tree_.is_leaf).tolist())
        assert ("uncertain" in record["lists"]) == (routing == "soft")
        assert record["nodes"][0]["rows"] == record["n_rows"] == len(x)
