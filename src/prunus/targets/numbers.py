"""Numbers as the target: given ones, those whose logarithm is predicted, and columns of the table itself."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import torch
from sklearn.utils import check_array
from sklearn.utils.validation import check_consistent_length

from prunus.data import OutputColumn, TableEncoder
from prunus.data.checks import reading
from prunus.errors import InputTypeError, InputValueError
from prunus.targets.links import IDENTITY, LOG, Link
from prunus.targets.scale import Scale
from prunus.targets.target import Array, Doubles, PathRows, Task, check_same_link

__all__ = ["Columns", "LogNumbers", "Numbers"]

NAMES = {1.0: "poisson", 2.0: "gamma"}
"""The losses of the powers; all others belong to "tweedie"."""


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
    is_classes: ClassVar[bool] = False
    is_numbers: ClassVar[bool] = True
    is_clusters: ClassVar[bool] = False
    link: ClassVar[Link] = IDENTITY
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


@dataclass(frozen=True)
class Columns(Numbers):
    """Some encoded columns, which are predicted from the others, or all, which are reconstructed from a row's path."""

    positions: npt.NDArray[np.int64] | None = None
    """The encoded columns that are predicted, (k,); None means all."""
    asked: Any = None
    """The user's option `targets`, for messages."""

    task: ClassVar[Task] = "clusters"
    is_numbers: ClassVar[bool] = False
    is_clusters: ClassVar[bool] = True

    @classmethod
    def asked_for(cls, targets: Sequence[Any] | None, encoder: TableEncoder) -> Self:
        """A target for these columns of a table, by name or position; None means all."""
        positions = target_columns(targets, encoder)
        k = len(encoder.columns_) if positions is None else len(positions)
        return cls(False, np.zeros(k), np.ones(k), positions, targets)

    def columns(self, encoder: TableEncoder) -> list[OutputColumn]:
        """Descriptions of the encoded columns that are predicted."""
        return encoder.columns_ if self.positions is None else [encoder.columns_[i] for i in self.positions]

    def output_names(self, encoder: TableEncoder) -> tuple[str, ...]:
        """Names of the encoded columns."""
        return tuple(column.label for column in self.columns(encoder))

    def take_over(self, before: Self) -> Self:
        """The same columns with the scale of the earlier fit; others are an error."""
        if _listed(self.positions) != _listed(before.positions):
            raise InputValueError(
                f"targets must be the same as in the last fit to continue it, got targets={self.asked!r}. Set them "
                "back, or start again with warm_start=False"
            )
        return replace(before, asked=self.asked)

    def read(self, y: Any, x: npt.NDArray[np.float32]) -> Array:  # noqa: ARG002
        """The columns of encoded rows, (n, k)."""
        return x if self.positions is None else x[:, self.positions]

    def node_units(self, mean: Doubles, spread: Doubles, encoder: TableEncoder) -> tuple[Doubles, Doubles]:
        """Means and spreads in the units of the table; encoded numbers are (x - center) / scale."""
        center, scale = np.transpose([(column.center, column.scale) for column in self.columns(encoder)])
        return self.predictions(mean) * scale + center, spread * self.deviation * scale


def target_columns(targets: Sequence[Any] | None, encoder: TableEncoder) -> npt.NDArray[np.int64] | None:
    """The encoded columns that come from these columns of the table, by name or position; None for None.

    Examples
    --------
    >>> encoder = TableEncoder().fit([[1.0, 5.0], [2.0, 7.0]])
    >>> target_columns([-1], encoder)
    array([1])
    """
    if targets is None:
        return None
    names = getattr(encoder, "feature_names_in_", None)
    known = [] if names is None else names.tolist()
    if getattr(targets, "ndim", 1) == 0:
        raise InputTypeError(f"targets must be a list of names or positions of columns, got {targets!r}")
    wanted = {_position(target, known, encoder.n_features_in_) for target in targets}
    if not wanted or len(wanted) == encoder.n_features_in_:
        raise InputValueError(
            f"targets must be at least one of the {encoder.n_features_in_} columns, but not all, got {list(targets)!r}"
        )
    columns = [i for i, column in enumerate(encoder.columns_) if column.feature in wanted]
    return np.array(columns, dtype=np.int64)


def _position(target: Any, names: list[str], n_features: int) -> int:
    """The position of a column that is given by its name or position; negative ones count from the end."""
    if isinstance(target, str):
        if target not in names:
            raise InputValueError(f"targets must name columns of the table, {names}, got {target!r}")
        return names.index(target)
    if isinstance(target, bool) or not isinstance(target, (int, np.integer)):
        raise InputTypeError(f"targets must be names or positions of columns, got {target!r}")
    if not -n_features <= target < n_features:
        raise InputValueError(f"targets must be positions below {n_features}, got {target}")
    return int(target) % n_features


def _listed(positions: npt.NDArray[np.int64] | None) -> list[int]:
    return [] if positions is None else positions.tolist()
