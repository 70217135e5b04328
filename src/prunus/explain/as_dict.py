"""The tree as plain dicts and lists."""

from math import isfinite
from typing import Any

from prunus.explain.summary import NodeSummary
from prunus.explain.wording import Words, read_words

__all__ = ["export_dict"]


def export_dict(estimator: Any, *, feature_names: Any = None, class_names: Any = None) -> dict[str, Any]:
    """A fitted tree as nested dicts and lists of plain types, which JSON keeps exactly.

    Parameters
    ----------
    estimator : ArgminTreeClassifier, ArgminTreeRegressor or ArgminTreeClusterer
    feature_names : list of n_features_in_ names, optional
        By default those of the table; "x0", "x1" and so on if it had none.
    class_names : list of names, optional
        Of the classes in the order of `classes_`, or of the clusters.

    Returns
    -------
    dict
        `kind`, `leaf`, `depth`, `n_leaves`; `classes` (None if there are none) and `outputs`, the names of what is
        predicted; and `tree`, the root. A node has the fields of `prunus.explain.NodeSummary`, with `left` and `right`
        for its children: None where pruned, and for leaves. Nodes of clusterers also have `cluster`: the name of a
        leaf's.

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
    """What JSON has: numbers that are finite, text, true and false; text for all other labels."""
    if isinstance(value, float):
        return value if isfinite(value) else None
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)
