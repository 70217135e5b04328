"""The interactive page in a real browser."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from prunus import ArgminTreeClassifier, ArgminTreeRegressor, export_html
from prunus.describe.numbers import percent
from tests.estimators.problems import as_pandas, labels, mixed, table
from tests.render.browser import Page

X = pd.DataFrame(table(120, 4) * [1.0, 100.0, 0.01, 1.0] + [0.0, 5000.0, 1.0, 0.0], columns=["a", "b", "c", "d"])


def classifier(**options: Any) -> Any:
    return ArgminTreeClassifier(**{"depth": 3, "max_epochs": 20, "random_state": 0} | options).fit(
        X, labels(X.to_numpy())
    )


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
