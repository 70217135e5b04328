"""What is to be predicted, in cells: the weight of some rows, and sums of their outputs and of their squares."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from prunus.search.problem import Doubles, Problem

__all__ = ["Outcome", "read_outcome", "sums_at"]

Rows = npt.NDArray[np.int64]

RIDGE = 0.01
"""What each row adds to the sums of squared slopes, so that those of few rows stay small; the engine has the same."""


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
    slopes: Doubles | None = None
    """Numbers in standard units, (n, p), from which leaves predict linearly; None if leaves predict constants."""

    def __len__(self) -> int:
        return len(self.weight)

    def part(self, rows: Rows) -> "Outcome":
        """The targets of some rows."""
        values = None if self.values is None else self.values[rows]
        labels = None if self.labels is None else self.labels[rows]
        slopes = None if self.slopes is None else self.slopes[rows]
        return Outcome(values, labels, self.weight[rows], self.outputs, slopes)

    def cells(self, place: Rows, count: int) -> Doubles:
        """The sums of the rows at each of some places: weight, outputs, squares, (count, 2 + outputs).

        With p slopes x there are those of x, of x times each x and of x times each output before the squares.
        """
        weight, sums = sums_at(place, self.weight, count), self._sums(place, count, self.weight)
        squares = weight
        if self.values is not None:
            squares = sums_at(place, self.weight * (self.values**2).sum(1), count)
        if self.slopes is None:
            return np.column_stack((weight, sums, squares))
        own = [self.weight * x for x in self.slopes.T]
        products = [sums_at(place, x, count) for x in own]
        products += [sums_at(place, x * other, count) for x in own for other in self.slopes.T]
        return np.column_stack((weight, sums, *products, *(self._sums(place, count, x) for x in own), squares))

    def _sums(self, place: Rows, count: int, weight: Doubles) -> Doubles:
        """The weighted sums of the outputs of the rows at each place, (count, outputs)."""
        if self.labels is not None:
            sums = sums_at(place * self.outputs + self.labels, weight, count * self.outputs)
            return sums.reshape(count, self.outputs)
        assert self.values is not None
        return np.stack([sums_at(place, weight * own, count) for own in self.values.T], axis=1)

    @property
    def n_numbers(self) -> int:
        """How many numbers a leaf has for each output."""
        return 1 if self.slopes is None else 1 + self.slopes.shape[1]

    def worth(self, cells: Doubles) -> Doubles:
        """By how much predictions lower the squared error of the rows in each cell, below that of zeros, (count,).

        Examples
        --------
        >>> outcome = Outcome(np.zeros((4, 2)), None, np.ones(4), 2)
        >>> outcome.worth(np.array([[4.0, 2.0, -2.0, 9.0], [0.0, 0.0, 0.0, 0.0]])).tolist()
        [2.0, 0.0]
        """
        k, n = self.outputs, np.maximum(cells[:, :1], 1e-300)
        y = cells[:, 1 : k + 1]
        found: Doubles = (y**2 / n).sum(1)
        if self.slopes is None:
            return found
        p = self.slopes.shape[1]
        x, xx, xy = np.split(cells[:, k + 1 : -1], [p, p + p * p], axis=1)
        spread = xx.reshape(-1, p, p) - x[:, :, None] * x[:, None] / n[:, None] + RIDGE * n[:, None] * np.eye(p)
        common = xy.reshape(-1, p, k) - x[:, :, None] * y[:, None] / n[:, None]
        spread += 1e-12 * np.eye(p)
        linear: Doubles = (common * np.linalg.solve(spread, common)).sum((1, 2))
        return found + linear

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


def sums_at(place: Rows, values: Doubles, count: int) -> Doubles:
    """The sum of the values at each of this many places, (count,)."""
    return np.bincount(place, values, minlength=count).astype(np.float64, copy=False)


def read_outcome(problem: Problem, slopes: Doubles | None = None) -> Outcome:
    """The targets of a problem, with what leaves predict linearly from."""
    n = len(problem.y)
    weight = np.ones(n) if problem.weight is None else np.asarray(problem.weight, dtype=np.float64)
    if problem.n_classes:
        return Outcome(None, problem.y.astype(np.int64), weight, problem.n_classes, slopes)
    values = problem.y.astype(np.float64).reshape(n, -1)
    mean = np.average(values, axis=0, weights=weight)
    spread = np.average((values - mean) ** 2, axis=0, weights=weight) ** 0.5
    scaled = np.ascontiguousarray((values - mean) / np.where(spread > 0, spread, 1.0))
    return Outcome(scaled, None, weight, scaled.shape[1], slopes)
