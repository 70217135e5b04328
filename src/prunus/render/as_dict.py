"""The tree as plain dicts and lists."""

from math import isfinite
from typing import Any

from prunus.describe.numbers import exact_number
from prunus.describe.read import describe
from prunus.describe.record import ColumnSplit, Curve, Formula, NodeSummary, SplitWeight, TreeDescription
from prunus.describe.words import split_parts, split_text
from prunus.search.questions import Question

__all__ = ["export_dict"]


def export_dict(estimator: Any, *, feature_names: Any = None, class_names: Any = None) -> dict[str, Any]:
    """A fitted tree as nested dicts and lists of plain types, which can be written as JSON without loss.

    Parameters
    ----------
    estimator : a tree of prunus
        The fitted estimator.
    feature_names : list of n_features_in_ names, optional
        Names of the columns; by default those of the table, or "x0", "x1" and so on if it had no names.
    class_names : list of names, optional
        Names of the classes, in the order of `classes_`, or of the clusters.

    Returns
    -------
    dict
        The entries are `kind`, `routing`, `leaf`, `link`, `depth`, `n_leaves`, `classes` (None if there are none),
        `outputs` (the names of what is predicted), `curves` and `tree`, the root. A node has the fields of
        `prunus.describe.NodeSummary`, the words of its split as `condition`, which is true for rows that go left, and
        its children as `left` and `right`, which are None for a pruned child and for leaves. Nodes of a clusterer also
        have `cluster`, the name of a leaf's cluster; those of a hard tree have no `mass`. Splits of a readable tree
        also have `terms`, in the order in which they are added: a row goes left if their sum is below `threshold`. A
        term is a weighted column, or counts its weight for rows whose level is one of `levels`, and `missing` times its
        weight for rows without one; rows that lack a number of the split go left if `missing_left` is true. In its
        formulas `missing` is what a missing number counts as.

        If leaves are linear, those at which paths end have `formulas`, see `prunus.describe.Formula`: weighted sums of
        features in the units of the table, which stay between `low` and `high` unless these are None.

        If leaves are additive, a prediction is the sum of the `offset` of a leaf and of all `curves`, one for each
        column that matters, strongest first: `x` are numbers (seconds for times), between which a curve is linear and
        beyond which it is constant, or the levels of a category; dates have further curves, whose `unit` says that
        levels are weekdays, months or hours of day. `y` are the values there, one for each output, in the
        units of the target, or as scores of the classes before softmax; `missing` and `other` are those of missing
        values and of all other levels. If `link` is "log" the sum is the logarithm of the prediction, and if it is
        "logit" the one logit of the second class.

    Examples
    --------
    >>> from prunus import ArgminTreeRegressor
    >>> tree = ArgminTreeRegressor(depth=1, max_epochs=20, random_state=0).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
    >>> found = export_dict(tree, feature_names=["size"])["tree"]
    >>> found["share"], found["split"][0]["feature"], found["left"]["is_leaf"]
    (1.0, 'size', True)
    """
    tree = describe(estimator, feature_names, class_names)
    return {
        "kind": tree.kind,
        "routing": tree.routing,
        "leaf": tree.leaf,
        "link": tree.link,
        "classes": None if tree.classes is None else [_plain(label) for label in tree.classes],
        "outputs": list(tree.outputs),
        "depth": tree.depth,
        "n_leaves": tree.n_leaves,
        "curves": [_curve(curve) for curve in tree.curves],
        "tree": _node(tree, tree.root),
    }


def _curve(curve: Curve) -> dict[str, Any]:
    other = {} if curve.other is None else {"other": [_plain(value) for value in curve.other]}
    unit = {} if curve.unit is None else {"unit": curve.unit}
    return {
        "column": curve.name,
        "kind": curve.kind,
        "x": [_plain(point) for point in curve.points],
        "y": [[_plain(value) for value in values] for values in curve.values],
        "missing": [_plain(value) for value in curve.missing],
        **other,
        **unit,
    }


def _column(split: ColumnSplit) -> dict[str, Any]:
    found = {name: list(value) if isinstance(value, tuple) else value for name, value in vars(split).items()}
    return {name: value for name, value in found.items() if name != "exact" and (name != "unit" or value is not None)}


def _weights(weights: tuple[SplitWeight, ...]) -> list[dict[str, Any]]:
    return [
        {"feature": part.label, "weight": _plain(part.weight), "strength": _plain(part.strength)}
        | ({} if part.missing is None else {"missing": part.missing})
        for part in weights
    ]


def _formula(formula: Formula) -> dict[str, Any]:
    return {
        "output": formula.output,
        "constant": _plain(formula.constant),
        "weights": _weights(formula.weights),
        "low": _plain(formula.low),
        "high": _plain(formula.high),
    }


def _node(tree: TreeDescription, node: NodeSummary) -> dict[str, Any]:
    left, right = (None if child is None else _node(tree, child) for child in tree.children(node))
    own: dict[str, Any] = {"cluster": tree.clusters.get(node.node)} if tree.clusters else {}
    if node.mass is not None:
        own["mass"] = node.mass
    return {
        "node": node.node,
        "depth": node.depth,
        "share": node.share,
        "is_leaf": node.is_leaf,
        "split": _weights(node.split),
        "threshold": _plain(node.threshold),
        "condition": None if node.is_leaf else _condition(node),
        "column": None if node.column is None else _column(node.column),
        "value": [_plain(value) for value in node.value],
        "offset": [_plain(value) for value in node.offset],
        "formulas": [_formula(formula) for formula in node.formulas],
        "distribution": [_plain(value) for value in node.distribution],
        "spread": [_plain(value) for value in node.spread],
        "n_pruned": node.n_pruned,
        **own,
        **({} if node.question is None else _question(node.question)),
        "left": left,
        "right": right,
    }


def _condition(node: NodeSummary) -> str:
    if node.question is not None:
        return " ".join(split_parts(node, 1, exact_number)[0])
    return split_text(node, max_features=len(node.split), digits=6)


def _question(question: Question) -> dict[str, Any]:
    """The split of a readable tree with all that is needed to follow it."""
    terms = [
        {
            "column": column.name,
            "weight": term.weight,
            "levels": None if term.levels is None else list(term.levels),
            "missing": None if term.levels is None else term.missing,
        }
        for term, column in zip(question.split.terms, question.columns, strict=True)
    ]
    return {"terms": terms, "missing_left": question.split.missing_left}


def _plain(value: Any) -> Any:
    """A value that JSON can represent: None for NaN and infinity, and text for labels of other types."""
    if isinstance(value, float):
        return value if isfinite(value) else None
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)
