"""The interactive page in a real browser."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from prunus import ArgminTreeClassifier, ArgminTreeClusterer, ArgminTreeRegressor, export_html
from prunus.describe.numbers import percent
from tests.estimators.problems import as_pandas, labels, mixed, table, values
from tests.explain.browser import CHROMIUM, DRIVER, Page, browser

pytestmark = pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="needs chromium and chromedriver")

X = pd.DataFrame(table(120, 4) * [1.0, 100.0, 0.01, 1.0] + [0.0, 5000.0, 1.0, 0.0], columns=["a", "b", "c", "d"])
SHOWN = 5e-5  # the page works in double precision with weights in single precision


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


def classifier(**options: Any) -> Any:
    return ArgminTreeClassifier(**{"depth": 3, "max_epochs": 20, "random_state": 0} | options).fit(
        X, labels(X.to_numpy())
    )


def rows(page: Page) -> list[tuple[int, int]]:
    """Some of the rows that the page holds: which, and where they are in the table."""
    texts = [option.get_attribute("textContent") for option in page.all("#pick option")[1:]]
    found = [(i, int(text.split(":")[0].removeprefix("row "))) for i, text in enumerate(texts)]
    assert len(found) > 20
    return found[:: len(found) // 4]


LEAVES = ["constant", "additive", "linear", "mlp"]


@pytest.mark.parametrize("split", ["linear", "elu", "mlp", "sparse_mlp"])
@pytest.mark.parametrize("leaf", LEAVES)
def test_a_picked_sample_has_the_path_and_the_prediction_of_the_estimator(
    page: Page, tmp_path: Path, leaf: str, split: str
) -> None:
    tree = classifier(leaf=leaf, split=split, pruning_strength=0.3)
    page.open(export_html(tree, tmp_path / "tree.html", X, labels(X.to_numpy())))
    for i, row in rows(page):
        page.pick(i)
        assert page.text("#prediction") == str(tree.predict(X)[row])
        assert_allclose(page.outputs(), tree.predict_proba(X)[row], atol=SHOWN)
        assert page.nodes("lit") == np.flatnonzero(tree.decision_path(X).toarray()[row]).tolist()


@pytest.mark.parametrize(("leaf", "pieces"), [*((leaf, 0) for leaf in LEAVES), ("linear", 4)])
def test_values_are_predicted(page: Page, tmp_path: Path, leaf: str, pieces: int) -> None:
    y = 100 * values(X.to_numpy()) + 5
    tree = ArgminTreeRegressor(depth=3, leaf=leaf, pieces=pieces, max_epochs=20, random_state=0).fit(X, y)
    page.open(export_html(tree, tmp_path / "tree.html", X, y))
    for i, row in rows(page):
        page.pick(i)
        assert_allclose(page.outputs(), tree.predict(X)[[row]], rtol=1e-4, atol=1e-2)
        assert float(page.text("#prediction")) == pytest.approx(tree.predict(X)[row], rel=1e-3)


@pytest.mark.parametrize("routing", ["soft", "hard"])
@pytest.mark.parametrize("leaf", ["constant", "linear", "additive"])
def test_links_are_followed(page: Page, tmp_path: Path, leaf: str, routing: str) -> None:
    options: Any = {"depth": 2, "leaf": leaf, "routing": routing, "max_epochs": 20, "random_state": 0}
    kinds = labels(X.to_numpy(), ("no", "yes"))
    two = ArgminTreeClassifier(loss="binary_cross_entropy", **options).fit(X, kinds)
    page.open(export_html(two, tmp_path / "two.html", X, kinds))
    for i, row in rows(page):
        page.pick(i)
        assert_allclose(page.outputs(), two.predict_proba(X)[row], atol=SHOWN)
    y = np.exp(values(table(120, 4)))
    log = ArgminTreeRegressor(loss="gamma", **options).fit(X, y)
    page.open(export_html(log, tmp_path / "log.html", X, y))
    for i, row in rows(page):
        page.pick(i)
        assert_allclose(page.outputs(), log.predict(X)[[row]], rtol=1e-3)
    if leaf == "additive":
        page.click("#tab-curves")
        assert "adds to the logarithm of the value of a leaf" in page.text("#curves")


@pytest.mark.parametrize("leaf", ["constant", "linear", "additive"])
@pytest.mark.parametrize("columns", [None, 1])
def test_rows_of_hard_trees_follow_one_path(page: Page, tmp_path: Path, leaf: str, columns: int | None) -> None:
    y = 100 * values(X.to_numpy()) + 5
    options: Any = {"routing": "hard", "depth": 3, "leaf": leaf, "max_split_features": columns, "max_epochs": 20}
    tree = ArgminTreeRegressor(random_state=0, **options).fit(X, y)
    page.open(export_html(tree, tmp_path / "tree.html", X, y))
    for i, row in rows(page):
        page.pick(i)
        assert_allclose(page.outputs(), tree.predict(X)[[row]], rtol=1e-4, atol=1e-2)
        assert page.nodes("lit") == np.flatnonzero(tree.decision_path(X).toarray()[row]).tolist()
        assert page.nodes("touched") == []
    said = " ".join(page.one("#panel").get_attribute("textContent").split())
    assert not any(word in said for word in ("mass", "routes", "undecided", "margin", "soft"))


def test_curves_of_additive_leaves_are_drawn(page: Page, tmp_path: Path) -> None:
    frame = as_pandas(mixed(100))
    tree = ArgminTreeRegressor(leaf="additive", pieces=4, depth=1, max_epochs=5, random_state=0)
    page.open(export_html(tree.fit(frame, frame["count"]), tmp_path / "tree.html"))
    page.click("#tab-curves")
    assert {title.text.split(" · ")[0] for title in page.all("#curves h3")} == set(frame.columns)
    assert len(page.all("#curves polyline")) == 3
    assert len(page.all("#curves rect")) == 4 + 2  # colors, any other one, false and true


def test_there_is_no_panel_of_curves_without_curves(page: Page, tmp_path: Path) -> None:
    page.open(export_html(classifier(), tmp_path / "tree.html"))
    assert not page.one("#tab-curves").is_displayed()


def test_clusters_are_found(page: Page, tmp_path: Path) -> None:
    tree = ArgminTreeClusterer(depth=3, n_clusters=3, random_state=0).fit(X)
    page.open(export_html(tree, tmp_path / "tree.html", X))
    for i, row in rows(page):
        page.pick(i)
        assert page.text("#prediction") == f"cluster {tree.labels_[row]}"


def test_a_sample_can_be_entered(page: Page, tmp_path: Path) -> None:
    tree = classifier()
    page.open(export_html(tree, tmp_path / "tree.html"))
    entered = [1.5, 5200.0, 0.98, -2.0]
    for field, value in enumerate(entered):
        page.enter(field, str(value))
    row = pd.DataFrame([entered], columns=X.columns)
    assert page.text("#prediction") == str(tree.predict(row)[0])
    assert_allclose(page.outputs(), tree.predict_proba(row)[0], atol=SHOWN)
    page.enter(0, "many")
    assert "wrong" in page.one("#field-0").get_attribute("class")


@pytest.mark.parametrize("pieces", [0, 4])
def test_categories_dates_and_missing_values_are_encoded_alike(page: Page, tmp_path: Path, pieces: int) -> None:
    frame = as_pandas(mixed())
    tree = ArgminTreeRegressor(depth=2, max_epochs=20, pieces=pieces, random_state=0).fit(frame, frame["count"] ** 2)
    page.open(export_html(tree, tmp_path / "tree.html", frame))
    page.click("#tab-sample")
    for i in range(0, len(page.all("#pick option")) - 1, 3):
        page.pick(i)
        row = int(page.all("#pick option")[i + 1].text.removeprefix("row "))
        assert_allclose(page.outputs(), tree.predict(frame)[[row]], rtol=1e-3, atol=1e-2)


def test_clicking_a_node_shows_its_panel(page: Page, tmp_path: Path) -> None:
    tree = classifier()
    page.open(export_html(tree, tmp_path / "tree.html", X, labels(X.to_numpy())))
    assert page.text("#node h2") == "Split 0"
    leaf = int(np.flatnonzero(tree.tree_.is_leaf)[0])
    page.click_node(leaf)
    assert page.text("#node h2") == f"Leaf {leaf}"
    assert page.nodes("chosen") == [leaf]
    assert f"{percent(tree.tree_.share[leaf])} of the training samples" in page.text("#node dl")
    page.click_node(1)
    assert page.text("#node h2") == "Split 1"
    assert len(page.all("#node .split .bar")) == 4
    assert page.all("#node .chart .margin")


def test_nodes_collapse_and_expand(page: Page, tmp_path: Path) -> None:
    tree = classifier()
    page.open(export_html(tree, tmp_path / "tree.html"))
    kept = np.flatnonzero(tree.kept_nodes_).tolist()
    assert page.nodes() == kept
    page.click('[data-toggle="1"]')
    assert page.nodes() == [t for t in kept if t in (0, 1) or bin(t + 1)[2:4] == "11"]
    page.click("#expand")
    assert page.nodes() == kept


def test_a_feature_is_found(page: Page, tmp_path: Path) -> None:
    tree = classifier()
    page.open(export_html(tree, tmp_path / "tree.html"))
    page.one("#search").send_keys("b")
    strength = np.abs(tree.tree_.weight)
    inner = np.flatnonzero(tree.kept_nodes_ & ~tree.tree_.is_leaf)
    assert page.nodes("found") == [t for t in inner if strength[t, 1] >= 0.2 * strength[t].max()]
    page.one("#search").send_keys("\ue00c")  # Escape
    assert page.nodes("found") == []


def test_keys_go_from_node_to_node(page: Page, tmp_path: Path) -> None:
    tree = classifier(depth=2)
    assert tree.kept_nodes_[:3].all()
    page.open(export_html(tree, tmp_path / "tree.html"))
    heavier = 1 + int(tree.tree_.share[2] > tree.tree_.share[1])
    page.press("\ue015")  # down
    assert page.nodes("chosen") == [heavier]
    page.press("\ue014" if heavier == 1 else "\ue012")  # right, or left
    assert page.nodes("chosen") == [3 - heavier]
    page.press("\ue013")  # up
    assert page.nodes("chosen") == [0]


def test_names_cannot_break_out(page: Page, tmp_path: Path) -> None:
    names = [
        "</script><script>document.title = 'broken'</script>",
        "\"'><img src=x onerror=alert(1)>",
        "{{record}}",
        "&lt;",
    ]
    y = np.where(labels(X.to_numpy()) == labels(X.to_numpy())[0], "<b>", "</title>")
    tree = ArgminTreeClassifier(depth=2, max_epochs=20, random_state=0).fit(X.set_axis(names, axis=1), y)
    page.open(export_html(tree, tmp_path / "tree.html", X.set_axis(names, axis=1), y, title='<i>"tree"</i>'))
    assert page.driver.title == '<i>"tree"</i>'
    assert page.text("h1") == '<i>"tree"</i>'
    shown = {element.get_attribute("textContent") for element in page.all("#node .split .name")}
    assert shown == set(names)
    assert not page.all("img, b, i")
    page.pick(0)
    assert page.text("#prediction") in ("<b>", "</title>")


def test_light_and_dark(page: Page, tmp_path: Path) -> None:
    page.open(export_html(classifier(depth=1), tmp_path / "tree.html"))
    paper = "return getComputedStyle(document.body).backgroundColor"
    before = page.driver.execute_script(paper)
    page.click("#theme")
    assert page.driver.execute_script(paper) != before


def test_on_a_phone_nothing_is_cut_off(page: Page, tmp_path: Path) -> None:
    page.driver.set_window_size(500, 860)
    page.open(export_html(classifier(), tmp_path / "tree.html", X))
    assert page.driver.execute_script("return document.documentElement.scrollWidth <= innerWidth")
    assert page.one("#tree").size["height"] > 200
    page.pick(0)
    assert page.one("#prediction").is_displayed()


def test_a_tree_of_one_node(page: Page, tmp_path: Path) -> None:
    tree = ArgminTreeRegressor(depth=0, max_epochs=2).fit(X, np.ones(len(X)))
    page.open(export_html(tree, tmp_path / "tree.html", X))
    assert page.nodes() == [0]
    assert page.text("#node h2") == "Leaf 0"


def test_a_script_that_was_not_written_by_prunus_does_not_run(page: Page, tmp_path: Path) -> None:
    path = export_html(classifier(), tmp_path / "tree.html", X)
    text = path.read_text()
    assert "unsafe" not in text.split("</head>")[0]
    injected = "<img src=x onerror=\"document.title='broken'\"><script>document.title = 'broken'</script></body>"
    path.write_text(text.replace("</body>", injected))
    page.open(path)
    assert page.text("#node h2") == "Split 0"
    assert page.driver.title == "Classification tree"
    assert all("Content Security Policy" in error for error in page.errors())
