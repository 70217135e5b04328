"""The canvas of the interactive page in a real browser: boxes, charts, legend, layout and curves."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine

from prunus import ArgminTreeClassifier, ArgminTreeClusterer, ArgminTreeRegressor, export_html
from tests.render.browser import Page, record

HARD: dict[str, Any] = {"routing": "hard", "leaf": "constant", "max_epochs": 5, "random_state": 0}
SOFT: dict[str, Any] = {"max_epochs": 5, "random_state": 0}


def named(load: Any) -> tuple[pd.DataFrame, Any]:
    data = load(as_frame=True)
    return data.data, np.asarray(data.target_names)[data.target]


def numbers() -> tuple[pd.DataFrame, Any]:
    frame, y = load_diabetes(as_frame=True, return_X_y=True)
    return frame, y.to_numpy()


def fitted() -> dict[str, tuple[Any, pd.DataFrame, Any]]:
    """Trees of depths 2, 4, 6 and 8: hard and soft, of single columns and of sums, of classes, values and clusters."""
    iris, wine, cancer, diabetes = named(load_iris), named(load_wine), named(load_breast_cancer), numbers()
    return {
        "2, columns": (ArgminTreeClassifier(depth=2, max_split_features=1, **HARD).fit(*iris), *iris),
        "2, linear leaves": (ArgminTreeRegressor(depth=2, **HARD | {"leaf": "linear"}).fit(*diabetes), *diabetes),
        "2, additive": (ArgminTreeRegressor(depth=2, leaf="additive", pieces=4, **SOFT).fit(*diabetes), *diabetes),
        "3, clusters": (ArgminTreeClusterer(depth=3, n_clusters=3, random_state=0).fit(wine[0]), wine[0], None),
        "4, sums": (ArgminTreeClassifier(depth=4, **HARD).fit(*cancer), *cancer),
        "4, columns": (ArgminTreeRegressor(depth=4, max_split_features=1, **HARD).fit(*diabetes), *diabetes),
        "6, soft": (ArgminTreeClassifier(depth=6, pruning_strength=0.0, **SOFT).fit(*wine), *wine),
        "8, soft": (ArgminTreeRegressor(depth=8, pruning_strength=0.0, **SOFT).fit(*diabetes), *diabetes),
    }


TREES = ["2, columns", "2, linear leaves", "2, additive", "3, clusters", "4, sums", "4, columns", "6, soft", "8, soft"]
SMALL = ["2, columns", "2, linear leaves", "2, additive", "3, clusters", "4, sums", "4, columns"]
DESKTOP, PHONE = (1280, 800), (390, 844)


@pytest.fixture(scope="module")
def trees() -> dict[str, tuple[Any, pd.DataFrame, Any]]:
    return fitted()


@pytest.fixture(scope="module")
def pages(trees: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    return {name: export_html(tree, folder / f"{i}.html", x, y) for i, (name, (tree, x, y)) in enumerate(trees.items())}


TRANSFORM = "return document.getElementById('view').getAttribute('transform')"
RECT = "const rect = (element) => element.getBoundingClientRect(), every = (selector, under = document) => "
RECT += "[...under.querySelectorAll(selector)], box = (node) => rect(node.querySelector('rect.box'));"
OUTSIDE = f"""{RECT}
const out = (a, b) => Math.max(b.left - a.left, a.right - b.right, b.top - a.top, a.bottom - b.bottom) > 0.5;
return every(".node").flatMap((node) => every(".contents :is(text, rect, path)", node)
  .filter((part) => out(rect(part), box(node))).map((part) => `${{node.dataset.node}}: ${{part.outerHTML}}`));
"""
"""Texts and charts that stick out of their boxes."""
OVERLAPS = f"""{RECT}
const all = every(".node").map((node) => [node.dataset.node, box(node)]);
const meet = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
return all.flatMap(([t, a], i) => all.slice(i + 1).filter(([_, b]) => meet(a, b)).map(([other]) => [t, other]));
"""
"""Boxes that touch others."""
LINES = f"""{RECT}
const shared = (a, b, low, high) => Math.min(a[high], b[high]) - Math.max(a[low], b[low]);
const meet = (a, b) => shared(a, b, "left", "right") > 1
  && shared(a, b, "top", "bottom") > 0.45 * Math.min(a.height, b.height);
return every(".node").flatMap((node) => {{
  const texts = every(".contents text", node);
  return texts.flatMap((one, i) => texts.slice(i + 1).filter((other) => meet(rect(one), rect(other)))
    .map((other) => `${{node.dataset.node}}: ${{one.textContent}} | ${{other.textContent}}`));
}});
"""
"""Texts of a box that are written over others."""


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize("name", TREES)
def test_texts_and_charts_stay_in_their_boxes(page: Page, pages: dict[str, Path], name: str, size: Any) -> None:
    page.resize(*size)
    page.open(pages[name])
    for _ in range(2):
        assert page.nodes()
        assert page.run(OUTSIDE) == []
        assert page.run(LINES) == []
        assert page.run(OVERLAPS) == []
        page.click("#turn")


def test_long_names_fit(page: Page, tmp_path: Path) -> None:
    x, y = load_iris(return_X_y=True)
    frame = pd.DataFrame(
        x, columns=[f"a name that is very long, number {i}, of a column of the table" for i in range(4)]
    )
    frame["kind_of_" + "y" * 50] = np.where(y == 2, "level " + "z" * 40, "other level that is long as well")
    classes = np.array(["class " + "w" * 60, "one more", "and one"])[y]
    for columns in (None, 1):
        tree = ArgminTreeClassifier(depth=2, max_split_features=columns, **HARD).fit(frame, classes)
        page.open(export_html(tree, tmp_path / "tree.html", frame, classes))
        assert page.run(OUTSIDE) == []
        assert page.run(LINES) == []
        assert max(page.run(f"{RECT} return every('rect.box').map((found) => found.width.baseVal.value)")) < 300
        assert "<" in page.text('[data-node="0"] .contents') or "is" in page.text('[data-node="0"] .contents')
        page.click("#turn")
        assert page.run(OUTSIDE) == []


@pytest.mark.parametrize("name", SMALL)
def test_bars_are_drawn_for_all_rows(page: Page, pages: dict[str, Path], name: str) -> None:
    page.open(pages[name])
    script = f"""{RECT} return Object.fromEntries(every(".node").map((node) =>
        [node.dataset.node, every(".picture [data-count]", node).map((bar) => Number(bar.dataset.count))]))"""
    drawn = page.run(script)
    for node in record(pages[name])["nodes"]:
        assert sum(drawn[str(node["node"])]) == node["rows"]
        assert all(drawn[str(node["node"])])


def test_bars_are_as_high_as_their_counts(page: Page, pages: dict[str, Path]) -> None:
    page.open(pages["2, columns"])
    script = """return [...document.querySelectorAll('[data-node="0"] .bin')].map((bar) =>
        [Number(bar.dataset.bin), Number(bar.dataset.count), bar.height.baseVal.value, bar.y.baseVal.value])"""
    bars = page.run(script)
    counts = np.zeros(40)
    for i, count, *_ in bars:
        counts[i] += count
    for _, count, height, y in bars:
        assert height == pytest.approx(42 * count / counts.max(), abs=0.01)
        assert -0.01 <= y <= 42


def test_a_split_without_rows_shows_the_shares_of_training(page: Page, trees: dict[str, Any], tmp_path: Path) -> None:
    tree, x, y = trees["2, columns"]
    page.open(export_html(tree, tmp_path / "tree.html"))
    assert "100% of rows" in page.text('[data-node="0"]')
    assert len(page.all(".strip")) == len(page.nodes())
    page.open(export_html(tree, tmp_path / "tree.html", x, y))
    assert "150 rows · 100%" in page.text('[data-node="0"]')
    assert not page.all(".strip")


def test_boxes_have_their_conditions_and_predictions(page: Page, trees: dict[str, Any], pages: dict[str, Path]) -> None:
    page.open(pages["2, columns"])
    found = {node["node"]: node for node in record(pages["2, columns"])["nodes"]}
    for t, node in found.items():
        text = page.text(f'[data-node="{t}"] .contents')
        expected = " ".join(node["words"]) if not node["leaf"] else None
        if expected is None:
            assert trees["2, columns"][2][trees["2, columns"][0].apply(trees["2, columns"][1]) == t].tolist()
            assert text.split("\n")[0] in ("setosa", "versicolor", "virginica")
        else:
            assert " ".join(text.split("\n")).startswith(expected)
    page.open(pages["2, linear leaves"])
    root = page.text('[data-node="0"] .contents').replace("\n", " ")
    assert sum(name in root.split(" rows")[0] for name in trees["2, linear leaves"][1].columns) >= 2
    assert " more < " in root


@pytest.mark.parametrize("name", ["2, columns", "4, sums", "8, soft"])
def test_a_click_does_not_move_the_canvas(page: Page, pages: dict[str, Path], name: str) -> None:
    page.open(pages[name])
    for _ in range(4):
        page.click("#larger")
    before, size = page.run(TRANSFORM), page.one("#tree").size
    script = """const frame = document.getElementById("tree").getBoundingClientRect(), found = [];
    for (const node of document.querySelectorAll(".node")) {
      const box = node.querySelector("rect.box").getBoundingClientRect();
      if (box.right > frame.left && box.left < frame.right && box.bottom > frame.top && box.top < frame.bottom) {
        node.querySelector("rect.box").dispatchEvent(new MouseEvent("click", { bubbles: true }));
        found.push(Number(node.dataset.node));
      }
    }
    return found;"""
    clicked = page.run(script)
    assert len(clicked) >= 2
    assert page.nodes("chosen") == [clicked[-1]]
    assert page.run(TRANSFORM) == before
    assert page.one("#tree").size == size


def test_keys_bring_a_node_into_view(page: Page, pages: dict[str, Path]) -> None:
    page.open(pages["4, sums"])
    for _ in range(6):
        page.click("#larger")
    for _ in range(4):
        page.press("\ue014")  # right: the child, as the root is at the left
    (chosen,) = page.nodes("chosen")
    assert chosen >= 3
    frame, box = page.one("#tree").rect, page.one(f'[data-node="{chosen}"] rect.box').rect
    assert frame["x"] <= box["x"]
    assert box["x"] + box["width"] <= frame["x"] + frame["width"]
    assert frame["y"] <= box["y"]
    assert box["y"] + box["height"] <= frame["y"] + frame["height"]


@pytest.mark.parametrize("size", [DESKTOP, PHONE, (1920, 1080)], ids=["desktop", "phone", "large"])
@pytest.mark.parametrize("name", ["2, columns", "2, linear leaves", "2, additive"])
def test_small_trees_fill_the_canvas(page: Page, pages: dict[str, Path], name: str, size: Any) -> None:
    page.resize(*size)
    page.open(pages[name])
    script = f"""{RECT} const tree = rect(every("#view")[0]), canvas = rect(every("#tree")[0]);
    const zoom = Number(every("#view")[0].getAttribute("transform").match(/scale\\((.*)\\)/)[1]);
    return [tree.width / canvas.width, tree.height / canvas.height, zoom,
      tree.left - canvas.left, canvas.right - tree.right, tree.top - canvas.top, canvas.bottom - tree.bottom];"""
    wide, high, zoom, *margins = page.run(script)
    assert max(wide, high) > 0.85 or zoom == 2
    assert zoom <= 2
    if size != PHONE:
        assert min(margins) > 0
        assert min(wide, high) > 0.5


def test_large_trees_start_with_a_readable_root(page: Page, pages: dict[str, Path]) -> None:
    page.open(pages["8, soft"])
    frame, box = page.one("#tree").rect, page.one('[data-node="0"] rect.box').rect
    assert frame["x"] <= box["x"]
    assert frame["y"] <= box["y"] <= frame["y"] + frame["height"] - box["height"]
    assert float(page.run(TRANSFORM).split("scale(")[1][:-1]) >= 0.58
    assert len(page.nodes()) < 40


LEGENDS = {
    "2, columns": ["Classes of the rows", "setosa", "versicolor", "virginica", "thicker: more rows", "threshold"],
    "3, clusters": ["Clusters", "cluster 0", "cluster 2", "a part of that row also arrives here"],
    "4, columns": ["Mean of y, from low to high", "thicker: more rows", "in a leaf: its prediction"],
    "2, linear leaves": ["Mean of y, from low to high", "in a leaf: its mean"],
    "6, soft": ["class_0", "a part of that row also arrives here"],
}


@pytest.mark.parametrize("name", LEGENDS)
def test_the_legend_says_what_is_drawn(page: Page, pages: dict[str, Path], name: str) -> None:
    page.open(pages[name])
    said = page.text("#legend")
    assert [part for part in LEGENDS[name] if part not in said] == []
    assert ("a part of that row" in said) == (not record(pages[name])["hard"])
    assert ("pruned branch" in said) == bool(page.all(".stub"))


def test_the_legend_says_where_colors_come_from(page: Page, trees: dict[str, Any], tmp_path: Path) -> None:
    tree, x, _ = trees["2, columns"]
    page.open(export_html(tree, tmp_path / "tree.html"))
    assert "Classes of the training rows" in page.text("#legend")
    page.open(export_html(tree, tmp_path / "tree.html", x))
    assert "Predicted classes" in page.text("#legend")


def test_the_colors_of_the_legend_are_those_of_the_bars(page: Page, pages: dict[str, Path]) -> None:
    page.open(pages["2, columns"])
    script = "return [...document.querySelectorAll('{}')].map((element) => getComputedStyle(element).{})"
    marks = page.run(script.format("#legend .mark", "backgroundColor"))
    bars = page.run(script.format(".histogram .bin", "fill"))
    assert len(marks) == 3
    assert set(bars) == set(marks)


@pytest.mark.parametrize("name", TREES)
def test_nothing_overflows_on_a_phone(page: Page, pages: dict[str, Path], name: str) -> None:
    page.resize(*PHONE, mobile=True)
    page.open(pages[name])
    assert page.run("return document.documentElement.scrollWidth <= innerWidth && innerWidth === 390")
    assert not page.run("return document.getElementById('legend').open")
    script = f"""{RECT} return every(".tools button, .tools input, [role=tab]").map(rect).filter(({{ width }}) => width)
        .map(({{ left, right, height }}) => [left, right, height])"""
    buttons = page.run(script)
    assert len(buttons) >= 10
    for left, right, height in buttons:
        assert left >= 0
        assert right <= 390.01
        assert height >= 34
    assert page.one("#tree").size["height"] > 250
    page.click("#legend summary")
    assert page.one("#legend .entry").is_displayed()
    assert page.one("#tree").size["height"] > 150
    for tab in ("sample", "help", "node"):
        page.click(f"#tab-{tab}")
        assert page.run("return document.documentElement.scrollWidth <= innerWidth")


def touch(page: Page, kind: str, *points: tuple[int, int]) -> None:
    found = [{"x": x, "y": y, "id": i} for i, (x, y) in enumerate(points)]
    page.driver.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": kind, "touchPoints": found})


def test_fingers_pan_and_zoom(page: Page, pages: dict[str, Path]) -> None:
    page.resize(*PHONE, mobile=True)
    page.open(pages["4, sums"])
    before = page.run(TRANSFORM)
    touch(page, "touchStart", (200, 250))
    touch(page, "touchMove", (180, 240))
    touch(page, "touchMove", (150, 230))
    touch(page, "touchEnd")
    panned = page.run(TRANSFORM)
    assert panned != before
    assert panned.split("scale")[1] == before.split("scale")[1]
    touch(page, "touchStart", (150, 250), (250, 250))
    touch(page, "touchMove", (130, 250), (270, 250))
    touch(page, "touchMove", (100, 250), (300, 250))
    touch(page, "touchEnd")
    scales = [float(text.split("scale(")[1][:-1]) for text in (panned, page.run(TRANSFORM))]
    assert scales[1] > 1.5 * scales[0]


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", ["2, columns", "4, columns", "6, soft"])
def test_the_path_of_a_row_can_be_seen_from_far(page: Page, pages: dict[str, Path], name: str, theme: str) -> None:
    page.open(pages[name])
    page.run(f"document.documentElement.dataset.theme = '{theme}'")
    page.pick(3)
    for _ in range(8):
        page.click("#smaller")
    lit = page.nodes("lit")
    assert len(lit) >= 2
    assert len(page.all(".edge.lit")) == len(lit) - 1
    script = """return [".edge.lit", ".node.lit rect.box"].map((selector) => {
      const { vectorEffect, strokeWidth, stroke } = getComputedStyle(document.querySelector(selector));
      return [vectorEffect, parseFloat(strokeWidth), stroke];
    })"""
    edge, box = page.run(script)
    assert edge[0] == box[0] == "non-scaling-stroke"
    assert min(edge[1], box[1]) >= 3
    assert edge[2] != page.run("return getComputedStyle(document.querySelector('.edge:not(.lit)')).stroke")
    page.press("\ue00c")  # Escape
    assert page.nodes("lit") == []


def test_a_row_is_marked_in_the_histograms_of_its_path(
    page: Page, trees: dict[str, Any], pages: dict[str, Path]
) -> None:
    for name in ("2, columns", "2, linear leaves"):
        tree, x, _ = trees[name]
        page.open(pages[name])
        nodes = {node["node"]: node for node in record(pages[name])["nodes"]}
        page.pick(7)
        row = record(pages[name])["samples"][7]["row"]
        path = [t for t in np.flatnonzero(tree.decision_path(x).toarray()[row]) if not nodes[t]["leaf"]]
        assert len(page.all(".here")) == len(path)
        for t in path:
            value = float(page.one(f'[data-node="{t}"] .here').get_attribute("data-value"))
            chart = nodes[t]["chart"]
            if chart["name"] in x.columns:
                assert value == pytest.approx(x[chart["name"]].iloc[row])
            assert (value < chart["thresholds"][0]) == (tree.decision_path(x).toarray()[row, 2 * t + 1] > 0)


def contrast(page: Page, ink: str, ground: str) -> float:
    """The contrast of two colors, from 1 (none) to 21."""
    script = """const pen = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    return [...arguments].map((color) => {
      pen.fillStyle = color;
      pen.fillRect(0, 0, 1, 1);
      return [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3);
    });"""

    def light(rgb: list[int]) -> float:
        linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in (part / 255 for part in rgb)]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted(light(rgb) for rgb in page.driver.execute_script(script, ink, ground))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", ["2, columns", "4, columns", "3, clusters"])
def test_texts_can_be_read_in_both_themes(page: Page, pages: dict[str, Path], name: str, theme: str) -> None:
    page.open(pages[name])
    page.run(f"document.documentElement.dataset.theme = '{theme}'")
    script = f"""{RECT} const color = (element) => getComputedStyle(element).fill;
    return every(".node").flatMap((node) => every(".words, .small", node)
      .map((text) => [color(text), color(node.querySelector("rect.box"))]))"""
    pairs = {tuple(pair) for pair in page.run(script)}
    assert len(pairs) >= 4
    for ink, ground in pairs:
        assert contrast(page, ink, ground) >= 4.5


@pytest.mark.parametrize("name", ["2, columns", "8, soft"])
def test_paper_shows_the_whole_tree(page: Page, pages: dict[str, Path], name: str) -> None:
    page.open(pages[name])
    page.run("document.documentElement.dataset.theme = 'dark'")
    page.click("#larger")
    before = page.run(TRANSFORM)
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        page.run("dispatchEvent(new Event('beforeprint'))")
        assert not page.one("#panel").is_displayed()
        assert not page.one(".tools").is_displayed()
        assert page.run("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        script = f"""{RECT} const canvas = rect(every("#tree")[0]);
        return every(".node").map(box).map((own) => Math.min(own.left - canvas.left, canvas.right - own.right,
          own.top - canvas.top, canvas.bottom - own.bottom))"""
        assert min(page.run(script)) > -1
        page.run("dispatchEvent(new Event('afterprint'))")
    finally:
        page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    assert page.run(TRANSFORM) == before


def test_curves_have_the_distribution_of_their_column_below(page: Page, pages: dict[str, Path]) -> None:
    page.open(pages["2, additive"])
    page.click("#tab-curves")
    curves = record(pages["2, additive"])["curves"]
    script = f"""{RECT} return every("#curves .drawn").map((chart) => [
      every(".rows .bin", chart).map((bar) => Number(bar.dataset.count)),
      chart.textContent, every(".zero", chart).length,
      ...[every(".rows .bin", chart)[0], every(".rows .bin", chart).at(-1), every("polyline", chart)[0]]
        .map(rect).map(({{ left, right, bottom }}) => [left, right, bottom])])"""
    drawn = page.run(script)
    assert len(drawn) == len(curves)
    for curve, (counts, text, zeros, first, last, line) in zip(curves, drawn, strict=True):
        assert counts == curve["counts"]
        assert curve["name"] in text
        assert "added to the value" in text
        assert zeros == 1
        assert first[0] == pytest.approx(line[0], abs=3)
        assert last[1] == pytest.approx(line[1], abs=3)
        assert line[2] <= first[2]


def test_help_is_in_plain_words(page: Page, pages: dict[str, Path]) -> None:
    page.open(pages["8, soft"])
    page.click("#tab-help")
    said = page.text("#help")
    assert "what amount of a row may pass" in said
    assert not any(word in said for word in ("mass", "margin", "score", "heap"))
    page.open(pages["2, columns"])
    page.click("#tab-help")
    assert "follows one path" in page.text("#help")
    assert "amount of a row" not in page.text("#help")


def test_the_tree_fits_again_when_the_window_changes(page: Page, pages: dict[str, Path]) -> None:
    page.open(pages["2, columns"])
    before = page.run(TRANSFORM)
    page.resize(1500, 950)
    page.driver.execute_async_script("const done = arguments[0]; requestAnimationFrame(() => setTimeout(done, 50))")
    after = page.run(TRANSFORM)
    assert after != before
    page.click("#larger")
    moved = page.run(TRANSFORM)
    page.resize(*DESKTOP)
    page.driver.execute_async_script("const done = arguments[0]; requestAnimationFrame(() => setTimeout(done, 50))")
    assert page.run(TRANSFORM) == moved
