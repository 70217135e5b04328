"""The scale on which outputs of a tree are told: values, logarithms of values, log odds, or scores of classes."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from prunus.targets import Target
from prunus.targets.links import IDENTITY, LOG

__all__ = ["Scale", "told_scale"]

Doubles = npt.NDArray[np.float64]


class Scale(NamedTuple):
    """The linear function ``matrix @ outputs + offset``, from k outputs to the m numbers that are told."""

    names: tuple[str, ...]
    """What the m numbers are, such as "y", "log of y", "log odds of yes" or "score of red"."""
    matrix: Doubles
    """(m, k)."""
    offset: Doubles
    """(m,)."""

    def at(self, outputs: Doubles) -> Doubles:
        """The numbers that are told, (..., m), of outputs, (..., k)."""
        told: Doubles = outputs @ self.matrix.T + self.offset
        return told


def told_scale(target: Target, outputs: Sequence[str]) -> Scale:
    """The scale of a target, given the names of what it predicts.

    Of two classes the log odds of the second one tell all. Scores of more classes are told relative to their mean,
    since only their differences matter.
    """
    k = target.n_outputs
    if target.task == "classes":
        if len(outputs) == 2:
            matrix = np.array([[1.0]]) if k == 1 else np.array([[-1.0, 1.0]])
            return Scale((f"log odds of {outputs[1]}",), matrix, np.zeros(1))
        return Scale(tuple(f"score of {name}" for name in outputs), np.eye(k) - 1 / k, np.zeros(k))
    zero = target.predictions(np.zeros((1, k)))[0]
    if target.link is LOG:
        return Scale(tuple(f"log of {name}" for name in outputs), np.eye(k), np.log(zero))
    assert target.link is IDENTITY
    return Scale(tuple(outputs), np.diag(target.predictions(np.ones((1, k)))[0] - zero), zero)
