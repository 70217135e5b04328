"""The tree as plain dicts and lists."""

from math import isfinite
from typing import Any

from prunus.explain.summary import NodeSummary
from prunus.explain.wording import Words, read_words

__all__ = ["export_dict"]


def export_dict(estimator: Any, *, feature_names: Any = None, class_names: Any = None) -> dict[str, Any]:
    """A fitted tree as nested dicts and lists of plain types, which can be written as JSON without loss.

    Parameters
    ----------
    estimator : ArgminTreeClassifier, ArgminTreeRegressor or ArgminTreeClusterer
        The fitted estimator.
    feature_names : list of n_features_in_ names, optional
        Names of the columns; by default those of the table, or "x0", "x1" and so on if it had no names.
    class_names : list of names, optional
        Names of the classes, in the order of `classes_`, or of the clusters.

    Returns
    -------
    dict
        The entries are `kind`, `leaf`, `depth`, `n_leaves`, `classes` (None if there are none), `outputs` (the names
        of what is predicted) and `tree`, the root. A node has the fields of `prunus.explain.NodeSummary`, and its
        children as `left` and `right`, which are None for a pruned child and for leaves. Nodes of a clusterer also have
        `cluster`, the name of a leaf's cluster.

    Examples
    --------
    >>> from prunus import ArgminTreeRegressor
    >>> tree = ArgminTreeRegressor(depth=1, max_epochs=20, random_state=0).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
    >>> found = export_dict(tree, feature_names=["size"])["tree"]
    >>> found["share"], found["split"][0]["feature"], found["left"]["is_leaf"]
    (1.0, 'size', True)
    """
    words = read_words(estimator, feature_names, class_names)
    summary = words.summary
    return {
        "kind": summary.kind,
        "leaf": summary.leaf,
        "classes": None if summary.classes is None else [_plain(label) for label in summary.classes],
        "outputs": list(summary.outputs),
        "depth": summary.depth,
        "n_leaves": summary.n_leaves,
        "tree": _node(words, words.root),
    }


def _node(words: Words, node: NodeSummary) -> dict[str, Any]:
    left, right = (None if child is None else _node(words, child) for child in words.children(node))
    cluster = {"cluster": words.clusters.get(node.node)} if words.clusters else {}
    return {
        "node": node.node,
        "depth": node.depth,
        "share": node.share,
        "mass": node.mass,
        "is_leaf": node.is_leaf,
        "split": [
            {"feature": part.label, "weight": _plain(part.weight), "strength": _plain(part.strength)}
            for part in node.split
        ],
        "threshold": _plain(node.threshold),
        "value": [_plain(value) for value in node.value],
        "distribution": [_plain(value) for value in node.distribution],
        "spread": [_plain(value) for value in node.spread],
        "n_pruned": node.n_pruned,
        **cluster,
        "left": left,
        "right": right,
    }


def _plain(value: Any) -> Any:
    """A value that JSON can represent: None for NaN and infinity, and text for labels of other types."""
    if isinstance(value, float):
        return value if isfinite(value) else None
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)
