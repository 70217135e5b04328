"""The pictures of the paper: how rows are routed, which nodes stay active, error against time."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from prunus.errors import InputTypeError, InputValueError
from prunus.explain.curves import active_nodes, error_over_time, is_history, styles
from prunus.explain.routing import Routing, class_rows, routing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["plot_active_nodes", "plot_class_routing", "plot_class_routings", "plot_error_over_time", "plot_routing"]


def plot_routing(
    estimator: Any,
    X: Any = None,  # noqa: N803
    *,
    max_depth: int | None = None,
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw how rows spread over the complete tree.

    A circle is a node. Its shade is its mass: dark is kept wholly, white and dashed is pruned. The number in it is the
    percentage of rows that are routed through it, among the nodes of its level; a dash if there are none. Needs
    matplotlib.

    Parameters
    ----------
    estimator : ArgminTreeClassifier, ArgminTreeRegressor or ArgminTreeClusterer
        A fitted one.
    X : table of shape (n, n_features_in_), optional
        Rows, each of which counts in all the nodes that it reaches, as much as it reaches them. By default the training
        rows, each along its one path through the kept tree.
    max_depth : int, optional
        Last level to draw; by default all are.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure, as large as the tree needs.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from prunus import ArgminTreeClusterer
    >>> from matplotlib.figure import Figure
    >>> X, _ = make_blobs(100, centers=2, random_state=0)
    >>> tree = ArgminTreeClusterer(depth=1, random_state=0).fit(X)
    >>> ax = plot_routing(tree, X, ax=Figure().subplots())
    >>> ax.texts[0].get_text(), len(ax.patches)
    ('100', 3)
    """
    return _draw(routing(estimator, X, max_depth=max_depth), ax)


def plot_class_routing(
    estimator: Any,
    X: Any,  # noqa: N803
    y: Any,
    *,
    label: Any,
    max_depth: int | None = 3,
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw how the rows of one class spread over the tree, see `plot_routing`. Needs matplotlib.

    Parameters
    ----------
    estimator : ArgminTreeClassifier, ArgminTreeRegressor or ArgminTreeClusterer
        A fitted one.
    X : table of shape (n, n_features_in_)
    y : array-like of shape (n,)
        Classes of the rows; the estimator need not know them.
    label : object
        The class to draw.
    max_depth : int or None, default=3
        Last level to draw; None: all are.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib Axes
        Its title is the class.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from prunus import ArgminTreeClassifier
    >>> from matplotlib.figure import Figure
    >>> X, y = make_blobs(100, centers=2, random_state=0)
    >>> tree = ArgminTreeClassifier(depth=2, max_epochs=5, random_state=0).fit(X, y)
    >>> plot_class_routing(tree, X, y, label=1, ax=Figure().subplots()).get_title()
    '1'
    """
    drawn = _draw(_of_class(estimator, X, y, label, max_depth), ax)
    drawn.set_title(str(label))
    return drawn


def plot_class_routings(
    estimator: Any,
    X: Any,  # noqa: N803
    y: Any,
    *,
    labels: Any = None,
    max_depth: int | None = 3,
) -> "Figure":
    """Draw how the rows of each class spread over the tree, side by side, see `plot_class_routing`. Needs matplotlib.

    Parameters
    ----------
    estimator : ArgminTreeClassifier, ArgminTreeRegressor or ArgminTreeClusterer
        A fitted one.
    X : table of shape (n, n_features_in_)
    y : array-like of shape (n,)
        Classes of the rows; the estimator need not know them.
    labels : sequence, optional
        The classes to draw; by default all in y, sorted.
    max_depth : int or None, default=3
        Last level to draw; None: all are.

    Returns
    -------
    matplotlib Figure
        A new one.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from prunus import ArgminTreeClassifier
    >>> X, y = make_blobs(100, centers=3, random_state=0)
    >>> tree = ArgminTreeClassifier(depth=2, max_epochs=5, random_state=0).fit(X, y)
    >>> figure = plot_class_routings(tree, X, y)
    >>> [ax.get_title() for ax in figure.axes]
    ['0', '1', '2']
    """
    labels = np.unique(np.asarray(y)).tolist() if labels is None else list(labels)
    if not labels:
        raise InputValueError("labels must name a class at least, however: there are none")
    drawn = [_of_class(estimator, X, y, label, max_depth) for label in labels]
    columns = int(np.ceil(np.sqrt(len(labels))))
    lines = -(-len(labels) // columns)
    width, height = _size(drawn[0].depth)
    figure = _new_figure((min(width * columns, 20.0), height * lines))
    for place, (label, one) in enumerate(zip(labels, drawn, strict=True), 1):
        _draw(one, figure.add_subplot(lines, columns, place)).set_title(str(label))
    return figure


def plot_active_nodes(estimator: Any, *, ax: "Axes | None" = None) -> "Axes":
    """Draw the percentage of nodes that are not pruned over the epochs of training. Needs matplotlib.

    It is known where rows were held out in training: with `early_stopping_rounds` or an `eval_set`.

    Parameters
    ----------
    estimator : ArgminTreeClassifier, ArgminTreeRegressor or ArgminTreeClusterer, or dict
        A fitted one or its `history_`; or several, by name.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> ax = plot_active_nodes({"epoch": [1, 2], "active_nodes": [1.0, 0.5]}, ax=Figure().subplots())
    >>> ax.lines[0].get_ydata().tolist()
    [100.0, 50.0]
    """
    several = isinstance(estimator, Mapping) and not is_history(estimator)
    curves = {name: active_nodes(one) for name, one in (estimator if several else {"": estimator}).items()}
    ax = _axes(ax, (5.0, 3.6))
    for (name, curve), style in zip(curves.items(), styles(), strict=False):
        ax.plot(curve.x, curve.y, label=str(name), color=style["color"], linestyle=style["linestyle"])
    ax.set(xlabel="epoch", ylabel="active nodes (%)", ylim=(0, 103))
    ax.locator_params(axis="x", integer=True)
    _finish(ax, legend=several)
    return ax


def plot_error_over_time(records: Any, *, ax: "Axes | None" = None) -> "Axes":
    """Draw the error of methods against the time they took to train, which has a log axis. Needs matplotlib.

    Parameters
    ----------
    records : dict
        By the name of a method: a pair of seconds and error, each a number or one for every seed, drawn as their mean
        with bars of a standard deviation; or a fitted estimator or its `history_`, drawn as a line, of losses on
        validation rows where there were some, else on training rows.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> records = {"fast": (3.0, 0.40), "good": ([500.0, 700.0], [0.33, 0.35])}
    >>> ax = plot_error_over_time(records, ax=Figure().subplots())
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['fast', 'good']
    """
    if not isinstance(records, Mapping) or not records:
        raise InputTypeError(f"records must be a dict with an entry at least, however: {records!r}")
    curves = {name: error_over_time(name, record) for name, record in records.items()}
    ax = _axes(ax, (5.0, 3.6))
    ax.set_xscale("log")
    for (name, curve), style in zip(curves.items(), styles(), strict=False):
        if len(curve.x) > 1:
            ax.plot(curve.x, curve.y, label=str(name), color=style["color"], linestyle=style["linestyle"])
        else:
            style |= {"linestyle": "none", "label": str(name), "capsize": 3, "markersize": 7}
            ax.errorbar(curve.x, curve.y, xerr=curve.x_bar, yerr=curve.y_bar, **style)
    ax.set(xlabel="training time (s)", ylabel="error")
    _label_times(ax)
    _finish(ax, legend=True)
    return ax


def _label_times(ax: "Axes") -> None:
    """Plain numbers on a log axis: those of decades, or more of them where there are few decades."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    low, high = ax.get_xlim()
    ax.xaxis.set_major_locator(LogLocator(subs=(1.0,) if high > 50 * low else (1.0, 2.0, 3.0, 5.0)))
    ax.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())


def _of_class(estimator: Any, X: Any, y: Any, label: Any, max_depth: int | None) -> Routing:  # noqa: N803
    return routing(estimator, X, rows=class_rows(estimator, y, label), max_depth=max_depth)


def _draw(one: Routing, ax: "Axes | None") -> "Axes":
    ax = _axes(ax, _size(one.depth))
    from prunus.explain.circles import draw_circles

    draw_circles(one, ax)
    return ax


def _size(depth: int) -> tuple[float, float]:
    """Inches of a figure in which the numbers of a tree can be read, as far as that is possible."""
    return float(np.clip(0.42 * 2**depth, 3.6, 20.0)), 0.8 * (depth + 1) + 0.4


def _axes(ax: Any, size: tuple[float, float]) -> "Axes":
    """The Axes given, or those of a new figure."""
    if ax is None:
        return _new_figure(size).subplots()
    from matplotlib.axes import Axes

    if not isinstance(ax, Axes):
        raise InputTypeError(f"ax must be an Axes of matplotlib, however: {type(ax).__name__}")
    return ax


def _new_figure(size: tuple[float, float]) -> "Figure":
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError("pictures need matplotlib: install it with `pip install 'prunus[plot]'`") from error
    return pyplot.figure(figsize=size, layout="constrained")


def _finish(ax: "Axes", *, legend: bool) -> None:
    ax.grid(alpha=0.3)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    if legend:
        ax.legend(frameon=False)
