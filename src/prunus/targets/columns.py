"""Columns of the table itself as a target."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from prunus.data import OutputColumn, TableEncoder
from prunus.errors import InputTypeError, InputValueError
from prunus.targets.numbers import Numbers
from prunus.targets.target import Array, Doubles, Task

__all__ = ["Columns", "target_columns"]


@dataclass(frozen=True)
class Columns(Numbers):
    """Some encoded columns, which are predicted from the others, or all, which are reconstructed from a row's path."""

    positions: npt.NDArray[np.int64] | None = None
    """The encoded columns that are predicted, (k,); None means all."""
    asked: Any = None
    """The user's option `targets`, for messages."""

    task: ClassVar[Task] = "clusters"
    reconstructs: ClassVar[bool] = True

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
