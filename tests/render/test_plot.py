"""A tree drawn with matplotlib: what is in its boxes, and that they keep apart."""

from collections.abc import Iterator
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox
from sklearn.datasets import load_diabetes, load_wine

from prunus import ArgminTreeClassifier, ArgminTreeClusterer, ArgminTreeRegressor, plot_tree, tree_summary
from prunus.errors import InputValueError
from tests.estimators.problems import as_pandas, classifier, labels, mixed, regressor, table, values

X = table()
DASH, CUT = "\N{EN DASH}", "(...)"


def axes(width: float = 20.0, height: float = 10.0) -> Axes:
    return Figure(figsize=(width, height)).add_subplot()


def texts(tree: Any, **options: Any) -> list[str]:
    return [text.get_text() for text in plot_tree(tree, ax=axes(), **options)]


def frames(ax: Axes, boxes: list[Text]) -> list[Bbox]:
    """Where boxes are in a picture that is drawn."""
    figure = ax.figure
    assert isinstance(figure, Figure)
    canvas: Any = FigureCanvasAgg(figure)
    canvas.draw()
    patches = [box.get_bbox_patch() for box in boxes]
    return [
        box.get_window_extent() if patch is None else patch.get_window_extent(canvas.get_renderer())
        for box, patch in zip(boxes, patches, strict=True)
    ]


def assert_apart(tree: Any, ax: Axes | None, **options: Any) -> list[Text]:
    boxes = plot_tree(tree, ax=ax, **options)
    ax = boxes[0].axes if ax is None else ax  # type: ignore[assignment]
    assert ax is not None
    whole = ax.get_window_extent().padded(1.0)
    found = frames(ax, boxes)
    assert not any(a.overlaps(b) for a, b in combinations(found, 2))
    assert all(whole.x0 <= a.x0 and a.x1 <= whole.x1 and whole.y0 <= a.y0 and a.y1 <= whole.y1 for a in found)
    return boxes


@pytest.mark.parametrize("depth", [0, 1, 4])
@pytest.mark.parametrize("size", [(20.0, 10.0), (6.4, 4.8)])
def test_boxes_do_not_overlap(depth: int, size: tuple[float, float]) -> None:
    wine = load_wine(as_frame=True)
    tree = ArgminTreeClassifier(depth=depth, max_epochs=5, pruning_strength=0.01, random_state=0)
    assert_apart(tree.fit(wine.data, wine.target), axes(*size), filled=True, rounded=True)


def test_depth_4_is_readable() -> None:
    diabetes = load_diabetes(as_frame=True)
    tree = ArgminTreeRegressor(depth=4, max_epochs=5, pruning_strength=0.01, random_state=0)
    boxes = assert_apart(tree.fit(diabetes.data, diabetes.target), axes())
    assert len(boxes) == 31
    assert float(boxes[0].get_fontsize()) >= 7


def test_every_kept_node_has_a_box_and_pruned_ones_a_dash() -> None:
    tree = regressor(depth=4, pruning_strength=4.0).fit(X, values(X))
    summary, found = tree_summary(tree), texts(tree)
    assert sum("samples = " in " ".join(text.split()) for text in found) == len(summary.nodes)
    assert found.count(DASH) == sum(node.n_pruned for node in summary.nodes if not node.is_leaf) > 0


def test_nodes_that_no_row_reaches_are_dashes() -> None:
    x = np.repeat([0.0, 1.0], 30)[:, None]
    tree = classifier(depth=4, pruning_strength=0.0).fit(x, labels(x))
    reached = [node for node in tree_summary(tree).nodes if node.share > 0]
    assert len(reached) < len(tree_summary(tree).nodes)
    found = texts(tree)
    assert sum("samples = " in text for text in found) == len(reached)
    assert found.count(DASH) == sum(not node.is_leaf for node in reached) * 2 - (len(reached) - 1)


def test_classes_and_their_shares() -> None:
    tree = classifier(depth=0).fit(X, np.repeat(["a", "b"], [20, 40]))
    assert texts(tree) == ["samples = 100%\ngini = 0.444\nclass = b\nb: 66.7%, a: 33.3%"]


def test_values_and_their_spread() -> None:
    y = values(X)
    (text,) = texts(regressor(depth=0).fit(X, y))
    assert text.startswith("samples = 100%\nvalue = ")
    assert text.endswith(f"± {y.std():.3g}")


def test_only_the_root_has_labels() -> None:
    root, *others = texts(classifier().fit(X, labels(X)), label="root", impurity=False)
    assert "samples" in root
    assert not any("samples" in text or "class" in text for text in others)


def test_numbers_of_nodes() -> None:
    tree = classifier(depth=1).fit(X, labels(X))
    assert [text.splitlines()[0] for text in texts(tree, node_ids=True)] == ["node #0", "node #1", "node #2"]


def test_deep_branches_are_cut() -> None:
    tree = regressor(depth=3, pruning_strength=0.01).fit(X, values(X))
    assert texts(tree, max_depth=0)[1:] == [CUT, CUT]


def test_colors_tell_classes_and_purity() -> None:
    boxes = plot_tree(classifier(depth=1, max_epochs=30).fit(X, labels(X)), ax=axes(), filled=True)
    red, green, blue = np.transpose([box.get_bbox_patch().get_facecolor()[:3] for box in boxes])  # type: ignore[union-attr]
    assert len({*zip(red, green, blue, strict=True)}) == 3
    assert (red + green + blue)[0] > (red + green + blue)[1:].max()  # the root is mixed, hence pale


def test_a_size_of_the_font_that_was_chosen() -> None:
    assert {box.get_fontsize() for box in plot_tree(regressor().fit(X, values(X)), ax=axes(), fontsize=5)} == {5.0}


def test_dollars_are_no_formulas() -> None:
    ax = axes()
    boxes = plot_tree(regressor(depth=1).fit(X, values(X)), ax=ax, feature_names=["$x_1$", "$\\frac", "c"])
    frames(ax, boxes)
    assert "$\\frac" in boxes[0].get_text()


def test_categories_and_missing_values() -> None:
    frame = as_pandas(mixed())
    tree = regressor(depth=3, pieces=8).fit(frame, frame["count"])
    boxes = assert_apart(tree, axes(), max_features=100, feature_names=["number of things", *"bcde"])
    assert "(number of things is missing)" in " ".join(boxes[0].get_text().split())


def test_the_current_axes_are_drawn_on() -> None:
    figure, ax = pyplot.subplots()
    try:
        boxes = plot_tree(regressor(depth=1).fit(X, values(X)))
        assert {box.axes for box in boxes} == {ax}
    finally:
        pyplot.close(figure)


@pytest.fixture
def no_figure() -> Iterator[None]:
    pyplot.close("all")
    yield
    pyplot.close("all")


@cache
def deep(depth: int) -> Any:
    x = table(400, 6)
    tree = ArgminTreeRegressor(depth=depth, max_epochs=2, pruning_strength=0.0, random_state=0)
    return tree.fit(x, np.sin(3 * x[:, 0]) + x[:, 1] * x[:, 2])


@pytest.mark.usefixtures("no_figure")
def test_a_figure_that_the_user_made_keeps_its_size() -> None:
    figure = pyplot.figure(figsize=(10, 5))
    boxes = plot_tree(deep(3))
    assert boxes[0].get_figure() is figure
    assert figure.get_size_inches().tolist() == [10.0, 5.0]
    assert pyplot.get_fignums() == [figure.number]


@pytest.mark.usefixtures("no_figure")
@pytest.mark.parametrize("depth", [0, 2, 4])
def test_a_new_figure_is_as_large_as_the_tree_needs(depth: int) -> None:
    boxes = assert_apart(deep(depth), None, filled=True, rounded=True)
    assert {box.get_fontsize() for box in boxes} == {10.0}
    assert pyplot.gca() is boxes[0].axes
    width, height = pyplot.gcf().get_size_inches()
    assert 3 <= width <= 3 + 2.5 * 2**depth
    assert 2 <= height <= 2 + 2.5 * depth
    assert [text.get_text() for text in pyplot.gcf().texts] == []  # no note of levels that are left out


@pytest.mark.usefixtures("no_figure")
def test_a_new_figure_of_clusters_with_long_names() -> None:
    wine = load_wine(as_frame=True).data.rename(columns=lambda name: f"measured amount of {name} in a bottle")
    boxes = assert_apart(ArgminTreeClusterer(depth=4, random_state=0).fit(wine), None, filled=True)
    assert float(boxes[0].get_fontsize()) >= 8


@pytest.mark.usefixtures("no_figure")
def test_levels_that_would_not_be_legible_are_left_out_of_a_new_figure() -> None:
    boxes = assert_apart(deep(6), None)
    assert float(boxes[0].get_fontsize()) >= 8
    assert CUT in {box.get_text() for box in boxes}
    width, height = pyplot.gcf().get_size_inches()
    assert 20 < width <= 41
    assert height <= 26
    (note,) = pyplot.gcf().texts
    assert note.get_text() == "Deeper levels are left out; max_depth=6 shows them all."


@pytest.mark.usefixtures("no_figure")
def test_levels_that_the_user_asks_for_are_shown_on_a_larger_figure() -> None:
    boxes = plot_tree(deep(6), max_depth=6)
    assert float(boxes[0].get_fontsize()) >= 8
    assert CUT not in {box.get_text() for box in boxes}
    assert pyplot.gcf().get_size_inches()[0] > 41
    assert len(plot_tree(deep(6), ax=axes())) == len(boxes)  # on given axes all levels are shown, too


@pytest.mark.usefixtures("no_figure")
def test_a_new_figure_for_a_size_of_the_font() -> None:
    boxes = assert_apart(deep(2), None, fontsize=16)
    assert {box.get_fontsize() for box in boxes} == {16.0}


@pytest.mark.usefixtures("no_figure")
def test_a_new_figure_has_room_for_a_title() -> None:
    plot_tree(deep(0))
    title = pyplot.title("A tree")
    assert title.get_window_extent().y1 <= pyplot.gcf().bbox.y1


@pytest.mark.usefixtures("no_figure")
def test_no_figure_is_left_after_a_mistake() -> None:
    with pytest.raises(InputValueError, match="max_depth must be"):
        plot_tree(deep(0), max_depth=-1)
    assert pyplot.get_fignums() == []


def test_what_was_on_the_axes_is_removed() -> None:
    ax = axes()
    tree = regressor(depth=1).fit(X, values(X))
    counts = [len(ax.texts) + len(ax.lines) for _ in range(2) if plot_tree(tree, ax=ax)]
    assert counts[0] == counts[1]


def test_a_tree_without_splits_says_so_in_its_box() -> None:
    tree = regressor(routing="hard", leaf="linear", max_leaf_nodes=1).fit(X, values(X))
    (box,) = texts(tree)
    assert "y = " in box.replace("\n", " ")
    assert box.replace("\n", " ").endswith("no split was worth keeping")
    assert "no split" not in texts(regressor(depth=0).fit(X, values(X)))[0]
