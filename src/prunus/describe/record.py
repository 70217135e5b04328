"""The record that every text and picture of a tree is made from."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from prunus.data import OutputColumn, TableEncoder
from prunus.data.calendar import Unit, titled
from prunus.estimators.readable_importances import importances
from prunus.search.columns import KnownColumn
from prunus.search.questions import Question
from prunus.search.record import ReadableRecord
from prunus.targets import Target
from prunus.tree import Tree

__all__ = [
    "ColumnSplit",
    "Curve",
    "Formula",
    "LearnedTree",
    "NodeSummary",
    "SearchedTree",
    "SplitWeight",
    "TreeDescription",
    "TreeSummary",
]

Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True)
class ColumnSplit:
    """A split that uses one column of the table: which of its values go left."""

    name: str
    kind: str
    thresholds: tuple[float, ...] = ()
    """Where the side changes, in increasing order, if the column is a number (seconds for times)."""
    low_left: bool = True
    """Whether numbers below the first threshold go left."""
    left: tuple[str, ...] = ()
    """The levels that go left, if the column is a category or a boolean."""
    right: tuple[str, ...] = ()
    other_left: bool | None = None
    """Whether all other levels go left; None if there are no others."""
    missing_left: bool | None = None
    """Whether missing values go left; None if no values were missing in training, or if no missing values arrive."""
    unit: Unit | None = None
    """"weekday", "month" or "hour", if the levels are those of the calendar of a date."""
    exact: bool = False
    """Whether thresholds are those that predict, as in readable trees; dates then have all their digits."""

    @property
    def title(self) -> str:
        """What the split asks for, such as "age" or "weekday of sold"."""
        return titled(self.name, self.unit)

    def without_missing(self) -> "ColumnSplit":
        """The same for rows among which no value is missing, unless the split asks for nothing else."""
        sides = {*([True] if self.left else []), *([False] if self.right else []), *({self.other_left} - {None})}
        return replace(self, missing_left=None) if self.thresholds or len(sides) == 2 else self


@dataclass(frozen=True)
class Curve:
    """What one column of the table adds to k outputs: a function of its value.

    Between two points the curve of a number is linear, and beyond the first and the last one it is constant.
    """

    feature: int
    """Position of the column in the table."""
    name: str
    kind: str
    """"number", "boolean", "datetime", "duration" or "category"."""
    points: tuple[float, ...] | tuple[str, ...]
    """Numbers in increasing order, in the units of the table (seconds for times), or names of levels."""
    values: tuple[tuple[float, ...], ...]
    """The k values at each point."""
    missing: tuple[float, ...]
    """The k values of a missing value."""
    other: tuple[float, ...] | None = None
    """The k values of all levels that have no name here; None unless the column is a category."""
    has_missing: bool = False
    """Whether values were missing in training."""
    shown: tuple[float, float] | None = None
    """The range of numbers that is worth showing; None for categories and booleans."""
    unit: Unit | None = None
    """"weekday", "month" or "hour", if the levels are those of the calendar of a date."""

    @property
    def title(self) -> str:
        """What the curve is a function of, such as "age" or "weekday of sold"."""
        return titled(self.name, self.unit)

    @property
    def is_number(self) -> bool:
        """Whether points are numbers, not levels."""
        return self.shown is not None

    def at(self, value: Any) -> Doubles:
        """The k values for a value of the column: a number (seconds for times), the name of a level, or None."""
        if value is None:
            return np.array(self.missing)
        if not self.is_number:
            known = dict(zip(self.points, self.values, strict=True))
            return np.array(known.get(value, self.other if self.other is not None else self.missing))
        points, table = np.array(self.points, dtype=np.float64), np.array(self.values)
        return np.array([np.interp(value, points, table[:, k]) for k in range(table.shape[1])])

    def visible(self) -> tuple[tuple[float, ...] | tuple[str, ...], Doubles]:
        """The points within the range that is shown, its ends included, and the values there, (points, k)."""
        if self.shown is None:
            return self.points, np.array(self.values)
        low, high = self.shown
        inside = [low, *(float(x) for x in self.points if low < float(x) < high), high]
        return tuple(inside), np.array([self.at(x) for x in inside])

    @property
    def strength(self) -> float:
        """How far the largest and the smallest value that is shown are apart, for the output where it is most."""
        values = self.visible()[1]
        if self.has_missing:
            values = np.vstack((values, self.missing))
        return float((values.max(0) - values.min(0)).max())


@dataclass(frozen=True)
class SplitWeight:
    """The weight of one feature, or of one level of a category, in a split or in the formula of a leaf."""

    label: str
    """The name of the feature, or the level, such as "age" or "color = red"."""
    weight: float
    """Change of the sum for one unit of the feature in the table; for a piece, from its beginning to its end."""
    strength: float
    """Change of the sum for one standard unit of the feature, which can be compared between features."""
    column: int = -1
    """Position of the encoded column in ``encoder_.columns_``."""
    feature: int = -1
    """Position of the column in the table; -1 if it is not known."""
    missing: float | None = None
    """In the formula of a readable tree, what a missing number counts as, if numbers were missing in training."""


@dataclass(frozen=True)
class Formula:
    """What a leaf predicts for a row: a weighted sum of its features, in the units of the table."""

    output: str
    """What the sum is: the name of the output, such as "y", or "log of y", "log odds of yes" or "score of red"."""
    constant: float
    weights: tuple[SplitWeight, ...]
    """Strongest first."""
    low: float | None = None
    """The smallest value of the sum that is predicted, if there is one; smaller sums predict this."""
    high: float | None = None
    exact: bool = False
    """Whether the numbers are those that predict, as in readable trees; all terms are then written."""


@dataclass(frozen=True)
class NodeSummary:
    """A node of the kept tree."""

    node: int
    """The number of the node in heap order: the root is 0, the children of t are 2t+1 (left) and 2t+2 (right)."""
    depth: int
    share: float
    """Share of the training samples whose path passes the node."""
    mass: float | None
    """How much of a sample the node can receive, from 0 (pruned) to 1; None in a hard tree."""
    is_leaf: bool
    split: tuple[SplitWeight, ...] = ()
    """The weights of the split, strongest first; empty for leaves and for splits that are not linear."""
    threshold: float | None = None
    """A row goes left if the weighted sum of its features is below this."""
    value: tuple[float, ...] = ()
    """What a path that ends here predicts, probabilities of the classes or values; empty unless leaves are constant."""
    distribution: tuple[float, ...] = ()
    """Shares of the classes, or means of the outputs, over the training samples whose path passes the node."""
    spread: tuple[float, ...] = ()
    """Standard deviations of the outputs over these samples; empty for classes."""
    n_pruned: int = 0
    """Number of children that were pruned, with everything below them; samples that would go there end here."""
    column: ColumnSplit | None = None
    """The split in words of its column, if it uses only one column of the table."""
    offset: tuple[float, ...] = ()
    """What a path that ends here adds to the curves of the columns, values or scores of the classes: the prediction for
    a row of typical values, or its logarithm if the link is "log". Empty unless leaves are additive."""
    formulas: tuple[Formula, ...] = ()
    """What a path that ends here predicts, if leaves are linear: one formula for each output; of two classes, one for
    the log odds of the second; of more classes, those of the ten largest of the node, the largest first. Inner nodes at
    which no path ends have none."""
    question: Question | None = None
    """What the split of a readable tree asks, with the numbers that predict; None for other trees."""


@dataclass(frozen=True)
class TreeSummary:
    """A summary of the tree of a fitted estimator."""

    kind: str
    leaf: str
    depth: int
    n_leaves: int
    n_nodes: int
    """Number of nodes of the complete tree, before pruning."""
    n_active: int
    """Number of its nodes with a positive mass; those of a hard tree are its nodes."""
    n_parameters: int
    classes: tuple[Any, ...] | None
    outputs: tuple[str, ...]
    """Names of the classes, or of what is predicted: "y", "y0" and so on, or the features that clusters reconstruct."""
    nodes: tuple[NodeSummary, ...]
    """The kept nodes, parents before children."""
    agreement: float | None
    """How far hard predictions agree with soft ones on the given rows: the share of equal labels; for numbers, R^2 of
    the hard ones as predictions of the soft ones; for clusters, the share of rows whose largest route is their path.
    None if no rows were given, and for hard trees."""
    warning: str | None = None
    """A line that says so if no split is kept, or if the paths of a soft tree predict something else than the tree
    itself, for more than 5 % of the given rows or, without rows, of the training rows; for numbers, if R^2 of the paths
    is below 0.98."""
    routing: str = "soft"
    """Whether rows follow all their routes ("soft") or one path ("hard")."""
    curves: tuple[Curve, ...] = ()
    """What columns of the table add to the offset of a leaf, strongest first, in the units of the target, of its
    logarithm if the link is "log", or as scores of the classes; empty unless leaves are additive. The value is 0 at a
    typical value of the column."""
    link: str = "identity"
    """How the sum of curves and offset becomes a prediction: "identity", "log" (it is the logarithm of the prediction),
    "softmax" (it is the score of each class) or "logit" (it is the logit of the second of two classes)."""
    exact: bool = False
    """Whether the numbers are those that predict, as in readable trees; texts then have all their digits by default."""


@dataclass(frozen=True, kw_only=True)
class TreeDescription(TreeSummary):
    """A summary by the names that the user chose, and the parts of the estimator that predict.

    Texts, pictures and code are made from it, and ask nothing else of the estimator.
    """

    target: Target
    clusters: dict[int, str] = field(default_factory=dict)
    """The name of the cluster of each leaf, by node; empty for estimators that do not cluster."""
    yes_or_no: tuple[bool, ...] = ()
    """Which outputs of a clusterer are 0 or 1, such as "color = red"."""

    @property
    def importances(self) -> Doubles:
        """How much each column of the table matters, as shares, (n_features_in_,)."""
        raise NotImplementedError

    @cached_property
    def by_number(self) -> dict[int, NodeSummary]:
        """The nodes by their numbers."""
        return {node.node: node for node in self.nodes}

    @property
    def root(self) -> NodeSummary:
        """The node that all rows pass."""
        return self.by_number[0]

    def children(self, node: NodeSummary) -> tuple[NodeSummary | None, NodeSummary | None]:
        """The left and the right child of a node; None for a child that was pruned."""
        return self.by_number.get(2 * node.node + 1), self.by_number.get(2 * node.node + 2)


@dataclass(frozen=True, kw_only=True)
class LearnedTree(TreeDescription):
    """A tree that was learned by gradient descent: it predicts from encoded rows."""

    model: Tree
    encoder: TableEncoder
    inputs: tuple[OutputColumn, ...]
    """The encoded columns, by the names that the user chose."""

    @property
    def importances(self) -> Doubles:
        """How much the outputs depend on each column of the table, as shares, (n_features_in_,)."""
        return self.model.importances


@dataclass(frozen=True, kw_only=True)
class SearchedTree(TreeDescription):
    """A readable tree: it predicts from the values of the table themselves."""

    model: ReadableRecord
    known: tuple[KnownColumn, ...]
    """What it knows of the columns of the table, by the names that the user chose."""
    apply: Callable[[Any], npt.NDArray[np.int64]]
    """From a table, which it checks, to the leaf of each row."""

    @property
    def importances(self) -> Doubles:
        """How much each column of the table lowers the impurity, as shares, (n_features_in_,)."""
        return importances(self.model, self.known)
