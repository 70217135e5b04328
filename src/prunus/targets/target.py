"""What all targets have in common, and what to say of a tree whose paths predict something else than it does."""

from collections.abc import Iterator
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, Self

import numpy as np
import numpy.typing as npt
import torch

from prunus.data import TableEncoder
from prunus.errors import InputValueError
from prunus.targets.links import Link
from prunus.targets.scale import Scale

__all__ = ["Array", "Doubles", "PathRows", "Target", "Task", "check_same_link", "disagreement", "remarks"]

Doubles = npt.NDArray[np.float64]
Nodes = npt.NDArray[np.int64]
Array = npt.NDArray[Any]
Task = Literal["classes", "numbers", "clusters"]
LEAST: dict[Task, float] = {"classes": 0.95, "numbers": 0.98}
"""With a smaller agreement, see `prunus.targets.Target.agreement`, the paths of a soft tree do not explain it."""
NO_SPLITS = "No split was worth keeping: all rows end in one leaf."


class PathRows(NamedTuple):
    """Rows that follow one path to a node of a tree each."""

    wanted: npt.NDArray[np.floating]
    """What is wanted of each row, (n, k), see `prunus.targets.Target.wanted`."""
    outputs: npt.NDArray[np.floating]
    """The outputs that the rows have, (n, k)."""
    weight: Doubles | None
    """(n,)."""
    ends: Nodes
    """The node that the path of each row ends in, (n,)."""
    n_nodes: int

    def sums(self, values: npt.NDArray[np.floating]) -> Doubles:
        """Weighted sums of values, (n, k), over the rows that end in each node, (T, k).

        >>> rows = PathRows(np.zeros((3, 1)), np.zeros((3, 1)), np.array([1.0, 1.0, 2.0]), np.array([1, 2, 2]), 3)
        >>> rows.sums(np.array([[1.0], [2.0], [3.0]])).tolist()
        [[0.0], [1.0], [8.0]]
        """
        columns = (values[:, i].astype(np.float64) for i in range(values.shape[1]))
        weighted = (column if self.weight is None else column * self.weight for column in columns)
        return np.stack([np.bincount(self.ends, weights=column, minlength=self.n_nodes) for column in weighted], axis=1)

    @property
    def total(self) -> Doubles:
        """Total weight of the rows that end in each node, (T, 1)."""
        return self.sums(np.ones((len(self.ends), 1)))

    def by_node(self) -> Iterator[tuple[int, Nodes]]:
        """Each node that rows end in, with the numbers of these rows."""
        order = np.argsort(self.ends, kind="stable")
        nodes, begins = np.unique(self.ends[order], return_index=True)
        yield from zip(nodes.tolist(), np.split(order, begins[1:]), strict=True)

    def residual_quantiles(self, level: float, prior_rows: float) -> Doubles:
        """Quantiles of the differences of what is wanted and of the outputs of the rows in each node, (T, k).

        They are drawn to 0 as if `prior_rows` rows had shown that it is 0. A quantile near 0 or 1 is known less well
        than the median, so that these rows then count as more.
        """
        found = np.zeros((self.n_nodes, self.wanted.shape[1]))
        residual = self.wanted.astype(np.float64) - self.outputs
        prior = prior_rows / (4 * level * (1 - level))
        for node, here in self.by_node():
            weight = np.ones(len(here)) if self.weight is None else self.weight[here]
            share = weight.sum() / (weight.sum() + prior)
            for k in range(residual.shape[1]):
                found[node, k] = share * weighted_quantile(residual[here, k], weight, level)
        return found


def weighted_quantile(values: Doubles, weight: Doubles, level: float) -> float:
    """The smallest value such that values up to it have at least this share of the weight.

    >>> weighted_quantile(np.array([3.0, 1.0, 2.0]), np.array([1.0, 1.0, 2.0]), 0.5)
    2.0
    """
    order = np.argsort(values, kind="stable")
    below = np.cumsum(weight[order])
    first = int(np.searchsorted(below, level * below[-1] * (1 - 1e-12)))
    return float(values[order[min(first, len(values) - 1)]])


class Target(Protocol):
    """What a tree predicts: how y is read, weighted and scaled for training, and how predictions come from outputs.

    A tree has k outputs for each row. *Targets* are the numbers that y stands for: class numbers, (n,), or values,
    (n, k).
    """

    task: ClassVar[Task]
    is_classes: ClassVar[bool]
    """Whether labels are predicted."""
    is_numbers: ClassVar[bool]
    """Whether values that are given are predicted."""
    is_clusters: ClassVar[bool]
    """Whether the leaves are clusters, and nothing but columns of the table is predicted."""
    link: ClassVar[Link]
    """How outputs become means of what is wanted."""

    @property
    def classes(self) -> tuple[Any, ...] | None:
        """The classes that are predicted; None if the target is no class."""

    @property
    def one_dimensional(self) -> bool:
        """Whether the answer for a row is a single value."""

    @property
    def n_outputs(self) -> int:
        """Number of outputs, k."""

    def output_names(self, encoder: TableEncoder) -> tuple[str, ...]:
        """Names of what is predicted: those of the classes or of the columns, or "y"."""

    def take_over(self, before: Self) -> Self:
        """The same target with the classes or the scale of an earlier fit, whose training is continued."""

    def read(self, y: Any, x: npt.NDArray[np.float32]) -> Array:
        """The targets of encoded rows, (n,) or (n, k); an error if y cannot be used."""

    def weigh(self, targets: Array, weight: Doubles | None) -> Doubles | None:
        """Weights of the rows, (n,), multiplied by the weights of their classes."""

    def scale(self, targets: Array, weight: Doubles | None) -> Self:
        """The same target with the scale of these training rows, if it has a scale."""

    def for_loss(self, targets: Array) -> torch.Tensor:
        """The targets in the form that the loss takes."""

    def wanted(self, for_loss: torch.Tensor) -> npt.NDArray[np.float32]:
        """What is wanted of each row, (n, k), for targets in the form that the loss takes.

        It is a scaled value, or 1 for the class of the row and 0 for others: what the link makes of ideal outputs.
        """

    def compared(self, outputs: Doubles) -> Doubles:
        """Outputs, (n, k), on a scale where squared differences mean the same everywhere, (n, k)."""

    def output_limits(self, wanted: Doubles) -> tuple[Doubles, Doubles] | None:
        """The smallest and the largest outputs, (k,), that make sense for what is wanted, (n, k); None if all do."""

    def correction(self, rows: PathRows, *, is_constant: bool) -> Doubles:
        """The correction of each node, (T, k), which is added to the outputs of rows whose one path ends there.

        Parameters
        ----------
        rows : PathRows
            The training rows.
        is_constant : bool
            Whether all rows that end in a node have the same outputs.
        """

    def predictions(self, outputs: Doubles) -> Doubles:
        """Probabilities of all classes, or values in the units of y, from outputs, (n, k)."""

    def answers(self, outputs: Doubles) -> Array:
        """What `predict` returns for outputs, (n, k): labels, or values in the shape of y."""

    def node_units(self, mean: Doubles, spread: Doubles, encoder: TableEncoder) -> tuple[Doubles, Doubles]:
        """Means and spreads of nodes, (T, k), in the units of the table.

        For classes they are the shares of all classes, and spreads of shape (T, 0).
        """

    def display_scale(self, names: tuple[str, ...]) -> Scale:
        """The scale on which outputs are told, given the names of what is predicted."""

    def agreement(self, soft: Doubles, hard: Doubles) -> float:
        """How far soft and hard predictions agree, given the outputs of both, (n, k); 1 means completely."""


def check_same_link(target: Target, before: Target) -> None:
    """Raise an error if training would continue with outputs that mean something else than before."""
    if target.link is not before.link:
        raise InputValueError(
            f"loss must have outputs of the same kind as in the last fit to continue it, {before.link.name}, got "
            f"{target.link.name}. Set it back, or start again with warm_start=False"
        )


def disagreement(task: Task, agreement: float | None) -> str | None:
    """One line that warns of a soft tree whose paths predict something else than the tree itself.

    It is None if the paths agree with the tree, or if the agreement is not known. The rows of clusters always follow
    one path, so there is nothing to say about them.

    Examples
    --------
    >>> print(disagreement("classes", 0.9))
    This tree predicts along all routes; its paths alone would give 10% of the rows another class. With routing="hard" \
the paths are the predictions.
    >>> print(disagreement("classes", 0.99))
    None
    """
    if agreement is None or task not in LEAST or agreement >= LEAST[task]:
        return None
    if task == "classes":
        found = f"would give {1 - agreement:.0%} of the rows another class"
    elif agreement < 0.005:
        found = "explain none of its predictions"
    else:
        found = f"explain only {agreement:.0%} of the variance of its predictions"
    return (
        f"This tree predicts along all routes; its paths alone {found}. "
        'With routing="hard" the paths are the predictions.'
    )


def remarks(task: Task, agreement: float | None, *, all_pruned: bool) -> str | None:
    """One line about a tree: that no split is kept, and that its paths predict something else, see `disagreement`.

    Examples
    --------
    >>> print(remarks("classes", 1.0, all_pruned=True))
    No split was worth keeping: all rows end in one leaf.
    >>> print(remarks("classes", 1.0, all_pruned=False))
    None
    """
    lines = [NO_SPLITS] if all_pruned else []
    differs = disagreement(task, agreement)
    return " ".join([*lines, *([differs] if differs else [])]) or None
