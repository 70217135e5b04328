"""The summary of a tree with the names that users chose."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from prunus.data import OutputColumn
from prunus.errors import InputTypeError, InputValueError
from prunus.estimators.readable import ReadableTree
from prunus.estimators.single_tree import check_single_tree
from prunus.explain.formulas import SplitWeight
from prunus.explain.readable import renamed, summarize_readable
from prunus.explain.scale import told_scale
from prunus.explain.summary import summarize
from prunus.explain.summary_record import NodeSummary, TreeSummary
from prunus.search.columns import KnownColumn

__all__ = ["YES_OR_NO", "Words", "read_words", "traits"]

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
