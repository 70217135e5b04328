"""The record that every picture of a tree is made from."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from prunus.data import TableEncoder
from prunus.errors import InputTypeError
from prunus.estimators.base import ArgminTree
from prunus.explain.rows import RowsInTree, agreement, send_rows
from prunus.targets import Target
from prunus.tree import Tree
from prunus.tree.prediction import node_outputs

__all__ = ["NodeSummary", "SplitWeight", "TreeSummary", "check_estimator", "summarize", "tree_summary"]


@dataclass(frozen=True)
class SplitWeight:
    """The part of one feature, or of one level of a category, in a split."""

    label: str
    """Such as "age" or "color = red"."""
    weight: float
    """Change of the score for one unit of the feature, as it is in the table; for a piece, over all of it."""
    strength: float
    """Change of the score for one standard unit of the feature: comparable between features."""
    column: int = -1
    """Position of the encoded column in ``encoder_.columns_``."""


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
    check_estimator(estimator, "tree_summary")
    return summarize(estimator, None if X is None else send_rows(estimator, X))


def check_estimator(estimator: Any, function: str) -> None:
    """Raise an error unless it is a fitted estimator of prunus."""
    if not isinstance(estimator, ArgminTree):
        raise InputTypeError(f"{function} takes the estimators of prunus, got {type(estimator).__name__}")
    check_is_fitted(estimator)


def summarize(estimator: Any, rows: RowsInTree | None = None) -> TreeSummary:
    """The summary, with the agreement of predictions for these rows."""
    tree, target = estimator.tree_, estimator.target_
    return TreeSummary(
        kind=type(estimator).__name__,
        leaf=tree.leaves.kind,
        depth=tree.depth,
        n_leaves=tree.n_leaves,
        n_nodes=tree.n_nodes,
        n_active=int((tree.mass > 0).sum()),
        n_parameters=tree.n_parameters,
        classes=tuple(target.labels.tolist()) if target.task == "classes" else None,
        outputs=target.output_names(estimator.encoder_),
        nodes=_nodes(tree, target, estimator.encoder_),
        agreement=None if rows is None else agreement(tree, target, rows),
    )


def _nodes(tree: Tree, target: Target, encoder: TableEncoder) -> tuple[NodeSummary, ...]:
    values = target.predictions(node_outputs(tree)) if tree.leaves.is_constant else np.zeros((tree.n_nodes, 0))
    mean, spread = target.node_units(tree.mean, tree.spread, encoder)
    return tuple(
        NodeSummary(
            node=t,
            depth=(t + 1).bit_length() - 1,
            share=float(tree.share[t]),
            mass=float(tree.mass[t]),
            is_leaf=bool(tree.is_leaf[t]),
            **_split(tree, encoder, t),
            value=tuple(values[t].tolist()),
            distribution=tuple(mean[t].tolist()),
            spread=tuple(spread[t].tolist()),
            n_pruned=int((~tree.kept[2 * t + 1 : 2 * t + 3]).sum()),
        )
        for t in np.flatnonzero(tree.kept).tolist()
    )


def _split(tree: Tree, encoder: TableEncoder, t: int) -> dict[str, Any]:
    """Weights and threshold in the units of the table: encoded numbers are (x - center) / scale."""
    if tree.is_leaf[t] or tree.weight is None or tree.bias is None:
        return {}
    weights, threshold = [], -float(tree.bias[t])
    for i, (column, strength) in enumerate(zip(encoder.columns_, tree.weight[t].tolist(), strict=True)):
        if strength == 0 or column.low == column.high:
            continue
        if column.piece:  # 0 below it: it does not move the threshold
            weights.append(SplitWeight(column.label, strength, strength, i))
            continue
        weights.append(SplitWeight(column.label, strength / column.scale, strength, i))
        threshold += strength * column.center / column.scale
    weights.sort(key=lambda weight: -abs(weight.strength))
    return {"split": tuple(weights), "threshold": threshold}
