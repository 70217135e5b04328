"""The interface of targets."""

from typing import Any, ClassVar, Literal, Protocol, Self

import numpy as np
import numpy.typing as npt
import torch

from prunus.data import TableEncoder

__all__ = ["Array", "Doubles", "Target", "Task"]

Array = npt.NDArray[Any]
Doubles = npt.NDArray[np.float64]
Task = Literal["classes", "numbers", "clusters"]


class Target(Protocol):
    """What a tree predicts: how y is read, weighted and scaled for training, and how predictions come from outputs.

    A tree has k outputs for each row. *Targets* are the numbers that y stands for: class numbers, (n,), or values,
    (n, k).
    """

    task: ClassVar[Task]

    @property
    def n_outputs(self) -> int:
        """Number of outputs, k."""

    def output_names(self, encoder: TableEncoder) -> tuple[str, ...]:
        """Names of the k outputs: those of the classes or of the columns, or "y"."""

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
        """The ideal outputs, (n, k), for targets in the form that the loss takes."""

    def correction(self, wanted: Doubles, predicted: Doubles, weight: Doubles, *, is_constant: bool) -> Doubles:
        """The correction of each node, (T, k), which is added to the outputs of rows whose one path ends there.

        Parameters
        ----------
        wanted, predicted : arrays of shape (T, k)
            Weighted sums, over the training rows that end in each node, of the ideal and of the actual outputs.
        weight : array of shape (T, 1)
            Total weight of these rows.
        is_constant : bool
            Whether all rows that end in a node have the same outputs.
        """

    def predictions(self, outputs: Doubles) -> Doubles:
        """Probabilities of the classes, or values in the units of y, (n, k), from outputs, (n, k)."""

    def answers(self, outputs: Doubles) -> Array:
        """What `predict` returns for outputs, (n, k): labels, or values in the shape of y."""

    def node_units(self, mean: Doubles, spread: Doubles, encoder: TableEncoder) -> tuple[Doubles, Doubles]:
        """Means and spreads of nodes, (T, k), in the units of the table; spreads are (T, 0) for classes."""

    def agreement(self, soft: Doubles, hard: Doubles) -> float:
        """How far soft and hard predictions agree, given the outputs of both, (n, k); 1 means completely."""
