"""The scale on which outputs of a tree are told: values, logarithms of values, log odds, or scores of classes."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["Scale"]

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
