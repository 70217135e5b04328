"""The interface of targets."""

from typing import Any, ClassVar, Literal, Protocol, Self

import numpy as np
import numpy.typing as npt
import torch

from prunus.data import TableEncoder
from prunus.errors import InputValueError
from prunus.targets.links import Link
from prunus.targets.path_rows import PathRows
from prunus.targets.scale import Scale

__all__ = ["Array", "Doubles", "Target", "Task", "check_same_link"]

Array = npt.NDArray[Any]
Doubles = npt.NDArray[np.float64]
Task = Literal["classes", "numbers", "clusters"]


class Target(Protocol):
    """What a tree predicts: how y is read, weighted and scaled for training, and how predictions come from outputs.

    A tree has k outputs for each row. *Targets* are the numbers that y stands for: class numbers, (n,), or values,
    (n, k).
    """

    task: ClassVar[Task]
    link: ClassVar[Link]
    """How outputs become means of what is wanted."""
    reconstructs: ClassVar[bool]
    """Whether the outputs are columns of the table itself, so that rows get the cluster at the end of their path."""

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
