"""Numbers that are not negative as a target, whose means have logarithms that a tree predicts."""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import torch

from prunus.data import TableEncoder
from prunus.errors import InputValueError
from prunus.targets.links import LOG, Link
from prunus.targets.numbers import Numbers
from prunus.targets.path_rows import PathRows
from prunus.targets.scale import Scale
from prunus.targets.target import Array, Doubles

__all__ = ["LogNumbers"]

NAMES = {1.0: "poisson", 2.0: "gamma"}
"""The losses of the powers; all others belong to "tweedie"."""


@dataclass(frozen=True)
class LogNumbers(Numbers):
    """Numbers that are not negative, such as counts and costs, relative to their mean.

    The outputs of the tree are logarithms: a prediction is the mean over all training rows times ``exp(output)``, so
    that outputs of 0 predict the mean.

    Examples
    --------
    >>> target = LogNumbers.of([1.0, 3.0]).scale(np.array([[1.0], [3.0]]), None)
    >>> target.answers(np.array([[0.0], [np.log(2.0)]])).tolist()
    [2.0, 4.0]
    """

    power: float = field(default=1.0, kw_only=True)
    """The variance of y is thought to grow like this power of its mean: 1 is that of Poisson, 2 that of gamma."""

    link: ClassVar[Link] = LOG

    def read(self, y: Any, x: npt.NDArray[np.float32]) -> Doubles:
        """The values of y, (n, k); an error if some are negative, or 0 with the gamma loss."""
        values = super().read(y, x)
        loss = NAMES.get(self.power, "tweedie")
        wrong = values <= 0 if loss == "gamma" else values < 0
        if wrong.any():
            row, column = np.argwhere(wrong)[0]
            must = "be positive" if loss == "gamma" else "not be negative"
            raise InputValueError(f"y must {must} with loss={loss!r}, got {values[row, column]:g}, first in row {row}")
        return values

    def scale(self, targets: Array, weight: Doubles | None) -> Self:
        """The same target with the mean and the standard deviation of these values."""
        scaled = super().scale(targets, weight)
        if not (scaled.mean > 0).all():
            loss = NAMES.get(self.power, "tweedie")
            raise InputValueError(f"y must have a positive value in each column with loss={loss!r}, got only zeros")
        return scaled

    def for_loss(self, targets: Array) -> torch.Tensor:
        """Values relative to their mean."""
        return torch.from_numpy((targets / self.mean).astype(np.float32))

    def compared(self, outputs: Doubles) -> Doubles:
        """Powers of the means that vary equally much for small and for large means: square roots of counts."""
        return outputs if self.power == 2 else LOG.means((1 - self.power / 2) * outputs)

    def output_limits(self, wanted: Doubles) -> tuple[Doubles, Doubles]:
        """Logarithms of the range of values; 0 stands for a mean at which all rows together expect one value."""
        positive = np.where(wanted > 0, wanted, np.inf).min(0)
        low = np.where(wanted.min(0) > 0, positive, positive / len(wanted))
        return np.log(low), np.log(wanted.max(0))

    def correction(self, rows: PathRows, *, is_constant: bool) -> Doubles:  # noqa: ARG002
        """The change of the outputs for which the loss of the rows of a node is least.

        One more row that needs no change keeps it finite.
        """
        outputs = rows.outputs.astype(np.float64)
        weight = rows.total
        wanted = rows.sums(rows.wanted * LOG.means((1 - self.power) * outputs))
        predicted = rows.sums(LOG.means((2 - self.power) * outputs))
        one = predicted / np.maximum(weight, 1e-12)
        ratio = (wanted + one) / np.maximum(predicted + one, 1e-300)
        return np.where(weight > 0, np.log(np.maximum(ratio, 1e-300)), 0.0)

    def predictions(self, outputs: Doubles) -> Doubles:
        """Means in the units of y."""
        with np.errstate(over="ignore"):
            return LOG.means(outputs) * self.mean

    def node_units(self, mean: Doubles, spread: Doubles, encoder: TableEncoder) -> tuple[Doubles, Doubles]:  # noqa: ARG002
        """Means and spreads in the units of y."""
        return mean * self.mean, spread * self.mean

    def display_scale(self, names: tuple[str, ...]) -> Scale:
        """The logarithms of the values."""
        return Scale(tuple(f"log of {name}" for name in names), np.eye(self.n_outputs), np.log(self.mean))
