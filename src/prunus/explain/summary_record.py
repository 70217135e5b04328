"""The record that every picture of a tree is made from."""

from dataclasses import dataclass
from typing import Any

from prunus.explain.column_splits import ColumnSplit
from prunus.explain.curves import Curve
from prunus.explain.formulas import Formula, SplitWeight
from prunus.search.questions import Question

__all__ = ["NodeSummary", "TreeSummary"]


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
