"""The pictures of the paper: what is drawn, and what is said of mistakes."""

from collections.abc import Iterator
from copy import deepcopy
from functools import cache
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from numpy.testing import assert_allclose
from sklearn.exceptions import NotFittedError

from prunus import ArgminTreeClusterer
from prunus.errors import InputTypeError, InputValueError
from prunus.explain import (
    plot_active_nodes,
    plot_class_routing,
    plot_class_routings,
    plot_error_over_time,
    plot_routing,
)
from tests.estimators.problems import KINDS, as_pandas, classifier, labels, mixed, regressor, table, values
from tests.subprocesses import run_without

X = table(columns=3)
DASH = "\N{EN DASH}"
SIZES = [(6.4, 4.8), (12.0, 2.0), (2.0, 9.0), (20.0, 12.0)]


@pytest.fixture(autouse=True)
def _no_windows() -> Iterator[None]:
    with mpl.rc_context({"backend": "Agg"}):
        yield
        plt.close("all")


def axes(size: tuple[float, float] = (6.4, 4.8)) -> Axes:
    figure = Figure(size)
    FigureCanvasAgg(figure)
    return figure.add_subplot()


def circles(ax: Axes) -> list[Circle]:
    return [patch for patch in ax.patches if isinstance(patch, Circle)]


@cache
def fitted(depth: int) -> Any:
    return regressor(depth=depth, max_epochs=1).fit(X, values(X))


def points(ax: Axes, line: int = 0) -> Any:
    """(n, 2)."""
    return np.asarray(ax.lines[line].get_xydata())


def texts(ax: Axes) -> list[str]:
    return [text.get_text() for text in ax.texts]


def with_masses(*masses: float, depth: int = 2) -> Any:
    """A tree with these masses, and the routes that they allow."""
    tree = deepcopy(fitted(depth))
    tree.node_mass_ = np.array(masses, dtype=np.float32)
    tree.model_.tree.a[:] = tree.model_.tree.a.new_tensor(masses)
    return tree


PRUNED = (1.0, 1.0, 0.5, 1.0, 1.0, 0.0, 0.25)


def test_there_is_a_circle_for_each_node_of_the_complete_tree() -> None:
    ax = plot_routing(with_masses(*PRUNED), X, ax=axes())
    assert len(circles(ax)) == len(texts(ax)) == 7


def test_a_node_without_mass_is_white_and_dashed() -> None:
    drawn = circles(plot_routing(with_masses(*PRUNED), X, ax=axes()))
    assert [circle.get_linestyle() in ("dashed", "--") for circle in drawn] == [mass == 0 for mass in PRUNED]
    assert to_rgb(drawn[5].get_facecolor()) == (1, 1, 1)


def test_more_mass_is_darker() -> None:
    drawn = circles(plot_routing(with_masses(*PRUNED), X, ax=axes()))
    light = {mass: sum(to_rgb(circle.get_facecolor())) for mass, circle in zip(PRUNED, drawn, strict=True)}
    assert light[0.0] > light[0.25] > light[0.5] > light[1.0]
    assert light[1.0] < 0.8


def test_equal_masses_have_equal_shades() -> None:
    drawn = circles(plot_routing(with_masses(*PRUNED), X, ax=axes()))
    assert len({circle.get_facecolor() for circle, mass in zip(drawn, PRUNED, strict=True) if mass == 1}) == 1


def test_texts_stand_out_from_their_circles() -> None:
    ax = plot_routing(with_masses(*np.linspace(1, 0.05, 7)), X, ax=axes())
    for circle, text in zip(circles(ax), ax.texts, strict=True):
        bright, dark = sorted((luminance(circle.get_facecolor()), luminance(text.get_color())), reverse=True)
        assert (bright + 0.05) / (dark + 0.05) > 4.5  # readable, as the guidelines for the web have it


def luminance(color: Any) -> float:
    channels = np.array(to_rgb(color))
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def test_lines_to_what_is_pruned_are_dashed() -> None:
    ax = plot_routing(with_masses(*PRUNED), X, ax=axes())
    (lines,) = (collection for collection in ax.collections if isinstance(collection, LineCollection))
    patterns: Any = lines.get_linestyle()
    dashes = [dash is not None for _, dash in patterns]
    assert dashes == [mass == 0 for mass in PRUNED[1:]]


def test_numbers_are_percentages_of_the_routes_on_a_level() -> None:
    tree = ArgminTreeClusterer(depth=3, targets=[0], random_state=0).fit(X)
    routes = tree.transform(X).sum(0)
    found = texts(plot_routing(tree, X, ax=axes()))
    for d in range(4):
        nodes = range(2**d - 1, 2 ** (d + 1) - 1)
        for t, share in zip(nodes, 100 * routes[nodes] / routes[nodes].sum(), strict=True):
            assert found[t] == (DASH if share == 0 else "<1" if share < 0.5 else f"{share:.0f}")


def test_nodes_that_no_row_reaches_have_a_dash() -> None:
    tree = with_masses(*PRUNED)
    assert texts(plot_routing(tree, X, ax=axes()))[5] == DASH
    hidden = with_masses(1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 1.0)
    assert texts(plot_routing(hidden, X, ax=axes()))[:5] == ["100", DASH, "100", DASH, DASH]


def test_a_tree_that_is_pruned_wholly_has_dashes_only() -> None:
    assert texts(plot_routing(with_masses(*[0.0] * 7), X, ax=axes())) == [DASH] * 7


def test_without_rows_the_numbers_are_those_of_training() -> None:
    tree = ArgminTreeClusterer(depth=2, random_state=0).fit(X)
    share = tree.tree_.share
    assert tree.kept_nodes_.all()
    assert texts(plot_routing(tree, ax=axes())) == [f"{100 * part:.0f}" for part in share]


def test_without_rows_shares_are_of_those_that_come_so_deep() -> None:
    tree = regressor(depth=4, pruning_strength=4.0).fit(X, values(X))
    last = tree.tree_.share[15:]
    assert 0 < last.sum() < 1
    found = texts(plot_routing(tree, ax=axes()))[15:]
    assert found == [f"{100 * share / last.sum():.0f}" if share else DASH for share in last]


def test_levels_below_the_last_one_are_not_drawn() -> None:
    tree = with_masses(*PRUNED)
    assert texts(plot_routing(tree, X, max_depth=1, ax=axes())) == texts(plot_routing(tree, X, ax=axes()))[:3]
    assert len(circles(plot_routing(tree, X, max_depth=0, ax=axes()))) == 1
    assert len(circles(plot_routing(tree, X, max_depth=9, ax=axes()))) == 7


@pytest.mark.parametrize(("split", "leaf"), KINDS)
def test_every_kind_of_tree_can_be_drawn(split: str, leaf: str) -> None:
    tree = regressor(split=split, leaf=leaf).fit(X, values(X))
    assert texts(plot_routing(tree, X, ax=axes()))[0] == "100"


def test_tables_with_names_and_categories() -> None:
    frame = as_pandas(mixed())
    tree = regressor().fit(frame, frame["count"])
    assert texts(plot_routing(tree, frame, ax=axes()))[0] == "100"


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("depth", [0, 1, 4, 6])
def test_circles_do_not_touch_and_lie_within_the_axes(size: tuple[float, float], depth: int) -> None:
    ax = plot_routing(fitted(depth), X, ax=axes(size))
    ax.figure.canvas.draw()
    boxes = [circle.get_window_extent() for circle in circles(ax)]
    center = np.array([((box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2) for box in boxes])
    radius = np.array([box.width / 2 for box in boxes])
    assert_allclose(radius, [box.height / 2 for box in boxes], rtol=1e-6)  # round
    apart = np.hypot(*(center[:, None] - center).T) - radius[:, None] - radius
    assert apart[~np.eye(len(radius), dtype=bool)].min(initial=1.0) > 0
    whole = ax.get_window_extent()
    assert all(whole.x0 <= box.x0 and box.x1 <= whole.x1 and whole.y0 <= box.y0 and box.y1 <= whole.y1 for box in boxes)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("depth", [1, 4, 6])
def test_texts_fit_into_their_circles(size: tuple[float, float], depth: int) -> None:
    ax = plot_routing(fitted(depth), X, ax=axes(size))
    ax.figure.canvas.draw()
    for circle, text in zip(circles(ax), ax.texts, strict=True):
        inside, outside = text.get_window_extent(), circle.get_window_extent()
        assert outside.x0 <= inside.x0
        assert inside.x1 <= outside.x1


def test_texts_shrink_with_the_figure() -> None:
    ax = plot_routing(with_masses(*PRUNED), X, ax=axes())
    ax.figure.canvas.draw()
    before = float(ax.texts[3].get_fontsize())
    assert isinstance(ax.figure, Figure)
    ax.figure.set_size_inches(1.5, 1.0)
    ax.figure.canvas.draw()
    assert float(ax.texts[3].get_fontsize()) < before / 2


def test_numbers_of_a_level_are_of_one_size() -> None:
    ax = plot_routing(regressor(depth=5).fit(X, values(X)), X, ax=axes())
    ax.figure.canvas.draw()
    assert len({text.get_fontsize() for text in ax.texts[31:]}) == 1


def test_a_class_is_drawn_as_its_rows_are() -> None:
    y = labels(X, "abc")
    tree = classifier(depth=3).fit(X, y)
    ax = plot_class_routing(tree, X, y, label="b", ax=axes())
    assert texts(ax) == texts(plot_routing(tree, X[y == "b"], ax=axes()))
    assert texts(ax) != texts(plot_routing(tree, X[y == "a"], ax=axes()))
    assert ax.get_title() == "b"


def test_classes_are_drawn_down_to_depth_three() -> None:
    y = labels(X)
    tree = classifier(depth=5).fit(X, y)
    assert len(circles(plot_class_routing(tree, X, y, label=1, ax=axes()))) == 15
    assert len(circles(plot_class_routing(tree, X, y, label=1, max_depth=None, ax=axes()))) == 63


def test_classes_that_the_estimator_does_not_know() -> None:
    y = labels(X, ["low", "high"])
    tree = ArgminTreeClusterer(depth=2, random_state=0).fit(X)
    assert plot_class_routing(tree, X, y.tolist(), label="low", ax=axes()).get_title() == "low"


def test_all_classes_side_by_side() -> None:
    y = labels(X, "abc")
    tree = classifier().fit(X, y)
    figure = plot_class_routings(tree, X, y)
    assert [ax.get_title() for ax in figure.axes] == ["a", "b", "c"]
    for ax, label in zip(figure.axes, "abc", strict=True):
        assert texts(ax) == texts(plot_class_routing(tree, X, y, label=label, ax=axes()))


def test_some_classes_in_the_order_given() -> None:
    y = labels(X, "abc")
    figure = plot_class_routings(classifier().fit(X, y), X, y, labels=["c", "a"], max_depth=1)
    assert [ax.get_title() for ax in figure.axes] == ["c", "a"]
    assert [len(circles(ax)) for ax in figure.axes] == [3, 3]


def test_active_nodes_are_percentages_over_epochs() -> None:
    tree = regressor(max_epochs=4, early_stopping_rounds=4).fit(X, values(X))
    found = points(plot_active_nodes(tree, ax=axes()))
    assert_allclose(found[:, 0], [1, 2, 3, 4])
    assert_allclose(found[:, 1], 100 * np.array(tree.history_["active_nodes"]))


def test_a_history_is_drawn_like_its_estimator() -> None:
    tree = regressor(early_stopping_rounds=4).fit(X, values(X))
    here, there = (points(plot_active_nodes(thing, ax=axes())) for thing in (tree, tree.history_))
    assert_allclose(here, there)


def test_one_line_has_no_legend_and_several_have() -> None:
    history = {"epoch": [1, 2], "active_nodes": [1.0, 0.5]}
    assert plot_active_nodes(history, ax=axes()).get_legend() is None
    ax = plot_active_nodes({"weak": history, "strong": history}, ax=axes())
    legend = ax.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["weak", "strong"]
    assert len({line.get_color() for line in ax.lines}) == len({line.get_linestyle() for line in ax.lines}) == 2


def test_epochs_without_a_note_leave_a_gap() -> None:
    history = {"epoch": [1, 2, 3], "active_nodes": [np.nan, 0.75, 0.5]}
    assert_allclose(points(plot_active_nodes(history, ax=axes()))[:, 1], [np.nan, 75, 50])


def test_seeds_are_drawn_as_their_mean_with_bars() -> None:
    ax = plot_error_over_time({"ours": ([10.0, 20.0, 30.0], [0.1, 0.2, 0.3])}, ax=axes())
    (container,) = ax.containers
    assert_allclose(container[0].get_xydata(), [[20.0, 0.2]])
    (across, upright) = (bar.get_segments()[0] for bar in container[2])
    assert_allclose(across, [[10, 0.2], [30, 0.2]])
    assert_allclose(upright, [[20, 0.1], [20, 0.3]])


def test_bars_of_time_stay_at_or_after_the_fastest_seed() -> None:
    ax = plot_error_over_time({"ours": ([1.0, 1.0, 1.0, 97.0], [0.1, 0.1, 0.1, 0.1])}, ax=axes())
    (across, _) = (bar.get_segments()[0] for bar in ax.containers[0][2])
    assert across[0][0] == 1


def test_a_single_number_has_no_bars() -> None:
    ax = plot_error_over_time({"CART": (3.0, 0.34)}, ax=axes())
    assert_allclose(points(ax), [[3.0, 0.34]])
    assert not ax.containers[0].has_xerr  # type: ignore[attr-defined]


def test_time_has_a_log_axis_and_methods_have_names() -> None:
    ax = plot_error_over_time({"CART": (3.0, 0.34), "ours": ([500.0, 548.0], [0.33, 0.34])}, ax=axes())
    legend = ax.get_legend()
    assert ax.get_xscale() == "log"
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["CART", "ours"]
    assert ax.lines[0].get_marker() != ax.lines[1].get_marker()


@pytest.mark.parametrize(("seconds", "expected"), [((31.0, 52.0), {"50"}), ((0.02, 40.0), {"0.1", "1", "10"})])
def test_times_are_plain_numbers_apart(seconds: tuple[float, float], expected: set[str]) -> None:
    ax = plot_error_over_time({"one": (seconds[0], 0.1), "other": (seconds[1], 0.2)}, ax=axes())
    low, high = ax.get_xlim()
    shown = {
        text.get_text()
        for place, text in zip(ax.get_xticks(), ax.get_xticklabels(), strict=True)
        if low <= place <= high and text.get_text()
    }
    assert expected <= shown
    assert len(shown) <= 6
    assert not any(text.get_text() for text in ax.get_xticklabels(minor=True))


def test_estimators_are_lines_of_losses_over_time() -> None:
    validated = regressor(early_stopping_rounds=4).fit(X, values(X))
    trained = regressor().fit(X, values(X))
    ax = plot_error_over_time({"validated": validated, "trained": trained}, ax=axes())
    for line, (tree, loss) in enumerate([(validated, "valid_loss"), (trained, "train_loss")]):
        expected = np.stack((np.cumsum(tree.history_["seconds"]), tree.history_[loss]), 1)
        assert_allclose(points(ax, line), expected)


def test_without_axes_each_picture_is_a_new_figure() -> None:
    y = labels(X)
    tree = classifier(early_stopping_rounds=4).fit(X, y)
    drawn = [
        plot_routing(tree),
        plot_class_routing(tree, X, y, label=0),
        plot_active_nodes(tree),
        plot_error_over_time({"tree": tree}),
    ]
    assert len({ax.figure for ax in drawn}) == 4
    assert len(plt.get_fignums()) == 4


def test_the_axes_given_are_returned_and_no_figure_is_made() -> None:
    ax = axes()
    assert plot_routing(with_masses(*PRUNED), X, ax=ax) is ax
    assert plt.get_fignums() == []


def test_a_mistake_leaves_no_empty_figure() -> None:
    with pytest.raises(InputValueError):
        plot_routing(with_masses(*PRUNED), X[:, :2])
    with pytest.raises(InputValueError):
        plot_error_over_time({"ours": (0.0, 1.0)})
    assert plt.get_fignums() == []


def test_estimators_that_are_not_fitted() -> None:
    with pytest.raises(NotFittedError, match="Call 'fit'"):
        plot_routing(regressor())
    with pytest.raises(NotFittedError, match="Call 'fit'"):
        plot_active_nodes(regressor())
    with pytest.raises(NotFittedError, match="Call 'fit'"):
        plot_error_over_time({"ours": regressor()})


def test_what_is_no_estimator() -> None:
    with pytest.raises(InputTypeError, match="estimator must be one of prunus, however: int"):
        plot_routing(3)
    with pytest.raises(InputTypeError, match=r"histories are those of estimators of prunus, .*however: str"):
        plot_active_nodes("tree")


def test_rows_of_another_width() -> None:
    with pytest.raises(InputValueError, match="X has 2 features, but ArgminTreeRegressor is expecting 3"):
        plot_routing(with_masses(*PRUNED), X[:, :2])


@pytest.mark.parametrize("max_depth", [-1, 1.5, True, "2"])
def test_a_last_level_that_is_none(max_depth: Any) -> None:
    with pytest.raises(InputValueError, match="max_depth must be an integer of at least 0 or None, however"):
        plot_routing(with_masses(*PRUNED), X, max_depth=max_depth)


def test_labels_that_are_not_there() -> None:
    y = labels(X, "abc")
    tree = classifier().fit(X, y)
    with pytest.raises(InputValueError, match=r"label must be one of those in y, .*'b'.*, however: 'd'"):
        plot_class_routing(tree, X, y, label="d")
    with pytest.raises(InputValueError, match="y must have rows of the class to draw, however: none is 'c'"):
        plot_class_routing(tree, X[y != "c"], y[y != "c"], label="c")
    with pytest.raises(InputValueError, match="labels must name a class at least"):
        plot_class_routings(tree, X, y, labels=[])


def test_labels_for_other_rows() -> None:
    y = labels(X)
    tree = classifier().fit(X, y)
    with pytest.raises(InputValueError, match="y must have a label for each of the 60 rows of X, however: 59"):
        plot_class_routing(tree, X, y[:-1], label=1)
    with pytest.raises(InputValueError, match=r"y must have shape \(n,\), however: y.shape=\(60, 1\)"):
        plot_class_routing(tree, X, y[:, None], label=1)


def test_a_history_in_which_active_nodes_were_not_noted() -> None:
    for thing in (regressor().fit(X, values(X)), {"epoch": [1]}, {}, {"epoch": [1], "active_nodes": [np.nan]}):
        with pytest.raises(InputValueError, match=r'must have "active_nodes".*fit with early_stopping_rounds'):
            plot_active_nodes(thing)


def test_a_history_without_times() -> None:
    with pytest.raises(InputValueError, match=r"a history must have \"seconds\" .*however: it has 'train_loss'"):
        plot_error_over_time({"ours": {"train_loss": [1.0, 0.5]}})


@pytest.mark.parametrize("records", [{}, [("ours", (1.0, 2.0))], None])
def test_records_that_are_no_dict(records: Any) -> None:
    with pytest.raises(InputTypeError, match="records must be a dict with an entry at least, however"):
        plot_error_over_time(records)


@pytest.mark.parametrize("record", [3.0, (1.0, 2.0, 3.0), ("fast", "good")])
def test_records_that_are_no_pairs(record: Any) -> None:
    with pytest.raises(InputTypeError, match=r"a record must be a pair of seconds and error.*however: that of 'ours'"):
        plot_error_over_time({"ours": record})


@pytest.mark.parametrize("record", [([1.0, 2.0], [1.0]), ([], []), ([[1.0]], [[1.0]])])
def test_records_of_other_shapes(record: Any) -> None:
    with pytest.raises(InputValueError, match="one entry for each seed, however: those of 'ours' have the shapes"):
        plot_error_over_time({"ours": record})


@pytest.mark.parametrize("record", [(0.0, 1.0), (-1.0, 1.0), (np.nan, 1.0), (1.0, np.inf)])
def test_numbers_that_a_log_axis_lacks(record: Any) -> None:
    with pytest.raises(InputValueError, match="seconds must be positive, and all numbers finite, however"):
        plot_error_over_time({"ours": record})


def test_axes_that_are_none() -> None:
    several = Figure().subplots(1, 2)
    with pytest.raises(InputTypeError, match="ax must be an Axes of matplotlib, however: ndarray"):
        plot_routing(with_masses(*PRUNED), X, ax=several)


def test_without_matplotlib_the_error_says_what_to_install() -> None:
    script = """
import json
from prunus.explain import plot_active_nodes
try:
    plot_active_nodes({"active_nodes": [1.0]})
except ImportError as error:
    print(json.dumps(str(error)))
"""
    assert (
        run_without(("matplotlib",), script) == "pictures need matplotlib: install it with `pip install 'prunus[plot]'`"
    )
