"""Two classes as a target, with one output."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch

from prunus.errors import InputValueError
from prunus.targets.classes import Classes
from prunus.targets.links import LOGIT, Link
from prunus.targets.target import Array, Doubles

__all__ = ["TwoClasses"]


@dataclass(frozen=True)
class TwoClasses(Classes):
    """Two class labels; the one output of the tree is the logit of the second one.

    Examples
    --------
    >>> target = TwoClasses.of(["no", "yes", "no"])
    >>> target.predictions(np.array([[0.0]])).tolist(), target.answers(np.array([[2.0]])).tolist()
    ([[0.5, 0.5]], ['yes'])
    """

    link: ClassVar[Link] = LOGIT

    @property
    def n_outputs(self) -> int:
        """One."""
        return 1

    def read(self, y: Any, x: npt.NDArray[np.float32]) -> npt.NDArray[np.int64]:
        """Class numbers, (n,); an error unless there are two classes."""
        if len(self.labels) != 2:
            raise InputValueError(
                f"y must have two classes with loss='binary_cross_entropy', got {len(self.labels)}. Use "
                "loss='cross_entropy'"
            )
        return super().read(y, x)

    def for_loss(self, targets: Array) -> torch.Tensor:
        """0 for the first class and 1 for the second, in single precision, (n, 1): the shape of the outputs."""
        return torch.from_numpy(targets.astype(np.float32)[:, None])

    def wanted(self, for_loss: torch.Tensor) -> npt.NDArray[np.float32]:
        """1 for the second class, 0 for the first one, (n, 1)."""
        return for_loss.numpy()

    def scores(self, outputs: Doubles) -> Doubles:
        """0 for the first class, and the logit for the second one, (n, 2)."""
        return np.concatenate((np.zeros_like(outputs), outputs), axis=1)

    def shares(self, means: Doubles) -> Doubles:
        """The shares of both classes, (T, 2), from that of the second one, (T, 1)."""
        return np.concatenate((1 - means, means), axis=1)
