"""The summary of a fitted tree."""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from prunus.data import TableEncoder
from prunus.estimators.readable import ReadableTree
from prunus.estimators.single_tree import check_single_tree
from prunus.explain.column_splits import split_column
from prunus.explain.curves import LeafCurves, grouped, leaf_curves, scaled
from prunus.explain.formulas import Formula, SplitWeight, leaf_formulas, table_sum
from prunus.explain.readable import summarize_readable
from prunus.explain.rows import RowsInTree, agreement, send_rows
from prunus.explain.scale import told_scale
from prunus.explain.summary_record import NodeSummary, TreeSummary
from prunus.targets import Target, remarks
from prunus.targets.links import IDENTITY, LOG
from prunus.tree import Tree
from prunus.tree.prediction import node_outputs

__all__ = ["NodeSummary", "SplitWeight", "TreeSummary", "summarize", "tree_summary"]

Doubles = npt.NDArray[np.float64]


def tree_summary(estimator: Any, X: Any = None) -> TreeSummary:  # noqa: N803
    """Describe the tree of a fitted estimator.

    Parameters
    ----------
    estimator : a tree of prunus
        The fitted estimator.
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
    check_single_tree(estimator)
    if isinstance(estimator, ReadableTree):
        if X is not None:
            estimator.apply(X)  # every row follows one path, so that there is nothing to compare
        return summarize_readable(estimator)
    return summarize(estimator, None if X is None else send_rows(estimator, X))


def summarize(estimator: Any, rows: RowsInTree | None = None) -> TreeSummary:
    """The summary of an estimator, with the agreement of hard and soft predictions on these rows."""
    tree, target = estimator.tree_, estimator.target_
    agreed = None if rows is None or tree.is_hard else agreement(tree, target, rows)
    curves = _curves(tree, target, estimator.encoder_)
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
        nodes=_nodes(tree, target, estimator.encoder_, curves),
        agreement=agreed,
        warning=remarks(target.task, tree.agreement if agreed is None else agreed, all_pruned=tree.all_pruned),
        routing=tree.routing,
        link=target.link.name,
        curves=() if curves is None else tuple(scaled(curve, _units(target)) for curve in curves.curves),
    )


def _curves(tree: Tree, target: Target, encoder: TableEncoder) -> LeafCurves | None:
    """The curves of additive leaves, in standard units; None if leaves are others."""
    leaves = tree.leaves
    if leaves.shared is None or leaves.slope is not None or leaves.network is not None or target.task == "clusters":
        return None
    return leaf_curves(encoder.columns_, leaves.shared)


def _units(target: Target) -> Doubles:
    """The size of one standard unit of each output, (k,)."""
    k = target.n_outputs
    if target.link is not IDENTITY:
        return np.ones(k)
    unit: Doubles = target.predictions(np.ones((1, k)))[0] - target.predictions(np.zeros((1, k)))[0]
    return unit


def _offsets(tree: Tree, target: Target, curves: LeafCurves | None) -> Doubles:
    """What paths to each node add to the curves, (T, k)."""
    if curves is None:
        return np.zeros((tree.n_nodes, 0))
    outputs = node_outputs(replace(tree, leaves=replace(tree.leaves, shared=None))) + curves.offset
    if target.task == "classes":
        return outputs
    values = target.predictions(outputs)
    return np.log(values) if target.link is LOG else values


def _nodes(tree: Tree, target: Target, encoder: TableEncoder, curves: LeafCurves | None) -> tuple[NodeSummary, ...]:
    values = target.predictions(node_outputs(tree)) if tree.leaves.is_constant else np.zeros((tree.n_nodes, 0))
    offsets, groups = _offsets(tree, target, curves), grouped(encoder.columns_)
    mean, spread = target.node_units(tree.mean, tree.spread, encoder)
    is_formula = tree.leaves.slope is not None and tree.leaves.is_linear and target.task != "clusters"
    scale = told_scale(target, target.output_names(encoder)) if is_formula else None

    def formulas(t: int) -> tuple[Formula, ...]:
        ends = bool(tree.is_leaf[t]) or not tree.kept[2 * t + 1 : 2 * t + 3].all()
        shares = mean[t] if target.task == "classes" else None
        return () if scale is None or not ends else leaf_formulas(tree, encoder.columns_, scale, t, shares)

    splits = {t: _split(tree, encoder, groups, t) for t in np.flatnonzero(tree.kept).tolist()}
    for t, split in splits.items():
        if split.get("column") is not None and not _missing_arrive(splits, t):
            split["column"] = split["column"].without_missing()
    return tuple(
        NodeSummary(
            node=t,
            depth=(t + 1).bit_length() - 1,
            share=float(tree.share[t]),
            mass=None if tree.is_hard else float(tree.mass[t]),
            is_leaf=bool(tree.is_leaf[t]),
            **splits[t],
            value=tuple(values[t].tolist()),
            distribution=tuple(mean[t].tolist()),
            spread=tuple(spread[t].tolist()),
            n_pruned=int((~tree.kept[2 * t + 1 : 2 * t + 3]).sum()),
            offset=tuple(offsets[t].tolist()),
            formulas=formulas(t),
        )
        for t in np.flatnonzero(tree.kept).tolist()
    )


def _missing_arrive(splits: dict[int, dict[str, Any]], t: int) -> bool:
    """Whether rows without a value of the column that a node splits arrive there, or a split above sends them away."""
    feature, child = splits[t]["split"][0].feature, t
    while child > 0:
        parent = (child - 1) // 2
        column = splits[parent].get("column")
        if column is not None and splits[parent]["split"][0].feature == feature:
            is_left = child == 2 * parent + 1
            if column.missing_left is not None and column.missing_left is not is_left:
                return False
        child = parent
    return True


def _split(tree: Tree, encoder: TableEncoder, groups: dict[int, list[int]], t: int) -> dict[str, Any]:
    """Weights and threshold in the units of the table."""
    if tree.is_leaf[t] or tree.weight is None or tree.bias is None:
        return {}
    weights, constant = table_sum(encoder.columns_, tree.weight[t], float(tree.bias[t]))
    features = {weight.feature for weight in weights}
    only = None
    if len(features) == 1:
        own = groups[features.pop()]
        only = split_column([encoder.columns_[i] for i in own], tree.weight[t, own], float(tree.bias[t]))
    return {"split": weights, "threshold": -constant, "column": only}
