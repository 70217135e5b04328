"""The record that every picture of a tree is made from."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from prunus.errors import InputTypeError
from prunus.estimators.base import ArgminTree

__all__ = ["NodeSummary", "SplitWeight", "TreeSummary", "tree_summary"]


@dataclass(frozen=True)
class SplitWeight:
    """The part of one feature, or of one level of a category, in a split."""

    label: str
    """Such as "age" or "color = red"."""
    weight: float
    """Change of the score for one unit of the feature, as it is in the table; for a piece, over all of it."""
    strength: float
    """Change of the score for one standard unit of the feature: comparable between features."""


@dataclass(frozen=True)
class NodeSummary:
    """A node of the kept tree."""

    node: int
    """In heap order: root 0, children of t are 2t+1 (left) and 2t+2."""
    depth: int
    share: float
    """Of the training samples whose path passes the node."""
    mass: float
    """How much of a sample the node can receive: 1 is kept wholly."""
    is_leaf: bool
    split: tuple[SplitWeight, ...] = ()
    """Strongest first; empty for leaves and for splits that are not linear. A row goes left if the sum is below..."""
    threshold: float | None = None
    """... this."""
    value: tuple[float, ...] = ()
    """Of a tree with constant leaves: what a path that ends here predicts, probabilities of the classes or values."""
    distribution: tuple[float, ...] = ()
    """Of the training samples whose path passes the node: shares of the classes, or means of the outputs."""
    spread: tuple[float, ...] = ()
    """Standard deviations of the outputs; empty for classes."""
    n_pruned: int = 0
    """Children that were pruned, with all that is below them: samples that would go there end here."""


@dataclass(frozen=True)
class TreeSummary:
    """A fitted estimator's tree."""

    kind: str
    leaf: str
    depth: int
    n_leaves: int
    n_nodes: int
    """Of the complete tree before pruning."""
    n_active: int
    """Nodes of it with a positive mass."""
    n_parameters: int
    classes: tuple[Any, ...] | None
    outputs: tuple[str, ...]
    """Names of the classes, or of what is predicted: "y", "y0" and so on, or the features that clusters reconstruct."""
    nodes: tuple[NodeSummary, ...]
    """The kept ones, parents before children."""
    agreement: float | None
    """Of predictions along one path with those along all routes, on the rows given: the share of equal labels, or R^2
    of one with the other; for clusters the share of rows whose largest route is their path. None if no rows were
    given."""


def tree_summary(estimator: Any, X: Any = None) -> TreeSummary:  # noqa: N803
    """Describe the tree of a fitted estimator.

    Parameters
    ----------
    estimator : ArgminTreeClassifier, ArgminTreeRegressor or ArgminTreeClusterer
    X : table of shape (n, n_features_in_), optional
        Rows on which hard and soft predictions are compared.

    Returns
    -------
    TreeSummary

    Examples
    --------
    >>> from prunus import ArgminTreeRegressor
    >>> tree = ArgminTreeRegressor(depth=1, max_epochs=20, random_state=0).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
    >>> summary = tree_summary(tree, [[0.0], [2.0]])
    >>> summary.nodes[0].share, summary.n_leaves
    (1.0, 2)
    """
    if not isinstance(estimator, ArgminTree):
        raise InputTypeError(f"tree_summary describes the estimators of prunus, however: {type(estimator).__name__}")
    check_is_fitted(estimator)
    tree = estimator.tree_
    classes = getattr(estimator, "classes_", None)
    return TreeSummary(
        kind=type(estimator).__name__,
        leaf=estimator._leaf_kind(),
        depth=tree.depth,
        n_leaves=tree.n_leaves,
        n_nodes=len(tree.kept),
        n_active=int((tree.mass > 0).sum()),
        n_parameters=sum(p.numel() for p in estimator.model_.parameters()),
        classes=None if classes is None else tuple(classes.tolist()),
        outputs=_outputs(estimator),
        nodes=tuple(_node(estimator, int(t)) for t in np.flatnonzero(tree.kept)),
        agreement=None if X is None else _agreement(estimator, X),
    )


def _node(estimator: Any, t: int) -> NodeSummary:
    tree = estimator.tree_
    is_leaf = bool(tree.is_leaf[t])
    split, threshold = ((), None) if is_leaf or tree.weight is None else _split(estimator, t)
    distribution, spread = _distribution(estimator, t)
    children = tree.kept[2 * t + 1 : 2 * t + 3]
    return NodeSummary(
        node=t,
        depth=int(np.log2(t + 1)),
        share=float(tree.share[t]),
        mass=float(tree.mass[t]),
        is_leaf=is_leaf,
        split=split,
        threshold=threshold,
        value=estimator._node_value(t),
        distribution=distribution,
        spread=spread,
        n_pruned=len(children) - int(children.sum()),
    )


def _split(estimator: Any, t: int) -> tuple[tuple[SplitWeight, ...], float]:
    """Weights in the units of the table: encoded inputs are (x - center) / scale."""
    tree = estimator.tree_
    weights, threshold = [], -float(tree.bias[t])
    for column, strength in zip(estimator.encoder_.columns_, tree.weight[t].tolist(), strict=True):
        if strength == 0 or column.low == column.high:
            continue
        if column.piece:  # 0 below it: it does not move the threshold
            weights.append(SplitWeight(column.label, strength, strength))
            continue
        weights.append(SplitWeight(column.label, strength / column.scale, strength))
        threshold += strength * column.center / column.scale
    weights.sort(key=lambda weight: -abs(weight.strength))
    return tuple(weights), threshold


def _outputs(estimator: Any) -> tuple[str, ...]:
    if hasattr(estimator, "classes_"):
        return tuple(map(str, estimator.classes_.tolist()))
    if hasattr(estimator, "labels_"):
        return tuple(column.label for column in _reconstructed(estimator))
    k = estimator._n_outputs()
    return ("y",) if k == 1 else tuple(f"y{i}" for i in range(k))


def _distribution(estimator: Any, t: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Means, or shares of classes, and spreads: in the units of the table."""
    passing = estimator.tree_.passing
    if hasattr(estimator, "classes_"):
        return tuple(passing.mean[t].tolist()), ()
    mean, spread = estimator._of_outputs(passing.mean[t]), passing.spread[t] * estimator.target_scale_
    if hasattr(estimator, "labels_"):  # from encoded features
        center, scale = np.transpose([(column.center, column.scale) for column in _reconstructed(estimator)])
        mean, spread = mean * scale + center, spread * scale
    return tuple(mean.tolist()), tuple(spread.tolist())


def _reconstructed(estimator: Any) -> list[Any]:
    """Encoded features that a clusterer predicts."""
    columns, wanted = estimator.encoder_.columns_, estimator._target_columns
    return columns if wanted is None else [columns[i] for i in wanted]


def _agreement(estimator: Any, X: Any) -> float:  # noqa: N803
    if hasattr(estimator, "labels_"):
        leaves = np.flatnonzero(estimator.tree_.is_leaf)
        return float(np.mean(leaves[estimator.transform(X)[:, leaves].argmax(1)] == estimator.apply(X)))
    soft, hard = estimator.predict(X), estimator.predict(X, hard=True)
    if hasattr(estimator, "classes_"):
        return float(np.mean(soft == hard))
    spread = np.sum((soft - soft.mean(0)) ** 2)
    return float(1 - np.sum((soft - hard) ** 2) / spread) if spread > 0 else float(np.allclose(soft, hard))
