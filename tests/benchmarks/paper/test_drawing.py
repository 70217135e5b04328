"""Drawings of the figures: trees as circles, curves and points."""

from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from numpy.testing import assert_allclose

from benchmarks.paper.figures.circles import Routing, draw_circles, routing
from benchmarks.paper.figures.curves import plot_active_nodes, plot_error_over_time
from prunus import ArgminTreeClusterer
from prunus.errors import InputValueError

X = np.random.default_rng(0).normal(size=(60, 3))
DASH = "\N{EN DASH}"
SIZES = [(6.4, 4.8), (12.0, 2.0), (2.0, 9.0), (20.0, 12.0)]
PRUNED = (1.0, 1.0, 0.5, 1.0, 1.0, 0.0, 0.25)


@pytest.fixture(scope="module")
def tree() -> ArgminTreeClusterer:
    tree = ArgminTreeClusterer(depth=3, targets=[0], random_state=0)
    tree.fit(X)
    return tree


def axes(size: tuple[float, float] = (6.4, 4.8)) -> Axes:
    figure = Figure(size)
    FigureCanvasAgg(figure)
    return figure.add_subplot()


def drawn_circles(ax: Axes) -> list[Circle]:
    return [patch for patch in ax.patches if isinstance(patch, Circle)]


def texts(ax: Axes) -> list[str]:
    return [text.get_text() for text in ax.texts]


def draw(*masses: float, percent: Any = None, size: tuple[float, float] = (6.4, 4.8)) -> Axes:
    """A tree with these masses; by default all rows are spread evenly."""
    depth = (len(masses) + 1).bit_length() - 2
    even = np.concatenate([np.full(2**d, 100 / 2**d) for d in range(depth + 1)])
    ax = axes(size)
    draw_circles(Routing(depth, np.array(masses, np.float32), even if percent is None else np.asarray(percent)), ax)
    return ax


def test_there_is_a_circle_for_each_node_of_the_complete_tree() -> None:
    ax = draw(*PRUNED)
    assert len(drawn_circles(ax)) == len(texts(ax)) == 7


def test_a_node_without_mass_is_white_and_dashed() -> None:
    drawn = drawn_circles(draw(*PRUNED))
    assert [circle.get_linestyle() in ("dashed", "--") for circle in drawn] == [mass == 0 for mass in PRUNED]
    assert to_rgb(drawn[5].get_facecolor()) == (1, 1, 1)


def test_more_mass_is_darker_and_equal_masses_are_alike() -> None:
    drawn = drawn_circles(draw(*PRUNED))
    light = {mass: sum(to_rgb(circle.get_facecolor())) for mass, circle in zip(PRUNED, drawn, strict=True)}
    assert light[0.0] > light[0.25] > light[0.5] > light[1.0]
    assert light[1.0] < 0.8
    assert len({circle.get_facecolor() for circle, mass in zip(drawn, PRUNED, strict=True) if mass == 1}) == 1


def test_texts_stand_out_from_their_circles() -> None:
    ax = draw(*np.linspace(1, 0.05, 7))
    for circle, text in zip(drawn_circles(ax), ax.texts, strict=True):
        bright, dark = sorted((luminance(circle.get_facecolor()), luminance(text.get_color())), reverse=True)
        assert (bright + 0.05) / (dark + 0.05) > 4.5  # readable, as the guidelines for the web have it


def luminance(color: Any) -> float:
    channels = np.array(to_rgb(color))
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def test_lines_to_what_is_pruned_are_dashed() -> None:
    (lines,) = (collection for collection in draw(*PRUNED).collections if isinstance(collection, LineCollection))
    patterns: Any = lines.get_linestyle()
    assert [dash is not None for _, dash in patterns] == [mass == 0 for mass in PRUNED[1:]]


def test_numbers_are_percentages_of_the_routes_on_a_level(tree: ArgminTreeClusterer) -> None:
    ax = axes()
    draw_circles(routing(tree, X), ax)
    routes, found = tree.transform(X).sum(0), texts(ax)
    for d in range(4):
        nodes = range(2**d - 1, 2 ** (d + 1) - 1)
        for t, share in zip(nodes, 100 * routes[nodes] / routes[nodes].sum(), strict=True):
            assert found[t] == (DASH if share == 0 else "<1" if share < 0.5 else f"{share:.0f}")


def test_nodes_that_no_row_reaches_have_a_dash() -> None:
    assert texts(draw(1.0, 0.0, 1.0, percent=[100, 0, 100])) == ["100", DASH, "100"]
    assert texts(draw(0.0, 0.0, 0.0, percent=[0, 0, 0])) == [DASH] * 3


def test_levels_below_the_last_one_are_left_out(tree: ArgminTreeClusterer) -> None:
    whole = routing(tree, X)
    for max_depth, depth in ((0, 0), (1, 1), (9, 3)):
        upper = routing(tree, X, max_depth=max_depth)
        assert upper.depth == depth
        assert_allclose(upper.percent, whole.percent[: 2 ** (depth + 1) - 1])
        assert_allclose(upper.mass, whole.mass[: 2 ** (depth + 1) - 1])


def test_some_rows_are_routed_as_they_are_among_others(tree: ArgminTreeClusterer) -> None:
    z = tree.transform(X)[:7].sum(0, dtype=np.float64)
    assert_allclose(routing(tree, X[:7]).percent[1:3], 100 * z[1:3] / z[1:3].sum())


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("depth", [0, 1, 4, 6])
def test_circles_and_texts_fit_within_the_axes_and_do_not_touch(size: tuple[float, float], depth: int) -> None:
    ax = draw(*[1.0] * (2 ** (depth + 1) - 1), size=size)
    ax.figure.canvas.draw()
    boxes = [circle.get_window_extent() for circle in drawn_circles(ax)]
    center = np.array([((box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2) for box in boxes])
    radius = np.array([box.width / 2 for box in boxes])
    assert_allclose(radius, [box.height / 2 for box in boxes], rtol=1e-6)  # round
    apart = np.hypot(*(center[:, None] - center).T) - radius[:, None] - radius
    assert apart[~np.eye(len(radius), dtype=bool)].min(initial=1.0) > 0
    whole = ax.get_window_extent()
    assert all(whole.x0 <= box.x0 and box.x1 <= whole.x1 and whole.y0 <= box.y0 and box.y1 <= whole.y1 for box in boxes)
    for outside, text in zip(boxes, ax.texts, strict=True):
        inside = text.get_window_extent()
        assert outside.x0 <= inside.x0
        assert inside.x1 <= outside.x1


def test_texts_shrink_with_the_figure_and_are_of_one_size_on_a_level() -> None:
    ax = draw(*[1.0] * 15)
    ax.figure.canvas.draw()
    before = float(ax.texts[7].get_fontsize())
    assert len({text.get_fontsize() for text in ax.texts[7:]}) == 1
    assert isinstance(ax.figure, Figure)
    ax.figure.set_size_inches(1.5, 1.0)
    ax.figure.canvas.draw()
    assert float(ax.texts[7].get_fontsize()) < before / 2


def test_active_nodes_are_percentages_over_epochs_and_gaps_stay() -> None:
    ax = axes()
    plot_active_nodes({"weak": ([1, 2, 3], [np.nan, 0.75, 0.5]), "strong": ([1], [1.0])}, ax)
    assert_allclose(np.asarray(ax.lines[0].get_xydata()), np.array([[1, np.nan], [2, 75], [3, 50]]))
    legend = ax.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["weak", "strong"]
    assert len({line.get_color() for line in ax.lines}) == len({line.get_linestyle() for line in ax.lines}) == 2


def test_seeds_are_drawn_as_their_mean_with_bars() -> None:
    ax = axes()
    plot_error_over_time({"ours": ([10.0, 20.0, 30.0], [0.1, 0.2, 0.3])}, ax)
    (container,) = ax.containers
    assert_allclose(container[0].get_xydata(), [[20.0, 0.2]])
    (across, upright) = (bar.get_segments()[0] for bar in container[2])
    assert_allclose(across, [[10, 0.2], [30, 0.2]])
    assert_allclose(upright, [[20, 0.1], [20, 0.3]])


def test_bars_of_time_stay_at_or_after_the_fastest_seed() -> None:
    ax = axes()
    plot_error_over_time({"ours": ([1.0, 1.0, 1.0, 97.0], [0.1, 0.1, 0.1, 0.1])}, ax)
    (across, _) = (bar.get_segments()[0] for bar in ax.containers[0][2])
    assert across[0][0] == 1


def test_a_single_number_has_no_bars() -> None:
    ax = axes()
    plot_error_over_time({"CART": ([3.0], [0.34])}, ax)
    assert_allclose(np.asarray(ax.lines[0].get_xydata()), [[3.0, 0.34]])
    assert not ax.containers[0].has_xerr  # type: ignore[attr-defined]


def test_time_has_a_log_axis_and_methods_have_names() -> None:
    ax = axes()
    plot_error_over_time({"CART": ([3.0], [0.34]), "ours": ([500.0, 548.0], [0.33, 0.34])}, ax)
    legend = ax.get_legend()
    assert ax.get_xscale() == "log"
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["CART", "ours"]
    assert ax.lines[0].get_marker() != ax.lines[1].get_marker()


@pytest.mark.parametrize(("seconds", "expected"), [((31.0, 52.0), {"50"}), ((0.02, 40.0), {"0.1", "1", "10"})])
def test_times_are_plain_numbers_apart(seconds: tuple[float, float], expected: set[str]) -> None:
    ax = axes()
    plot_error_over_time({"one": ([seconds[0]], [0.1]), "other": ([seconds[1]], [0.2])}, ax)
    low, high = ax.get_xlim()
    labels = {
        text.get_text()
        for place, text in zip(ax.get_xticks(), ax.get_xticklabels(), strict=True)
        if low <= place <= high and text.get_text()
    }
    assert expected <= labels
    assert len(labels) <= 6
    assert not any(text.get_text() for text in ax.get_xticklabels(minor=True))


@pytest.mark.parametrize("record", [(0.0, 1.0), (-1.0, 1.0), (np.nan, 1.0), (1.0, np.inf)])
def test_numbers_that_a_log_axis_lacks(record: tuple[float, float]) -> None:
    with pytest.raises(
        InputValueError, match="seconds must be positive, and all numbers finite, got others for 'ours'"
    ):
        plot_error_over_time({"ours": ([record[0]], [record[1]])}, axes())
