"""Numbers as a target."""

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import torch
from sklearn.utils import check_array
from sklearn.utils.validation import check_consistent_length

from prunus.data import TableEncoder
from prunus.data.checks import reading
from prunus.errors import InputValueError
from prunus.targets.links import IDENTITY, Link
from prunus.targets.path_rows import PathRows
from prunus.targets.scale import Scale
from prunus.targets.target import Array, Doubles, Task, check_same_link

__all__ = ["Numbers"]


@dataclass(frozen=True)
class Numbers:
    """One column of numbers or several, which the tree predicts after scaling to mean 0 and variance 1.

    Examples
    --------
    >>> target = Numbers.of([1.0, 3.0]).scale(np.array([[1.0], [3.0]]), None)
    >>> target.answers(np.array([[-1.0], [1.0]])).tolist()
    [1.0, 3.0]
    """

    one_dimensional: bool
    """Whether y is one-dimensional; answers then are one-dimensional, too."""
    mean: Doubles = field(default_factory=lambda: np.zeros(1))
    """Mean of each output over the training rows, (k,)."""
    deviation: Doubles = field(default_factory=lambda: np.ones(1))
    """Standard deviation of each output over the training rows, (k,); 1 for a constant column."""
    level: float | None = field(default=None, kw_only=True)
    """The quantile of y that is predicted, between 0 and 1; None if it is the mean."""

    task: ClassVar[Task] = "numbers"
    link: ClassVar[Link] = IDENTITY
    reconstructs: ClassVar[bool] = False
    classes: ClassVar[None] = None

    @classmethod
    def of(cls, y: Any, **options: Any) -> Self:
        """A target with as many outputs as y has columns, and with these options."""
        values = _read_values(y)
        k = 1 if values.ndim == 1 else values.shape[1]
        return cls(values.ndim == 1, np.zeros(k), np.ones(k), **options)

    @property
    def n_outputs(self) -> int:
        """Number of columns."""
        return len(self.mean)

    def output_names(self, encoder: TableEncoder) -> tuple[str, ...]:  # noqa: ARG002
        """The name "y", or "y0", "y1" and so on for several columns."""
        return ("y",) if self.n_outputs == 1 else tuple(f"y{i}" for i in range(self.n_outputs))

    def take_over(self, before: Self) -> Self:
        """The same target with the shape and the scale of the earlier fit."""
        check_same_link(self, before)
        return replace(self, one_dimensional=before.one_dimensional, mean=before.mean, deviation=before.deviation)

    def read(self, y: Any, x: npt.NDArray[np.float32]) -> Doubles:
        """The values of y, (n, k)."""
        values = _read_values(y)
        check_consistent_length(values, x)
        table: Doubles = values.reshape(len(x), -1)
        if table.shape[1] != self.n_outputs:
            raise InputValueError(f"y must have {self.n_outputs} outputs, got y.shape={values.shape}")
        return table

    def weigh(self, targets: Array, weight: Doubles | None) -> Doubles | None:  # noqa: ARG002
        """The weights of the rows, unchanged."""
        return weight

    def scale(self, targets: Array, weight: Doubles | None) -> Self:
        """The same target with the mean and the standard deviation of these values."""
        with np.errstate(over="ignore", invalid="ignore"):
            mean = np.average(targets, axis=0, weights=weight).astype(np.float64)
            deviation = np.average((targets - mean) ** 2, axis=0, weights=weight) ** 0.5
        if not np.isfinite(deviation).all():
            raise InputValueError("y must have a finite variance, got values that are too large. Divide y by a number")
        largest = np.abs(targets - mean).max(axis=0)  # stands in for a deviation whose square is too small for float64
        deviation = np.where(deviation > 0, deviation, largest)
        return replace(self, mean=mean, deviation=np.where(deviation > 0, deviation, 1.0))

    def for_loss(self, targets: Array) -> torch.Tensor:
        """Scaled values."""
        return torch.from_numpy(((targets - self.mean) / self.deviation).astype(np.float32))

    def wanted(self, for_loss: torch.Tensor) -> npt.NDArray[np.float32]:
        """Scaled values."""
        return for_loss.numpy()

    def compared(self, outputs: Doubles) -> Doubles:
        """The outputs."""
        return outputs

    def output_limits(self, wanted: Doubles) -> tuple[Doubles, Doubles] | None:
        """The range of the values."""
        return wanted.min(0), wanted.max(0)

    def correction(self, rows: PathRows, *, is_constant: bool) -> Doubles:  # noqa: ARG002
        """The mean residual of the training rows that end in a node, or its quantile if quantiles are predicted."""
        if self.level is not None:
            return rows.residual_quantiles(self.level, prior_rows=1.0)
        weight, residual = rows.total, rows.sums(rows.wanted) - rows.sums(rows.outputs)
        return np.where(weight > 0, residual / np.maximum(weight, 1e-12), 0.0)

    def predictions(self, outputs: Doubles) -> Doubles:
        """Values in the units of y."""
        return outputs * self.deviation + self.mean

    def answers(self, outputs: Doubles) -> Array:
        """Values in the shape of y."""
        values = self.predictions(outputs)
        return values[:, 0] if self.one_dimensional else values

    def node_units(self, mean: Doubles, spread: Doubles, encoder: TableEncoder) -> tuple[Doubles, Doubles]:  # noqa: ARG002
        """Means and spreads in the units of y."""
        return self.predictions(mean), spread * self.deviation

    def display_scale(self, names: tuple[str, ...]) -> Scale:
        """The values in the units of y."""
        zero, one = (self.predictions(np.full((1, self.n_outputs), x))[0] for x in (0.0, 1.0))
        return Scale(names, np.diag(one - zero), zero)

    def agreement(self, soft: Doubles, hard: Doubles) -> float:
        """R^2 of the values along one path as predictions of the values along all routes.

        Values that vary less than a tenth as much as y are taken to vary a tenth as much: a tree that predicts nearly
        the same for all rows is well explained by one value.
        """
        soft, hard = self.predictions(soft), self.predictions(hard)
        least = len(soft) * np.sum((0.1 * self.deviation) ** 2)
        return float(1 - np.sum((soft - hard) ** 2) / max(np.sum((soft - soft.mean(0)) ** 2), least))


def _read_values(y: Any) -> Doubles:
    """The values of y, (n,) or (n, k); an error if some are not finite."""
    if y is None:
        raise InputValueError("requires y to be passed, but the target y is None")
    with reading("y", "an array of numbers"):
        values: Doubles = check_array(y, dtype=np.float64, ensure_2d=False, ensure_all_finite=False, input_name="y")
    if values.ndim > 2:
        raise InputValueError(f"y must have one or two dimensions, got y.shape={values.shape}")
    for what, found in (
        ("NaN", np.isnan(values)),
        ("infinity or a value too large for dtype('float64')", np.isinf(values)),
    ):
        if found.any():
            row = found.reshape(len(values), -1).any(1).argmax()
            raise InputValueError(f"Input y contains {what}, first in row {row}: leave out such rows")
    return values
