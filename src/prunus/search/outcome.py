"""What is to be predicted, in cells: the weight of some rows, and sums of their outputs and of their squares."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from prunus.search.problem import Doubles, Problem

__all__ = ["Outcome", "read_outcome", "worth"]

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Outcome:
    """The targets of n rows: values of k columns, or classes, each of which is an output."""

    values: Doubles | None
    """Values, (n, k), each column of unit variance; None for classes."""
    labels: Rows | None
    """Class numbers, (n,); None for values."""
    weight: Doubles
    """(n,)."""
    outputs: int

    def __len__(self) -> int:
        return len(self.weight)

    def part(self, rows: Rows) -> "Outcome":
        """The targets of some rows."""
        values = None if self.values is None else self.values[rows]
        labels = None if self.labels is None else self.labels[rows]
        return Outcome(values, labels, self.weight[rows], self.outputs)

    def cells(self, place: Rows, count: int) -> Doubles:
        """The sums of the rows at each of some places: weight, outputs, squares, (count, 2 + outputs)."""
        weight = np.bincount(place, self.weight, minlength=count)
        if self.labels is not None:
            sums = np.bincount(place * self.outputs + self.labels, self.weight, minlength=count * self.outputs)
            return np.column_stack((weight, sums.reshape(count, self.outputs), weight))
        assert self.values is not None
        columns = [*self.values.T, (self.values**2).sum(1)]
        return np.column_stack((weight, *(np.bincount(place, self.weight * own, minlength=count) for own in columns)))

    def losses(self, predicted: Doubles) -> Doubles:
        """The squared error of each row, summed over outputs; of probabilities it is Brier's score, (n,)."""
        if self.labels is not None:
            chosen = np.take_along_axis(predicted, self.labels[:, None], 1)[:, 0]
            found: Doubles = (predicted**2).sum(1) - 2 * chosen + 1
            return found
        assert self.values is not None
        squares: Doubles = ((self.values - predicted) ** 2).sum(1)
        return squares

    def hits(self, predicted: Doubles) -> Doubles:
        """Whether the class of each row is the most probable one, (n,)."""
        assert self.labels is not None
        found: Doubles = (predicted.argmax(1) == self.labels).astype(np.float64)
        return found

    def errors(self, predicted: Doubles) -> Doubles:
        """What a score counts: whether the class of each row is wrong, or its squared error, (n,)."""
        return self.losses(predicted) if self.labels is None else 1.0 - self.hits(predicted)

    @property
    def power(self) -> float:
        """The weighted sum of squared outputs: what a tree without errors is worth."""
        if self.values is None:
            return float(self.weight.sum())
        return float(self.weight @ (self.values**2).sum(1))


def read_outcome(problem: Problem) -> Outcome:
    """The targets of a problem."""
    n = len(problem.y)
    weight = np.ones(n) if problem.weight is None else np.asarray(problem.weight, dtype=np.float64)
    if problem.n_classes:
        return Outcome(None, problem.y.astype(np.int64), weight, problem.n_classes)
    values = problem.y.astype(np.float64).reshape(n, -1)
    mean = np.average(values, axis=0, weights=weight)
    spread = np.average((values - mean) ** 2, axis=0, weights=weight) ** 0.5
    scaled = np.ascontiguousarray((values - mean) / np.where(spread > 0, spread, 1.0))
    return Outcome(scaled, None, weight, scaled.shape[1])


def worth(cells: Doubles) -> Doubles:
    """By how much constant predictions lower the squared error of the rows in each cell, below that of zeros, (count,).

    Examples
    --------
    >>> worth(np.array([[4.0, 2.0, -2.0, 9.0], [0.0, 0.0, 0.0, 0.0]])).tolist()
    [2.0, 0.0]
    """
    found: Doubles = (cells[:, 1:-1] ** 2).sum(1) / np.maximum(cells[:, 0], 1e-300)
    return found
