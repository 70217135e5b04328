"""The description of a fitted tree, by the names that the user chose."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from prunus.data import OutputColumn, TableEncoder
from prunus.describe.functions import (
    LeafCurves,
    grouped,
    leaf_curves,
    leaf_formulas,
    scaled,
    split_column,
    table_sum,
    told_scale,
)
from prunus.describe.record import Formula, NodeSummary, SplitWeight, TreeSummary
from prunus.describe.rows import RowsInTree, agreement, send_rows
from prunus.describe.searched import renamed, summarize_readable
from prunus.errors import InputTypeError, InputValueError
from prunus.estimators.readable import ReadableTree
from prunus.estimators.single_tree import check_single_tree
from prunus.search.columns import KnownColumn
from prunus.targets import Target, remarks
from prunus.targets.links import IDENTITY, LOG
from prunus.tree import Tree
from prunus.tree.prediction import node_outputs

__all__ = [
    "YES_OR_NO",
    "NodeSummary",
    "SplitWeight",
    "TreeSummary",
    "Words",
    "read_words",
    "summarize",
    "traits",
    "tree_summary",
]

NOTABLE = 0.5
"""A feature of a cluster is shown if its mean is this many standard deviations from the mean of the table."""

YES_OR_NO = ("boolean", "category", "infrequent", "missing", "calendar")
"""Kinds of encoded columns that are 0 or 1 before they are scaled."""


@dataclass(frozen=True)
class Words:
    """The summary of a tree, with the names that users chose."""

    summary: TreeSummary
    nodes: dict[int, NodeSummary]
    clusters: dict[int, str]
    """The name of the cluster of each leaf, by node; empty for estimators that do not cluster."""
    yes_or_no: tuple[bool, ...]
    """Which outputs of a clusterer are 0 or 1, such as "color = red"."""
    columns: tuple[OutputColumn, ...] = ()
    """The encoded columns, by the names that the user chose; empty for readable trees, which encode nothing."""
    known: tuple[KnownColumn, ...] = ()
    """What a readable tree knows of the columns of the table, by these names; empty for other trees."""

    @property
    def root(self) -> NodeSummary:
        """The node that all rows pass."""
        return self.nodes[0]

    def children(self, node: NodeSummary) -> tuple[NodeSummary | None, NodeSummary | None]:
        """The left and the right child of a node; None for a child that was pruned."""
        return self.nodes.get(2 * node.node + 1), self.nodes.get(2 * node.node + 2)

    def displayed(self, longest: int | None = None) -> "Words":
        """The same, with names on one line of at most `longest` characters."""
        summary = replace(self.summary, outputs=tuple(_line(name, longest) for name in self.summary.outputs))
        curves = tuple(replace(curve, name=_line(curve.name, longest)) for curve in self.summary.curves)
        summary = replace(summary, curves=curves)
        nodes = {t: _in_lines(node, longest) for t, node in self.nodes.items()}
        clusters = {t: _line(name, longest) for t, name in self.clusters.items()}
        return replace(self, summary=summary, nodes=nodes, clusters=clusters)


def read_words(estimator: Any, feature_names: Any = None, class_names: Any = None) -> Words:
    """The summary of a fitted tree, with these names for the columns of the table and for the classes or clusters."""
    check_single_tree(estimator)
    if isinstance(estimator, ReadableTree):
        return _readable_words(estimator, feature_names, class_names)
    summary, tree, target = summarize(estimator), estimator.tree_, estimator.target_
    columns = _renamed(estimator.encoder_.columns_, _names("feature_names", feature_names, estimator.n_features_in_))
    nodes = {node.node: _cleaned(_relabeled(node, columns)) for node in summary.nodes}
    outputs: Sequence[str] = summary.outputs
    clusters: dict[int, str] = {}
    yes_or_no: tuple[bool, ...] = ()
    if target.task == "classes":
        outputs = _names("class_names", class_names, len(outputs)) or outputs
    elif target.task == "clusters":
        reconstructed = columns if target.positions is None else [columns[i] for i in target.positions]
        outputs = [column.label for column in reconstructed]
        yes_or_no = tuple(column.kind in YES_OR_NO for column in reconstructed)
        names = _names("class_names", class_names, estimator.n_clusters_)
        labels = {t: int(tree.cluster[t]) for t, node in nodes.items() if node.is_leaf}
        clusters = {t: f"cluster {k}" if names is None else names[k] for t, k in labels.items()}
    names_of = {column.feature: column.name for column in columns}
    curves = tuple(replace(curve, name=names_of[curve.feature]) for curve in summary.curves)
    nodes = _with_names(nodes, target, summary.outputs, tuple(outputs))
    summary = replace(summary, outputs=tuple(outputs), nodes=tuple(nodes.values()), curves=curves)
    return Words(summary, nodes, clusters, yes_or_no, tuple(columns))


def _readable_words(estimator: ReadableTree, feature_names: Any, class_names: Any) -> Words:
    """The summary of a readable tree, with these names."""
    names = _names("feature_names", feature_names, estimator.n_features_in_)
    is_classes = estimator.target_.task == "classes"
    classes = _names("class_names", class_names, estimator.target_.n_outputs) if is_classes else None
    summary = summarize_readable(estimator, names, classes)
    known = renamed(estimator.columns_, names)
    return Words(summary, {node.node: node for node in summary.nodes}, {}, (), known=known)


def traits(words: Words, node: NodeSummary, max_features: int) -> list[str]:
    """The features in which the rows of a clusterer's node differ most from the whole table, such as "high age"."""
    mean, root = node.distribution, words.root
    found = []
    for i, name in enumerate(words.summary.outputs):
        away = (mean[i] - root.distribution[i]) / root.spread[i] if root.spread[i] > 0 else 0.0
        if abs(away) >= NOTABLE:
            found.append((abs(away), _trait(name, yes_or_no=words.yes_or_no[i], more=away > 0)))
    found.sort(key=lambda pair: -pair[0])
    return [trait for _, trait in found[:max_features]]


def _names(option: str, names: Any, n: int) -> list[str] | None:
    if names is None or isinstance(names, bool):
        return None
    if isinstance(names, str) or not isinstance(names, Iterable) or getattr(names, "ndim", 1) != 1:
        raise InputTypeError(f"{option} must be a list of names, got {names!r}")
    listed = [str(name) for name in names]
    if len(listed) != n:
        raise InputValueError(f"{option} must contain {n} elements, got {len(listed)}")
    return listed


def _cleaned(node: NodeSummary) -> NodeSummary:
    """The node, with shares of exactly 0 for classes without rows, where rounding has left tiny numbers."""
    if node.spread:
        return node
    return replace(node, distribution=tuple(0.0 if share < 1e-9 else share for share in node.distribution))


def _renamed(columns: list[OutputColumn], features: list[str] | None) -> list[OutputColumn]:
    """The encoded columns, with the names that the user gave for the columns of the table."""
    return columns if features is None else [replace(column, name=features[column.feature]) for column in columns]


def _relabeled(node: NodeSummary, columns: list[OutputColumn]) -> NodeSummary:
    column = None if node.column is None else replace(node.column, name=columns[node.split[0].column].name)
    return replace(_changed(node, lambda part: columns[part.column].label), column=column)


def _with_names(
    nodes: dict[int, NodeSummary], target: Any, before: tuple[str, ...], now: tuple[str, ...]
) -> dict[int, NodeSummary]:
    """The nodes, with the names that the user gave for the classes in the formulas of leaves."""
    if before == now or target.task != "classes":
        return nodes
    names = dict(zip(told_scale(target, before).names, told_scale(target, now).names, strict=True))
    return {
        t: replace(node, formulas=tuple(replace(formula, output=names[formula.output]) for formula in node.formulas))
        for t, node in nodes.items()
    }


def _changed(node: NodeSummary, label: Callable[[SplitWeight], str]) -> NodeSummary:
    """The node with other labels of the features in its split and in its formulas."""

    def changed(weights: tuple[SplitWeight, ...]) -> tuple[SplitWeight, ...]:
        return tuple(replace(part, label=label(part)) for part in weights)

    formulas = tuple(replace(formula, weights=changed(formula.weights)) for formula in node.formulas)
    return replace(node, split=changed(node.split), formulas=formulas)


def _in_lines(node: NodeSummary, longest: int | None) -> NodeSummary:
    """The node with names on one line of at most `longest` characters."""

    def lines(names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(_line(name, longest) for name in names)

    own = node.column
    if own is not None:
        own = replace(own, name=_line(own.name, longest), left=lines(own.left), right=lines(own.right))
    node = _changed(node, lambda part: _line(part.label, longest))
    question = None if node.question is None else node.question.renamed(lambda name: _line(name, longest))
    formulas = tuple(replace(formula, output=_line(formula.output, longest)) for formula in node.formulas)
    return replace(node, column=own, formulas=formulas, question=question)


def _line(name: str, longest: int | None) -> str:
    name = " ".join("".join(c if c.isprintable() else " " for c in name).split())
    if longest is None or len(name) <= longest:
        return name
    return name[: (longest - 1) // 2 + 1] + "…" + name[len(name) - (longest - 2) // 2 :]


def _trait(name: str, *, yes_or_no: bool, more: bool) -> str:
    if yes_or_no:
        return f"{'often' if more else 'seldom'} {name}"
    return f"{'high' if more else 'low'} {name}"


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
