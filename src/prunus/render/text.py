"""The tree as indented text."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from prunus.describe.checks import check_flags, check_whole
from prunus.describe.functions import log_odds
from prunus.describe.numbers import percent, writer
from prunus.describe.read import describe
from prunus.describe.record import NodeSummary, TreeDescription
from prunus.describe.words import curve_text, formula_text, in_lines, outcome, split_parts, traits

__all__ = ["export_text"]

MOST_FORMULAS = 3
"""Number of formulas of a leaf with several outputs that are written; others are counted."""
MOST_CURVES = 20
"""Number of curves that are written; others are counted."""


def export_text(
    estimator: Any,
    *,
    feature_names: Any = None,
    class_names: Any = None,
    max_depth: int | None = 10,
    spacing: int = 3,
    decimals: int | None = None,
    show_weights: bool = False,
    max_features: int = 3,
    show_empty: bool = False,
) -> str:
    """The rules of a fitted tree as text, in the layout of `sklearn.tree.export_text`.

    Weights and thresholds are in the units of the table. A leaf shows the prediction of a path that ends there and the
    share of the training rows that end there. A linear leaf shows its formula, strongest terms first: of the value, of
    its logarithm if the loss has one, of the log odds of the second of two classes, or of the scores of the largest
    classes. If leaves are networks, they show the largest class, or the mean, of their training rows instead of a
    prediction; for clusters, the features that differ most from the whole table. If leaves are additive,
    their values are those of a row with typical values, and what each column adds to them is told below the rules,
    strongest first: its smallest and its largest value, and where they are. Rows that would go to a pruned branch end
    in the node above it. If the paths of a soft tree often predict something else than the tree itself, the last line
    says so.

    Parameters
    ----------
    estimator : a tree of prunus
        The fitted estimator.
    feature_names : list of n_features_in_ names, optional
        Names of the columns; by default those of the table, or "x0", "x1" and so on if it had no names.
    class_names : list of names, optional
        Names of the classes, in the order of `classes_`, or of the clusters.
    max_depth : int or None, default=10
        The deepest level that is written; of branches below it only their depth is. None writes all levels.
    spacing : int, default=3
        Number of characters by which a level is indented.
    decimals : int or None, default=None
        Number of decimals; small numbers have this many significant digits. None means all digits of a readable tree,
        whose numbers are round, and 2 for other trees.
    show_weights : bool, default=False
        Whether leaves show the shares of the classes among their training rows or, for a regressor, the standard
        deviations of the outputs.
    max_features : int, default=3
        Number of features of a split or of a formula that are written, the strongest first.
    show_empty : bool, default=False
        Whether branches are written that no training row takes. Without them the text is shorter; a new row can still
        take such a branch.

    Returns
    -------
    str

    Examples
    --------
    >>> from prunus import ArgminTreeClassifier
    >>> X, y = [[1.0], [2.0], [3.0], [4.0]], ["low", "low", "high", "high"]
    >>> tree = ArgminTreeClassifier(depth=1, max_epochs=50, random_state=0).fit(X, y)
    >>> print(export_text(tree, feature_names=["size"]))  # doctest: +ELLIPSIS
    |--- size < 2...
    |   |--- class: low (50% of rows)
    |--- size >= 2...
    |   |--- class: high (50% of rows)
    <BLANKLINE>
    """
    check_whole("max_depth", max_depth, 0, or_none=True)
    check_flags(show_weights=show_weights, show_empty=show_empty)
    for name, value, least in (("spacing", spacing, 1), ("max_features", max_features, 1)):
        check_whole(name, value, least)
    check_whole("decimals", decimals, 0, or_none=True)
    tree = in_lines(describe(estimator, feature_names, class_names))
    report = _Report(tree, max_depth, spacing, decimals, show_weights, max_features, show_empty)
    lines = [*report.lines(tree.root), *report.limits(), *report.curves()]
    if tree.warning is not None:
        lines.append(tree.warning)
    return "".join(f"{line}\n" for line in lines)


@dataclass(frozen=True)
class _Report:
    """The options of `export_text`, with methods that write a node."""

    tree: TreeDescription
    max_depth: int | None
    spacing: int
    decimals: int | None
    weights: bool
    max_features: int
    empty: bool

    def lines(self, node: NodeSummary) -> Iterator[str]:
        indent = self._indent(node.depth)
        if node.is_leaf:
            yield indent + self._end(node, node.share)
            yield from self._formulas(node, indent)
        elif self.max_depth is not None and node.depth > self.max_depth:
            yield f"{indent}truncated branch of depth {_height(self.tree, node)}"
        else:
            conditions = split_parts(node, self.max_features, self.number)
            for condition, child in zip(conditions, self.tree.children(node), strict=True):
                if not self.empty and (self._pruned_share(node) if child is None else child.share) == 0:
                    continue
                yield indent + " ".join(condition)
                yield from self._pruned(node) if child is None else self.lines(child)

    def limits(self) -> Iterator[str]:
        """A line that says so if predictions of formulas are limited."""
        formulas = [formula for node in self.tree.nodes for formula in node.formulas]
        if any(formula.low is not None and not formula.exact for formula in formulas):
            yield "The values of a formula are limited to the range of values that was seen in training."

    def curves(self) -> Iterator[str]:
        """The curves of additive leaves, a line each."""
        curves, outputs = self.tree.curves, self.tree.outputs
        if not curves:
            return
        of_what = ""
        if self.tree.classes is not None and len(outputs) == 2:
            of_what = f" of the log odds of {outputs[1]}"
            curves, outputs = tuple(map(log_odds, curves)), outputs[1:]
        elif self.tree.link == "log":
            of_what = " of the log value"
        yield f"Curves{of_what}, which all leaves share and which are 0 for typical values:"
        for curve in curves[:MOST_CURVES]:
            yield f"    {curve_text(curve, outputs, self.number)}"
        if len(curves) > MOST_CURVES:
            yield f"    and {len(curves) - MOST_CURVES} more columns"

    def _indent(self, depth: int) -> str:
        return ("|" + " " * self.spacing) * depth + "|" + "-" * self.spacing + " "

    def _pruned(self, node: NodeSummary) -> Iterator[str]:
        """The lines for rows that would go to the one child that was pruned."""
        indent = self._indent(node.depth + 1)
        yield f"{indent}pruned, {self._end(node, self._pruned_share(node))}"
        yield from self._formulas(node, indent)

    def _pruned_share(self, node: NodeSummary) -> float:
        """The share of the rows that would go to the one child that was pruned."""
        share = node.share - sum(child.share for child in self.tree.children(node) if child is not None)
        return 0.0 if share < 1e-12 else share  # a rounding error

    def _formulas(self, node: NodeSummary, indent: str) -> Iterator[str]:
        """The formulas of a leaf with several outputs, a line each."""
        if len(node.formulas) < 2:
            return
        blank = indent[: -self.spacing - 2] + "|" + " " * (self.spacing + 1)
        shown = node.formulas if self.tree.exact else node.formulas[:MOST_FORMULAS]
        for formula in shown:
            yield f"{blank}{formula.output}: {formula_text(formula, self.max_features, self.number)}"
        if len(node.formulas) > len(shown):
            yield f"{blank}and {len(node.formulas) - len(shown)} more"

    def _end(self, node: NodeSummary, share: float) -> str:
        rows = f"({percent(share)} of rows)"
        if self.tree.clusters:
            about = ", ".join(traits(self.tree, node, self.max_features)) if node.share > 0 else ""
            name = self.tree.clusters.get(node.node, "no cluster")
            return f"{name}: {about} {rows}" if about else f"{name} {rows}"
        if self.tree.exact and len(node.formulas) > 1:
            told = f"{len(node.formulas)} formulas"
        else:
            found = outcome(self.tree, node, self.max_features, self.number, self._listed)
            told = ", ".join(f"{name}: {value}" for name, value in found)
        if self.weights and self.tree.classes is not None:
            return f"weights: {self._rounded(node.distribution)} {told} {rows}"
        return f"{told} ± {self._rounded(node.spread)} {rows}" if self.weights else f"{told} {rows}"

    def number(self, x: float) -> str:
        """A number of a split or of a prediction."""
        return writer(self.decimals, exact=self.tree.exact)(x)

    def _listed(self, values: Sequence[float]) -> str:
        return f"[{', '.join(map(self.number, values))}]"

    def _rounded(self, values: Sequence[float]) -> str:
        """What is known of the rows of a node."""
        return f"[{', '.join(map(writer(self.decimals, exact=False), values))}]"


def _height(tree: TreeDescription, node: NodeSummary) -> int:
    """The number of levels of a subtree, which is 1 for a leaf."""
    return 1 + max((_height(tree, child) for child in tree.children(node) if child is not None), default=0)
