"""The description of a fitted tree, by the names that the user chose: the one place that reads estimators."""

from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from prunus.data import OutputColumn
from prunus.describe.functions import LeafCurves, grouped, leaf_curves, leaf_formulas, scaled, split_column, table_sum
from prunus.describe.record import (
    ColumnSplit,
    Formula,
    LearnedTree,
    NodeSummary,
    SplitWeight,
    TreeDescription,
    TreeSummary,
)
from prunus.describe.rows import LearnedRows, Rows, agreement, send_rows
from prunus.describe.searched import describe_searched
from prunus.errors import InputTypeError, InputValueError
from prunus.estimators.readable import ReadableTree
from prunus.estimators.single_tree import check_single_tree
from prunus.targets import Target, remarks
from prunus.targets.links import IDENTITY, LOG
from prunus.tree import Tree
from prunus.tree.prediction import node_outputs

__all__ = ["YES_OR_NO", "describe", "tree_summary", "with_agreement"]

Doubles = npt.NDArray[np.float64]

YES_OR_NO = ("boolean", "category", "infrequent", "missing", "calendar")
"""Kinds of encoded columns that are 0 or 1 before they are scaled."""


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
    tree = describe(estimator)
    if X is not None:
        tree = with_agreement(tree, send_rows(tree, X))
    return TreeSummary(**{field.name: getattr(tree, field.name) for field in fields(TreeSummary)})


def describe(estimator: Any, feature_names: Any = None, class_names: Any = None) -> TreeDescription:
    """A fitted tree, with these names for the columns of the table and for the classes or clusters."""
    check_single_tree(estimator)
    features = _names("feature_names", feature_names, estimator.n_features_in_)
    target = estimator.target_
    n_names = estimator.n_clusters_ if target.is_clusters else len(target.classes or ())
    names = _names("class_names", class_names, n_names) if n_names else None
    if isinstance(estimator, ReadableTree):
        return describe_searched(estimator, features, names)
    return _describe_learned(estimator, target, features, names)


def with_agreement(tree: TreeDescription, rows: Rows) -> TreeDescription:
    """The description with the agreement of hard and soft predictions on these rows."""
    if not isinstance(tree, LearnedTree) or not isinstance(rows, LearnedRows) or tree.model.is_hard:
        return tree
    agreed = agreement(rows)
    return replace(tree, agreement=agreed, warning=remarks(tree.target.task, agreed, all_pruned=tree.model.all_pruned))


def _describe_learned(estimator: Any, target: Any, features: list[str] | None, names: list[str] | None) -> LearnedTree:
    tree, encoder = estimator.tree_, estimator.encoder_
    inputs = tuple(encoder.columns_)
    if features is not None:
        inputs = tuple(replace(column, name=features[column.feature]) for column in inputs)
    outputs: tuple[str, ...] = target.output_names(encoder)
    clusters: dict[int, str] = {}
    yes_or_no: tuple[bool, ...] = ()
    if target.is_clusters:
        own = inputs if target.positions is None else [inputs[i] for i in target.positions]
        outputs, yes_or_no = tuple(one.label for one in own), tuple(one.kind in YES_OR_NO for one in own)
        labels = {t: int(tree.cluster[t]) for t in np.flatnonzero(tree.kept & tree.is_leaf).tolist()}
        clusters = {t: f"cluster {k}" if names is None else names[k] for t, k in labels.items()}
    elif names is not None:
        outputs = tuple(names)
    curves = _curves(tree, target, inputs)
    return LearnedTree(
        kind=type(estimator).__name__,
        leaf=tree.leaves.kind,
        depth=tree.depth,
        n_leaves=tree.n_leaves,
        n_nodes=tree.n_nodes,
        n_active=int((tree.mass > 0).sum()),
        n_parameters=tree.n_parameters,
        classes=target.classes,
        outputs=outputs,
        nodes=_nodes(tree, target, encoder, inputs, outputs, curves),
        agreement=None,
        warning=remarks(target.task, tree.agreement, all_pruned=tree.all_pruned),
        routing=tree.routing,
        link=target.link.name,
        curves=() if curves is None else tuple(scaled(curve, _units(target, outputs)) for curve in curves.curves),
        target=target,
        clusters=clusters,
        yes_or_no=yes_or_no,
        model=tree,
        encoder=encoder,
        inputs=inputs,
    )


def _curves(tree: Tree, target: Target, inputs: Sequence[OutputColumn]) -> LeafCurves | None:
    """The curves of additive leaves, in standard units; None if leaves are others."""
    leaves = tree.leaves
    if leaves.shared is None or leaves.slope is not None or leaves.network is not None or target.is_clusters:
        return None
    return leaf_curves(inputs, leaves.shared)


def _units(target: Target, outputs: tuple[str, ...]) -> Doubles:
    """The size of one standard unit of each output, (k,)."""
    is_scaled = target.link is IDENTITY
    return np.diag(target.display_scale(outputs).matrix) if is_scaled else np.ones(target.n_outputs)


def _offsets(tree: Tree, target: Target, curves: LeafCurves | None) -> Doubles:
    """What paths to each node add to the curves, (T, k)."""
    if curves is None:
        return np.zeros((tree.n_nodes, 0))
    outputs = node_outputs(replace(tree, leaves=replace(tree.leaves, shared=None))) + curves.offset
    if target.is_classes:
        return outputs
    values = target.predictions(outputs)
    return np.log(values) if target.link is LOG else values


def _nodes(
    tree: Tree,
    target: Target,
    encoder: Any,
    inputs: Sequence[OutputColumn],
    outputs: tuple[str, ...],
    curves: LeafCurves | None,
) -> tuple[NodeSummary, ...]:
    values = target.predictions(node_outputs(tree)) if tree.leaves.is_constant else np.zeros((tree.n_nodes, 0))
    offsets = _offsets(tree, target, curves)
    mean, spread = target.node_units(tree.mean, tree.spread, encoder)
    if target.is_classes:
        mean = np.where(mean < 1e-9, 0.0, mean)  # rounding has left tiny numbers for classes without rows
    is_formula = tree.leaves.slope is not None and tree.leaves.is_linear and not target.is_clusters
    scale = target.display_scale(outputs) if is_formula else None

    def formulas(t: int) -> tuple[Formula, ...]:
        ends = bool(tree.is_leaf[t]) or not tree.kept[2 * t + 1 : 2 * t + 3].all()
        shares = None if not target.is_classes else mean[t]
        return () if scale is None or not ends else leaf_formulas(tree, inputs, scale, t, shares)

    kept = np.flatnonzero(tree.kept).tolist()
    splits = _splits(tree, inputs, kept)
    return tuple(
        NodeSummary(
            node=t,
            depth=(t + 1).bit_length() - 1,
            share=float(tree.share[t]),
            mass=None if tree.is_hard else float(tree.mass[t]),
            is_leaf=bool(tree.is_leaf[t]),
            **splits.get(t, {}),
            value=tuple(values[t].tolist()),
            distribution=tuple(mean[t].tolist()),
            spread=tuple(spread[t].tolist()),
            n_pruned=int((~tree.kept[2 * t + 1 : 2 * t + 3]).sum()),
            offset=tuple(offsets[t].tolist()),
            formulas=formulas(t),
        )
        for t in kept
    )


def _splits(tree: Tree, inputs: Sequence[OutputColumn], kept: Sequence[int]) -> dict[int, dict[str, Any]]:
    """Weights, threshold and single column of each linear split, in the units of the table."""
    if tree.weight is None or tree.bias is None:
        return {}
    groups = grouped(inputs)
    found: dict[int, dict[str, Any]] = {}
    for t in kept:
        if tree.is_leaf[t]:
            continue
        weights, constant = table_sum(inputs, tree.weight[t], float(tree.bias[t]))
        column, features = None, {weight.feature for weight in weights}
        if len(features) == 1:
            own = groups[features.pop()]
            column = split_column([inputs[i] for i in own], tree.weight[t, own], float(tree.bias[t]))
            if column is not None and not _missing_arrive(found, t, weights[0].feature):
                column = column.without_missing()
        found[t] = {"split": weights, "threshold": -constant, "column": column}
    return found


def _missing_arrive(splits: dict[int, dict[str, Any]], t: int, feature: int) -> bool:
    """Whether rows without a value of a column arrive at a node, or a split above sends them elsewhere."""
    while t > 0:
        is_left, t = t % 2 == 1, (t - 1) // 2
        weights: tuple[SplitWeight, ...] = splits[t]["split"]
        column: ColumnSplit | None = splits[t]["column"]
        if column is not None and weights[0].feature == feature and column.missing_left not in (None, is_left):
            return False
    return True


def _names(option: str, names: Any, n: int) -> list[str] | None:
    """The names that a user gave, which have to be n; True and False, as of scikit-learn, are none."""
    if names is None or isinstance(names, bool):
        return None
    if isinstance(names, str) or not isinstance(names, Iterable) or getattr(names, "ndim", 1) != 1:
        raise InputTypeError(f"{option} must be a list of names, got {names!r}")
    listed = [str(name) for name in names]
    if len(listed) != n:
        raise InputValueError(f"{option} must contain {n} elements, got {len(listed)}")
    return listed
