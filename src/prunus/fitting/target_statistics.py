"""What a fit must know of the target of a table that arrives in chunks: its classes, or its mean and deviation."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from prunus.data.chunks import Chunk
from prunus.targets import Target

__all__ = ["TargetStatistics", "Weighing", "chunk_targets"]

Doubles = npt.NDArray[np.float64]

REPEATED = 3
"""Each label is given this many times where labels stand for rows: scikit-learn warns of labels that all differ."""
MOST_LABELS = 100_000
"""Numbers of rows are counted for this many different values of the target at most; with more it must be a number."""
ALL, POSITIVE, HELD_OUT, WEIGHT, HELD_OUT_WEIGHT = range(5)
"""What is counted: rows, those of positive weight, those of these that are held out; weights of all and of these."""


@dataclass(frozen=True)
class Weighing:
    """The weights of training rows, 1 on average, and how many rows have one."""

    rows: int
    mean: float
    of_classes: Doubles | None = None

    def weights(self, targets: npt.NDArray[Any], weight: Doubles | None) -> Doubles | None:
        """Weights of rows times those of their classes; None if all are 1."""
        if self.of_classes is not None:
            weight = self.of_classes[targets] if weight is None else weight * self.of_classes[targets]
        return None if weight is None else weight / self.mean


@dataclass
class TargetStatistics:
    """Counts and sums over the rows of a table; `add` takes chunks one after the other."""

    counts: dict[Any, Doubles] | None = field(default_factory=dict)
    """For each label what is counted, (5,); None if there are too many labels."""
    total: Doubles = field(default_factory=lambda: np.zeros(5))
    """The same for all rows."""
    dtype: np.dtype[Any] | None = None
    """The type of the target; None if there is none."""
    weight: float = 0.0
    mean: float = 0.0
    squares: float = 0.0
    """The weight of all numbers, their mean, and the sum of their squared distances from it."""

    def add(self, chunk: Chunk, weight: Doubles | None, held: npt.NDArray[np.bool_]) -> None:
        """Add a chunk with its weights, and which of its rows are held out."""
        given = np.ones(chunk.n_rows) if weight is None else weight
        positive = given > 0
        columns = (np.ones(chunk.n_rows), positive, positive & held, given, given * held)
        self.total += [column.sum() for column in columns]
        if chunk.target is None:
            return
        if self.counts is not None:
            self._add_labels(*chunk.labels, columns)
        y = chunk.y
        if y is not None and y.dtype.kind in "biuf":
            self._add_numbers(y.astype(np.float64), given)

    def merge(self, other: "TargetStatistics") -> None:
        """Add the statistics of other rows of the same table."""
        self.total += other.total
        if self.counts is not None and other.counts is not None:
            for label, row in other.counts.items():
                self.counts[label] = self.counts.get(label, 0.0) + row
        if self.counts is None or other.counts is None or len(self.counts) > MOST_LABELS:
            self.counts = None
        self._widen(other.dtype)
        self._add_moments(other.weight, other.mean, other.squares)

    def without_validation(self) -> "TargetStatistics":
        """The same statistics if no rows are held out."""
        used = np.ones(5)
        used[[HELD_OUT, HELD_OUT_WEIGHT]] = 0.0
        counts = None if self.counts is None else {label: used * row for label, row in self.counts.items()}
        return replace(self, counts=counts, total=used * self.total)

    def representatives(self) -> npt.NDArray[Any] | None:
        """Values that stand for the target of all rows: the labels, or two numbers of the same mean and deviation."""
        if self.dtype is None:
            return None
        if self.counts is None:
            return self.two_numbers()[:, 0]
        return np.repeat(np.array(list(self.counts), dtype=self.dtype), REPEATED)

    def two_numbers(self) -> Doubles:
        """Two numbers, (2, 1), that have the mean and the standard deviation of all."""
        deviation = (self.squares / self.weight) ** 0.5 if self.weight else 0.0
        return np.array([[self.mean - deviation], [self.mean + deviation]])

    def weighing(self, target: Any) -> Weighing:
        """The weights of training rows for a target that may have weights of classes."""
        of_classes = self._class_weight(target)
        if of_classes is None:
            counted = self.total[None]
            factors = np.ones(1)
        else:
            assert self.counts is not None
            counted = np.stack([self.counts.get(label, np.zeros(5)) for label in target.labels.tolist()])
            factors = of_classes
        rows = ((counted[:, POSITIVE] - counted[:, HELD_OUT]) * (factors > 0)).sum()
        weight = ((counted[:, WEIGHT] - counted[:, HELD_OUT_WEIGHT]) * factors).sum()
        return Weighing(round(float(rows)), float(weight / rows) if rows and weight else 1.0, of_classes)

    def _class_weight(self, target: Any) -> Doubles | None:
        if not target.is_classes or target.class_weight is None:
            return None
        assert self.counts is not None
        labels = target.labels.tolist()
        if isinstance(target.class_weight, str):  # "balanced"
            rows = np.array([self.counts.get(label, np.zeros(5))[ALL] for label in labels])
            of_classes: Doubles = rows.sum() / (len(labels) * np.maximum(rows, 1.0))
        else:
            of_classes = target.weigh(np.arange(len(labels)), None)
        return of_classes

    def _add_labels(self, labels: npt.NDArray[Any], codes: npt.NDArray[np.integer], columns: Any) -> None:
        assert self.counts is not None
        self._widen(labels.dtype)
        sums = np.stack([np.bincount(codes, column, len(labels)) for column in columns], axis=1)
        for label, row in zip(labels.tolist(), sums, strict=True):
            self.counts[label] = self.counts.get(label, 0.0) + row
        if len(self.counts) > MOST_LABELS:
            self.counts = None

    def _widen(self, dtype: np.dtype[Any] | None) -> None:
        """Let the type of the target hold values of another type as well."""
        if dtype is not None:
            is_other = self.dtype is not None and self.dtype.kind != "O" and dtype.kind != "O"
            self.dtype = np.result_type(self.dtype, dtype) if is_other else dtype

    def _add_numbers(self, values: Doubles, given: Doubles) -> None:
        """Merge mean and squares of a chunk into those of all rows."""
        weight = float(given.sum())
        if not weight:
            return
        with np.errstate(over="ignore", invalid="ignore"):
            mean = float(np.average(values, weights=given))
            self._add_moments(weight, mean, float(((values - mean) ** 2) @ given))

    def _add_moments(self, weight: float, mean: float, squares: float) -> None:
        """Merge the weight, mean and squares of other numbers into those of all."""
        if weight:
            all_weight, shift = self.weight + weight, mean - self.mean
            self.squares += squares + shift**2 * self.weight * weight / all_weight
            self.mean += shift * weight / all_weight
            self.weight = all_weight


def chunk_targets(target: Target, chunk: Chunk, x: npt.NDArray[np.float32]) -> npt.NDArray[Any]:
    """The targets of a chunk, whose encoded rows are x; labels are looked up once each."""
    if not target.is_classes:
        return target.read(chunk.y, x)
    labels, codes = chunk.labels
    repeated = np.repeat(labels, REPEATED)
    numbers: npt.NDArray[Any] = target.read(repeated, repeated)[::REPEATED][codes]
    return numbers
