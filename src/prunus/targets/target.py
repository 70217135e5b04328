"""What the rest of prunus may ask of a target."""

from typing import Any, ClassVar, Literal, Protocol, Self

import numpy as np
import numpy.typing as npt
import torch

from prunus.data import TableEncoder

__all__ = ["Array", "Doubles", "Target", "Task"]

Array = npt.NDArray[Any]
Doubles = npt.NDArray[np.float64]
Task = Literal["classes", "values", "clusters"]


class Target(Protocol):
    """What is to be predicted: how it is read, weighed, scaled for training, and made from a tree's outputs.

    A tree has k outputs. *Targets* are what the rows' y say, as numbers: class numbers, (n,), or values, (n, k).
    """

    task: ClassVar[Task]

    @property
    def n_outputs(self) -> int:
        """Number of outputs, k."""

    def output_names(self, encoder: TableEncoder) -> tuple[str, ...]:
        """Names of the outputs, (k,): of the classes, of the columns, or "y"."""

    def take_over(self, before: Self) -> Self:
        """The same target with what an earlier fit has learned of it, for training that goes on."""

    def read(self, y: Any, x: npt.NDArray[np.float32]) -> Array:
        """The targets of encoded rows, (n,) or (n, k); an error if they cannot be used."""

    def weigh(self, targets: Array, weight: Doubles | None) -> Doubles | None:
        """Weights of the rows, (n,), those of their classes included."""

    def scale(self, targets: Array, weight: Doubles | None) -> Self:
        """The same target with a scale that is learned from training rows, where it has one."""

    def for_loss(self, targets: Array) -> torch.Tensor:
        """Targets as the loss takes them."""

    def wanted(self, for_loss: torch.Tensor) -> npt.NDArray[np.float32]:
        """What the outputs ought to be, (n, k), given the targets that the loss takes."""

    def correction(self, wanted: Doubles, predicted: Doubles, weight: Doubles, *, is_constant: bool) -> Doubles:
        """What to add to outputs at the end of one path, (T, k).

        Parameters
        ----------
        wanted, predicted : arrays of shape (T, k)
            Sums, over the training rows that end in each node, of what outputs ought to be and of what they are.
        weight : array of shape (T, 1)
            Weight of these rows.
        is_constant : bool
            Whether all rows that end in a node have the same outputs.
        """

    def predictions(self, outputs: Doubles) -> Doubles:
        """Probabilities of the classes, or values in the units of y, (n, k), of outputs, (n, k)."""

    def answers(self, outputs: Doubles) -> Array:
        """What `predict` returns for outputs, (n, k): labels, or values in the shape of y."""

    def node_units(self, mean: Doubles, spread: Doubles, encoder: TableEncoder) -> tuple[Doubles, Doubles]:
        """Means and spreads of nodes, (T, k), in the units of the table; the spread is (T, 0) where it says nothing."""

    def agreement(self, soft: Doubles, hard: Doubles) -> float:
        """How far predictions agree, given the outputs along all routes and along one path, (n, k); 1 is wholly."""
